"""`ungil heap`: heaps are listed, looked into, cleaned up and removed from outside."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ungil import share

Run = Callable[..., subprocess.CompletedProcess[str]]
SIZE = 1 << 22


@pytest.fixture
def name() -> Iterator[str]:
    name = f"test-{os.getpid()}-cli"
    yield name
    path_of(name).unlink(missing_ok=True)


def path_of(name: str) -> Path:
    return Path(f"/dev/shm/ungil-heap-{os.geteuid()}-{name}")


def line_of(text: str, name: str) -> str:
    [line] = [line for line in text.splitlines() if line.split()[:1] == [name]]
    return " ".join(line.split())


def dead_child(heap: share.Heap) -> int:
    """A forked child that was killed while it held an object."""
    ready, tell = os.pipe()
    pid = os.fork()
    if pid == 0:
        held = heap.share([b"x" * 100_000])
        os.write(tell, b"!")
        signal.pause()
        del held
    os.read(ready, 1)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    os.close(ready)
    os.close(tell)
    return pid


def test_heaps_are_listed_with_who_uses_them(ungil: Run, name: str) -> None:
    heap = share.Heap(name, max_size=SIZE)
    anonymous = share.Heap(max_size=SIZE)
    _, (_, place) = anonymous.__reduce__()
    file = str(place).rpartition("/")[2]
    outcome = ungil("heap", "ls")
    assert (outcome.returncode, outcome.stderr) == (0, "")
    for shown in (name, f"{os.getpid()}/{file}"):
        line = line_of(outcome.stdout, shown)
        # What it may have at most, without what every heap has.
        assert " 3.9 MiB " in line, line
        assert line.endswith(" 1"), line
    heap.root["x"] = 1
    pid = dead_child(heap)
    assert line_of(ungil("heap", "ls").stdout, name).endswith(" 1, 1 dead")
    listed = json.loads(ungil("heap", "ls", "--json").stdout)
    assert listed["schema"] == 1
    [row] = [row for row in listed["heaps"] if row["name"] == name]
    processes = {process["pid"]: process["alive"] for process in row["processes"]}
    assert processes == {os.getpid(): True, pid: False}
    assert row["used_bytes"] > 0
    del heap
    assert line_of(ungil("heap", "ls").stdout, name).endswith(" none, 1 dead")


def test_a_file_that_anybody_has_put_among_the_heaps_is_none(ungil: Run, name: str) -> None:
    stray = path_of(f"{name} of somebody")
    stray.touch()
    outcome = ungil("heap", "ls")
    stray.unlink()
    assert (outcome.returncode, outcome.stderr) == (0, "")
    assert "somebody" not in outcome.stdout


def test_a_heap_whose_name_was_taken_away_is_found_by_the_process_that_has_it(
    ungil: Run, name: str
) -> None:
    heap = share.Heap(name, max_size=SIZE)
    heap.unlink()
    _, (_, place) = heap.__reduce__()
    shown = "/".join(str(place).split("/")[2::2])
    listed = ungil("heap", "ls").stdout
    assert line_of(listed, shown)
    assert name not in listed
    assert f"heap {shown}" in " ".join(ungil("heap", "stat", shown).stdout.split())


def test_a_heap_is_looked_into(ungil: Run, name: str) -> None:
    heap = share.Heap(name, max_size=SIZE)
    heap.root["list"] = [[1], [2], {}]
    pid = dead_child(heap)
    outcome = ungil("heap", "stat", name)
    assert (outcome.returncode, outcome.stderr) == (0, "")
    words = " ".join(outcome.stdout.split())
    assert f"heap {name} made 20" in words
    assert " dict 2 in " in words
    # What the dead one held counts until it is cleaned up after.
    assert " list 4 in " in words
    assert f" process {os.getpid()}, since 20" in words
    assert f" process {pid}, dead, not cleaned up yet" in words
    told = json.loads(ungil("heap", "stat", name, "--json").stdout)
    assert told["contents"]["types"]["dict"]["objects"] == 2
    assert told["locks"] == []


def test_garbage_is_collected(ungil: Run, name: str) -> None:
    heap = share.Heap(name, max_size=SIZE)
    dead_child(heap)
    outcome = ungil("heap", "gc", name)
    assert (outcome.returncode, outcome.stderr) == (0, "")
    words = outcome.stdout.split()
    assert words[:2] == [f"{name}:", "freed"]
    assert words[4:] == ["cleaned", "up", "after", "1", "dead", "process"]
    assert json.loads(ungil("heap", "gc", name, "--json").stdout) == {
        "schema": 1,
        "name": name,
        "freed_bytes": 0,
        "dead": 0,
    }


def test_a_heap_in_use_is_removed_by_force_alone(ungil: Run, name: str) -> None:
    heap = share.Heap(name, max_size=SIZE)
    outcome = ungil("heap", "rm", name)
    assert outcome.returncode == 1
    assert outcome.stderr == (
        f"ungil: {name} is in use by process {os.getpid()}; --force removes its name\n"
    )
    assert path_of(name).exists()
    outcome = ungil("heap", "rm", "--force", name)
    assert outcome.stdout == f"{name}: removed; process {os.getpid()} still has it\n"
    assert not path_of(name).exists()
    heap.root["still"] = "here"


def test_a_heap_that_nobody_uses_is_removed(ungil: Run, name: str) -> None:
    share.Heap(name, max_size=SIZE).close()
    assert ungil("heap", "rm", name).stdout == f"{name}: removed\n"
    outcome = ungil("heap", "rm", name)
    assert (outcome.returncode, outcome.stderr) == (2, f"ungil: there is no heap named '{name}'\n")


def test_what_is_no_heap_is_listed_as_such_and_removed_by_force(ungil: Run, name: str) -> None:
    path_of(name).write_bytes(b"text")
    path_of(name).chmod(0o600)
    why = f"{path_of(name)} is not a heap of this version of ungil, or was cut off"
    assert line_of(ungil("heap", "ls").stdout, name).endswith(why)
    for command in ("stat", "gc"):
        outcome = ungil("heap", command, name)
        assert (outcome.returncode, outcome.stderr) == (1, f"ungil: {name}: {why}\n")
    outcome = ungil("heap", "rm", name)
    assert (outcome.returncode, outcome.stderr) == (
        1,
        f"ungil: {name}: {why}; --force removes it even if a process uses it\n",
    )
    assert ungil("heap", "rm", "--force", name).stdout == f"{name}: removed\n"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["stat", "nothing-here"], "there is no heap named 'nothing-here'"),
        (["gc", "no name"], "'no name' cannot be the name of a heap"),
        (["stat", "1/x"], "'1/x' is neither the name of a heap nor PID/FILE of a process"),
        (["stat", "999999999/3"], "process 999999999 has no heap open as file 3"),
        (["rm", "1/2"], "'1/2' is not a name: a heap without one disappears with its last process"),
    ],
    ids=lambda it: it if isinstance(it, str) else " ".join(it),
)
def test_mistakes_are_told_in_one_sentence(ungil: Run, words: list[str], sentence: str) -> None:
    outcome = ungil("heap", *words)
    assert (outcome.returncode, outcome.stdout) == (2, "")
    assert outcome.stderr.startswith(f"ungil: {sentence}")
    assert outcome.stderr.count("\n") == 1
