"""What is recorded is told rightly: forced or voluntary, whose fault, and what is wrong."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pythons import Python, pythons
from scheduling import POLICIES
from suite import PROGRAMS
from tracing import Recording, Track, compile_library, trace

PYTHONS = pythons("2.7", "3.8", "3.11", "3.11-debian", "3.12", "3.13")
PYTHONS_3 = pythons("3.8", "3.11", "3.11-debian", "3.12", "3.13")
HOLD_US = 10_000


@pytest.mark.parametrize("python", PYTHONS, ids=str)
def test_threads_that_never_block_are_forced_to_let_go(tmp_path: Path, python: Python) -> None:
    switches = 30
    recording = trace(tmp_path, python.path, PROGRAMS / "spinning.py", str(switches))
    spinning = [it for it in recording.gil["threads"] if not it["main"]]
    assert len(spinning) == 2
    for thread in spinning:
        # Each saw the other one lose the GIL that often; the last time may have been its end.
        assert thread["forced"] >= switches - 1
        # Python itself lets go a few times when a thread starts and ends.
        assert thread["voluntary"] < 10
    if python.version >= (3, 8):
        # A release is forced because somebody asked, and one request forces one release.
        assert recording.gil["forced"] <= sum(
            it["drop_requests"] for it in recording.gil["threads"]
        )


@pytest.mark.parametrize("python", PYTHONS_3, ids=str)
def test_a_thread_that_sleeps_lets_go_of_its_own_accord(tmp_path: Path, python: Python) -> None:
    # Long enough for its name to be read on a busy machine, too.
    times = 400
    recording = trace(tmp_path, python.path, PROGRAMS / "sleeping.py", str(times))
    began, ended = recording.told
    track = recording.track("sleeper")
    slept = [it for it in track.of("hold") if began <= it.end_ns <= ended]
    assert [it.release for it in slept] == ["voluntary"] * times
    assert not [it for it in track.of("wait") if began <= it.start_ns <= ended]
    assert recording.finding("none")


@pytest.mark.parametrize("policy", ["stock", *POLICIES])
@pytest.mark.parametrize("python", PYTHONS_3, ids=str)
def test_who_is_forced_to_let_go_and_goes_on_waits_from_then_on(
    tmp_path: Path, python: Python, policy: str
) -> None:
    # A thread that the kernel does not run tells it later: on a busy machine by some slices of it.
    switches, slice_ms = 10, "50"
    options = () if policy == "stock" else ("--policy", policy, "--quantum", slice_ms)
    program = PROGRAMS / "spinning.py"
    recording = trace(tmp_path, python.path, program, str(switches), slice_ms, options=options)
    spinning = [recording.track(it["name"]) for it in recording.gil["threads"] if not it["main"]]
    away = [it for track in spinning for it in between_holds(track)]
    assert len(away) >= switches
    told = [waited_ns > away_ns / 2 for away_ns, waited_ns in away]
    assert sum(told) > len(told) / 2


def between_holds(track: Track) -> list[tuple[int, int]]:
    """How long the thread had no GIL after a forced release, and how long it waited for it then."""
    waits = {it.end_ns: it.length_ns for it in track.of("wait")}
    return [
        (after.start_ns - before.end_ns, waits.get(after.start_ns, 0))
        for before, after in pairwise(track.of("hold"))
        if before.release == "forced"
    ]


@pytest.mark.parametrize("python", PYTHONS, ids=str)
def test_each_wait_is_charged_to_the_thread_that_held(tmp_path: Path, python: Python) -> None:
    library = compile_library(tmp_path)
    counts = {"first": 40, "second": 20}
    recording = trace(
        tmp_path,
        python.path,
        PROGRAMS / "two_culprits.py",
        library,
        str(HOLD_US),
        *map(str, counts.values()),
    )
    told = recording.told
    for culprit, count in counts.items():
        holds = told["holds"][culprit]
        assert len(holds) == count
        least_s = overlap(told["waits"], [(it[1], it[2]) for it in holds])
        # On a busy machine a thread may lose its CPU between the library's clock and its release.
        most_s = overlap(told["waits"], [(it[0], it[3]) for it in holds])
        blamed_s = blame(recording, told["tids"]["victim"], told["tids"][culprit])
        assert 0.95 * least_s - 0.025 <= blamed_s <= 1.05 * most_s + 0.025
        assert least_s > 0


def blame(recording: Recording, victim: int, culprit: int) -> float:
    """What `victim` waited for `culprit`, in seconds."""
    rows: list[dict[str, Any]] = recording.gil["blame"]
    return sum(it["waited_s"] for it in rows if (it["victim"], it["culprit"]) == (victim, culprit))


def overlap(waits: list[tuple[int, int]], holds: list[tuple[int, int]]) -> float:
    """For how many seconds the waits went on during the holds."""
    return (
        sum(
            max(0, min(got, ended) - max(asked, began))
            for asked, got in waits
            for began, ended in holds
        )
        / 1e9
    )


@pytest.mark.parametrize("python", PYTHONS_3, ids=str)
def test_native_code_that_keeps_the_gil_is_found_with_its_line(
    tmp_path: Path, python: Python
) -> None:
    program, times = PROGRAMS / "keeping.py", 25
    names = ["keeping", "wanting"]
    recording = trace(tmp_path, python.path, program, str(times), "50000", named=names)
    tid = recording.thread("keeping")["tid"]
    lines = program.read_text(encoding="utf-8").splitlines()
    (line,) = [number for number, text in enumerate(lines, 1) if "the line to be found" in text]
    place = f"convolve ({program}:{line})"

    native = recording.finding("native-hold")
    assert native["threads"] == [tid]
    # A machine under load may keep the other thread from asking in time, or stretch a further hold,
    unanswered = recording.thread("keeping")["unanswered"]
    assert times / 2 < unanswered["holds"] <= times * 1.1
    # and it may delay the end of a sleep for so long that most of the hold may be the kernel's.
    assert times / 2 < native["holds"] <= unanswered["holds"]
    assert native["frame"] == native["user_frame"] == place
    assert f"samples show convolve (programs/keeping.py:{line})" in native["text"]
    # It is ctypes that keeps the GIL, and none of the user's own libraries. That is told if most
    # looks at native frames show it.
    helps = [
        "load its library with ctypes.CDLL",
        "less work at a time, or run it in another process",
    ]
    assert any(it in native["advice"] for it in helps)
    assert "Py_BEGIN_ALLOW_THREADS" not in native["advice"]

    kept = [it for it in recording.gil["long_holds"] if it["tid"] == tid]
    kept = [it for it in kept if it["duration_ms"] >= 50]
    # Two calls are one hold where the other thread got no processor to ask in between,
    assert times / 2 < len(kept) <= times * 1.1
    # and every call is in one of them.
    assert sum(it["duration_ms"] for it in kept) >= times * 50
    # A stack is taken from outside while the hold goes on, which the same load may prevent.
    seen = [it for it in kept if it["stack"]]
    assert len(seen) > times / 2
    assert all(0 < it["stack_samples"] <= it["samples"] for it in seen)
    assert all((it["stack_missing"] is None) == bool(it["stack"]) for it in kept)
    # A hold is sampled again while it goes on.
    assert native["samples"] > len(seen)
    stacks = [it["stack"] for it in seen]
    assert {stack[0] for stack in stacks} == {place}
    assert all(any(frame.startswith("keep (") for frame in stack) for stack in stacks)

    wanting = recording.thread("wanting")
    # Where the kernel gave the processor to others, the shares of the GIL are its doing.
    if wanting["descheduled"]["not_run_s"] < wanting["held_s"] / 10:
        assert recording.finding("unfair")["threads"] == [wanting["tid"], tid]


@pytest.mark.parametrize("python", PYTHONS_3, ids=str)
def test_a_thread_that_blocks_beside_one_that_computes_is_in_a_convoy(
    tmp_path: Path, python: Python
) -> None:
    times = 60
    words = [python.path, PROGRAMS / "convoy.py", str(times)]
    recording = trace(tmp_path, *words, named=["cpu", "io"])
    convoy = recording.finding("convoy")
    assert convoy["threads"][0] == recording.thread("io")["tid"]
    assert convoy["culprits"] == [recording.thread("cpu")["tid"]]
    # To wait for the end may be one more.
    assert convoy["calls"] - times in {0, 1}
    # The computing thread holds whenever the other comes back, and until it is asked to let go,
    # except when the machine under test is so busy that it did not run meanwhile.
    assert convoy["late"] > times / 2


@pytest.mark.parametrize("python", PYTHONS, ids=str)
def test_nothing_is_wrong_with_a_program_of_one_thread(tmp_path: Path, python: Python) -> None:
    recording = trace(tmp_path, python.path, PROGRAMS / "alone.py")
    assert recording.stdout == "333332833333500000\n"
    if python.version < (3, 0):
        # 2.7 makes its GIL when the first thread is started.
        assert recording.process["gils"] == []
        assert "it is Python 2.7 and started no thread" in recording.finding("not-recorded")["text"]
    else:
        assert recording.finding("none")["waited_max_s"] == 0
        assert recording.gil["forced"] == recording.gil["handoffs"] == 0
