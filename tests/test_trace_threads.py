"""Many threads, short threads, and threads of several interpreters in one process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pythons import Python, pythons
from suite import PROGRAMS
from tracing import Running, Track, check_releases, trace

PYTHONS = pythons("2.7", "3.8", "3.11", "3.11-debian", "3.12", "3.13")
PYTHONS_3 = pythons("3.8", "3.11", "3.11-debian", "3.12", "3.13")


def releases(thread: dict[str, Any]) -> int:
    """How often it let go of the GIL."""
    return thread["voluntary"] + thread["forced"]


@pytest.mark.parametrize("python", PYTHONS_3, ids=str)
def test_five_hundred_threads_at_once_are_named_and_counted(tmp_path: Path, python: Python) -> None:
    count, times = 500, 20
    names = {f"many-{number}" for number in range(count)}

    def are_named(tracks: list[Track]) -> bool:
        return names <= {track.name for track in tracks}

    words = [python.path, PROGRAMS / "many_threads.py", str(count), str(times)]
    with Running(tmp_path, words, stdin=subprocess.PIPE) as running:
        alive = running.read_line()
        # They live until their names have been read from outside.
        running.wait_until(are_named)
        recording = running.finish(printed=alive)
    assert (recording.status, recording.stdout) == (0, "alive\n")
    assert recording.gil["others"] is None
    many = [it for it in recording.gil["threads"] if not it["main"]]
    assert {it["name"] for it in many} == names
    assert len(many) == count
    for thread in many:
        # os.write, os.read, and the end of the thread.
        check_releases(releases(thread), thread["forced"], times + 2)
        assert thread["holds"]["count"] == releases(thread)


@pytest.mark.parametrize("python", PYTHONS_3, ids=str)
def test_a_thread_has_its_own_name_or_none(tmp_path: Path, python: Python) -> None:
    """Where one ends and the next one begins, that has its ident while names are read."""
    recording = trace(tmp_path, python.path, PROGRAMS / "relieved.py", "100", "15")
    names = {int(tid): name for tid, name in recording.told.items()}
    told = {it.tid: it.name for it in recording.tracks if it.tid != it.pid}
    named = {tid: name for tid, name in told.items() if name != f"thread-{tid}"}
    assert named
    assert named == {tid: names[tid] for tid in named}


@pytest.mark.parametrize("python", PYTHONS, ids=str)
@pytest.mark.parametrize("at_a_time", [1, 200])
def test_two_thousand_short_threads_are_all_counted(
    tmp_path: Path, python: Python, at_a_time: int
) -> None:
    count, times = 2000, 3
    program = PROGRAMS / "short_threads.py"
    recording = trace(tmp_path, python.path, program, str(count), str(at_a_time), str(times))
    # The main thread may still be there when the last of them is gone from the kernel.
    short = [track for track in recording.tracks if track.tid != track.pid]
    assert len(short) == count
    for track in short:
        holds = track.of("hold")
        forced = sum(it.release == "forced" for it in holds)
        assert len(holds) >= times + 1
        assert not any(it.unfinished for it in track.slices)
        if python.version >= (3, 0):
            check_releases(len(holds), forced, times + 1)
    # A report lists the ones that matter and sums up the rest.
    others = recording.gil["others"]
    listed = [it for it in recording.gil["threads"] if not it["main"]]
    assert len(listed) + others["threads"] == count
    assert sum(map(releases, listed)) + others["voluntary"] + others["forced"] == sum(
        len(track.of("hold")) for track in short
    )


def test_threads_beyond_the_slots_are_counted_as_not_recorded(tmp_path: Path) -> None:
    slots, count = 2048, 2100
    words = [sys.executable, PROGRAMS / "many_threads.py", str(count), "3"]
    with Running(tmp_path, words) as running:
        recording = running.finish(lost=True)
    assert (recording.status, recording.stdout) == (0, "alive\n")
    assert recording.report["lost_events"] == 0
    # The main thread has a slot too.
    assert recording.process["unrecorded_threads"] == 1 + count - slots
    assert len(recording.tracks) == slots


@pytest.mark.parametrize("python", PYTHONS, ids=str)
def test_what_is_missed_while_ungil_is_held_up_is_counted(tmp_path: Path, python: Python) -> None:
    times, ring = 50_000, 32_768
    words = [python.path, PROGRAMS / "held_up.py", str(times)]
    with Running(tmp_path, words) as running:
        recording = running.finish(lost=True)
    assert recording.status == 0
    (reader,) = [it for it in recording.gil["threads"] if not it["main"]]
    # What the thread counts itself is exact all the same.
    assert releases(reader) >= times + 1
    if python.version >= (3, 0):
        check_releases(releases(reader), reader["forced"], times + 1)
    assert reader["holds"]["count"] == releases(reader)
    # On a busy machine the main thread asks for long whether ungil has stopped: it loses some, too.
    lost = [it["lost_events"] for it in recording.gil["threads"]]
    assert sum(lost) == recording.report["lost_events"]
    assert reader["lost_events"] >= 2 * times - ring
    (track,) = [it for it in recording.tracks if it.tid == reader["tid"]]
    assert 0 < len(track.of("hold")) < ring


@pytest.mark.parametrize("python", PYTHONS, ids=str)
def test_signals_that_interrupt_waits_confuse_nothing(tmp_path: Path, python: Python) -> None:
    with Running(tmp_path, [python.path, PROGRAMS / "interrupted.py", "200"]) as running:
        # In 2.7 threads do nothing but pass the GIL on until the main one has handled the signal:
        # millions of times a second, more than can be kept.
        recording = running.finish(lost=python.version < (3, 0))
    assert recording.status == 0
    assert len(recording.gil["threads"]) == 4


@pytest.mark.parametrize("python", pythons("3.12", "3.13", since=(3, 12)), ids=str)
def test_interpreters_with_a_gil_of_their_own(tmp_path: Path, python: Python) -> None:
    count, times = 4, 1000
    program = PROGRAMS / "subinterpreters.py"
    recording = trace(tmp_path, python.path, program, str(count), str(times))
    gils = recording.process["gils"]
    assert [it["gil"] for it in gils] == list(range(count + 1))
    runners: set[int] = set()
    for gil in gils[1:]:
        # The main thread made it and ended it, another one ran it.
        main, runner = sorted(gil["threads"], key=lambda it: not it["main"])
        assert main["main"]
        # os.open, os.read, and the end of the code.
        assert releases(runner) == times + 2
        runners.add(runner["tid"])
    assert len(runners) == count
    assert runners < {it["tid"] for it in gils[0]["threads"]}


@pytest.mark.parametrize(
    ("python", "elsewhere"),
    [
        *((python, False) for python in pythons("3.8", "3.11", "3.12", "3.13", since=(3, 8))),
        *((python, True) for python in pythons("3.11", "3.13", since=(3, 8))),
    ],
    ids=str,
)
def test_threads_in_sub_interpreters_have_their_names_stacks_and_gils(
    tmp_path: Path, python: Python, elsewhere: bool
) -> None:
    hosts = {"host-0", "host-1"}
    inner = {"inner-0", "inner-1"}
    over = tmp_path / "over"

    def are_seen(tracks: list[Track]) -> bool:
        keeping = {it.name for it in tracks if any(is_keeping(stack) for stack in it.stacks)}
        return hosts <= keeping and inner <= {it.name for it in tracks}

    def is_keeping(stack: list[str]) -> bool:
        return stack[0] == "keep (<string>:7)"

    # Holds are told of from 100 ms of computing on, which is a third of each here.
    words = [python.path, PROGRAMS / "hosted.py", "2", "30000000", over]
    with Running(tmp_path, [*words, "elsewhere"] if elsewhere else words) as running:
        running.wait_until(are_seen)
        over.touch()
        recording = running.finish()
    assert recording.status == 0, recording.stderr
    has_own = python.version >= (3, 12)
    gils = recording.process["gils"]
    assert [it["gil"] for it in gils] == ([0, 1, 2] if has_own else [0])
    # Who waits in an interpreter is known there alone.
    inside = [it for it in gils if it["gil"] > 0] or gils
    names = [{it["name"] for it in gil["threads"] if not it["main"]} for gil in inside]
    kept = [
        {it["name"] for it in gil["long_holds"] if it["stack"] and is_keeping(it["stack"])}
        for gil in inside
    ]
    if has_own:
        assert sorted(map(sorted, names)) == [["host-0", "inner-0"], ["host-1", "inner-1"]]
        assert sorted(map(sorted, kept)) == [["host-0"], ["host-1"]]
    else:
        assert names == [hosts | inner]
        assert kept == [hosts]
    stacks: list[list[str]] = [
        it["stack"] for gil in inside for it in gil["long_holds"] if it["name"] in hosts
    ]
    # A thread that runs in another one's name is not known to be called by its own code.
    in_its_own_name = not elsewhere or python.version >= (3, 13)
    for stack in filter(is_keeping, filter(None, stacks)):
        assert any(it.startswith("host (") for it in stack) == in_its_own_name, stack

    native = [it for it in recording.report["findings"] if it["kind"] == "native-hold"]
    # At least one: on a machine under load the kernel may not run the other for most of its hold.
    assert native
    for finding in native:
        assert finding["text"].startswith(f"GIL {finding['gil']}: ") == has_own
    shown = subprocess.run(
        [sys.executable, "-m", "ungil", "report", recording.path],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    if has_own:
        numbers = {
            line.split()[1]
            for line in map(str.strip, shown.splitlines())
            if line.startswith("GIL ")
        }
        assert {number.rstrip(":") for number in numbers} == {"0", "1", "2"}
    else:
        assert "GIL 0" not in shown
