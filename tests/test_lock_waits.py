"""Who waited for a lock off the GIL, and who let go of it: recorded, and not guessed."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pythons import Python, pythons
from suite import PROGRAMS
from tracing import Recording, trace

Run = Callable[..., subprocess.CompletedProcess[str]]
PROGRAM = PROGRAMS / "lock_holders.py"
every_python = pytest.mark.parametrize("python", pythons(since=(3, 8)), ids=str)


def recorded(folder: Path, python: Python, kind: str, *options: str) -> Recording:
    """A recording of threads that sleep in this way."""
    return trace(folder, python.path, PROGRAM, kind, options=options)


def waits_of(recording: Recording) -> list[dict[str, Any]]:
    """What the threads waited for that the program tells of.

    A thread may also sleep for moments until the interpreter has begun it.
    """
    tids = {tid for tid, _ in json.loads(recording.stdout)}
    return [row for row in recording.process["lock_waits"] if row["tid"] in tids]


def waits_for_one_lock(recording: Recording) -> list[dict[str, Any]]:
    """Of these, those for the lock that most of the threads waited for."""
    rows = waits_of(recording)
    ((lock, _),) = Counter(row["lock"] for row in rows).most_common(1)
    return [row for row in rows if row["lock"] == lock]


def ended(rows: list[dict[str, Any]]) -> Counter[tuple[int, int | None]]:
    """Who ended whose waits, how often."""
    found: Counter[tuple[int, int | None]] = Counter()
    for row in rows:
        for waker in row["wakers"]:
            found[row["tid"], waker["tid"]] += waker["count"]
    return found


def told(recording: Recording) -> Counter[tuple[int, int | None]]:
    """The same as the program says."""
    return Counter((tid, waker) for tid, waker in json.loads(recording.stdout))


@every_python
def test_who_let_go_of_a_lock_is_known(tmp_path: Path, python: Python) -> None:
    recording = recorded(tmp_path, python, "alone")
    rows = waits_for_one_lock(recording)
    assert ended(rows) == told(recording)
    assert {row["cause"] for row in rows} == {"lock off the GIL"}
    assert not any(row["contended"] for row in rows), "nobody else wanted it"
    assert recording.process["parks"] is None


@every_python
def test_who_put_an_item_into_a_queue_is_known(tmp_path: Path, python: Python) -> None:
    recording = recorded(tmp_path, python, "queue")
    # Who was woken may sleep once more, for the lock that the other one still has.
    assert set(ended(waits_of(recording))) == set(told(recording))


@every_python
def test_a_lock_that_goes_from_one_to_the_next_is_contended(tmp_path: Path, python: Python) -> None:
    recording = recorded(tmp_path, python, "together")
    rows = waits_for_one_lock(recording)
    assert ended(rows) == told(recording)
    assert len({row["lock"] for row in rows if row["contended"]}) == 1
    assert all(row["contended"] for row in rows)


@every_python
def test_a_wait_that_ends_by_its_time_limit_was_ended_by_nobody(
    tmp_path: Path, python: Python
) -> None:
    recording = recorded(tmp_path, python, "timeout")
    assert ended(waits_for_one_lock(recording)) == told(recording)


@pytest.mark.parametrize("policy", ["interactive", "fair", "batch"])
@pytest.mark.parametrize("python", pythons("3.8", "3.11", "3.13"), ids=str)
def test_it_is_known_under_every_policy(tmp_path: Path, python: Python, policy: str) -> None:
    recording = recorded(tmp_path, python, "together", "--policy", policy)
    assert ended(waits_for_one_lock(recording)) == told(recording)


def test_the_screen_tells_of_locks_that_threads_take_in_turn(ungil: Run, tmp_path: Path) -> None:
    program = tmp_path / "turns.py"
    program.write_text(
        "import threading, time\n"
        "lock = threading.Lock()\n"
        "def works():\n"
        "    for _ in range(10):\n"
        "        with lock:\n"
        "            time.sleep(0.02)\n"
        "threads = [threading.Thread(target=works, name=name) for name in ('ann', 'ben', 'cid')]\n"
        "[it.start() for it in threads], [it.join() for it in threads]\n"
    )
    path = trace(tmp_path, sys.executable, program).path
    lines = ungil("report", str(path)).stdout.splitlines()
    (head,) = [number for number, it in enumerate(lines) if it.startswith("Who waited for locks")]
    row = lines[head + 1].split()
    assert row[0] in {"ann", "ben", "cid"}
    assert {"ann", "ben", "cid"} & set(row[1:]), lines[head + 1]
