"""A journal: what is done is not done again, whatever happened in between."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from suite import PATIENCE_S, PROGRAMS

from ungil.fanout import Fanout, Outcome, Stopped, fanout, sleep
from ungil.fanout._journal import Journal

MODES = ["lean", "asyncio", "threads"]


class Work:
    """A function that remembers what it was called with, and fails where it is told to."""

    __qualname__ = "work"

    def __init__(self, *bad: Any) -> None:
        self.bad = set(bad)
        self.done: list[Any] = []

    def __call__(self, item: Any) -> Any:
        self.done.append(item)
        if item in self.bad:
            raise ValueError(f"{item} is bad")
        return {"of": item}


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def seen(outcomes: list[Outcome]) -> list[tuple[Any, Any, bool]]:
    return [(it.item, it.value if it.ok else str(it.exception), it.resumed) for it in outcomes]


def test_what_succeeded_is_not_done_again_and_what_failed_is(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    first = Work(2, 4)
    list(fanout(first, range(6), journal=path))
    again = Work(4)
    outcomes = list(fanout(again, range(8), journal=path))
    assert sorted(first.done) == [0, 1, 2, 3, 4, 5]
    assert sorted(again.done) == [2, 4, 6, 7]
    assert seen(outcomes) == [
        (0, {"of": 0}, True),
        (1, {"of": 1}, True),
        (2, {"of": 2}, False),
        (3, {"of": 3}, True),
        (4, "4 is bad", False),
        (5, {"of": 5}, True),
        (6, {"of": 6}, False),
        (7, {"of": 7}, False),
    ]
    assert [outcome.attempts for outcome in outcomes] == [0, 0, 1, 0, 1, 0, 1, 1]


def test_a_journal_is_lines_that_people_can_read(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    list(fanout(Work("b"), ["a", "b"], journal=path, limit=1))
    assert lines(path) == [
        {"ungil_journal": 1, "function": f"{__name__}.work", "key": None},
        {"ok": True, "key": "a", "value": {"of": "a"}},
        {"ok": False, "key": "b", "kind": "ValueError", "error": "ValueError: b is bad"},
    ]


def test_values_come_back_as_json_keeps_them(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    values: dict[str, Any] = {
        "tuple": (1, 2),
        "none": None,
        "text": "é\ud800\n",
        "object": object(),
        "cycle": [],
    }
    values["cycle"].append(values["cycle"])

    def value(name: str) -> Any:
        return values[name]

    list(fanout(value, values, journal=path))
    again = {it.item: it.value for it in fanout(value, values, journal=path)}
    # What JSON cannot hold is done all the same.
    kept = {"tuple": [1, 2], "none": None, "text": "é\ud800\n", "object": None, "cycle": None}
    assert again == kept


def test_wherever_the_file_was_cut_off_the_complete_lines_count(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    list(fanout(Work(1), range(3), journal=path, limit=1))
    whole = path.read_bytes()
    for length in range(len(whole) + 1):
        path.write_bytes(whole[:length])
        complete = (
            whole[:length].count(b'{"ok": true')
            if whole[:length].endswith(b"\n")
            else (whole[: whole.rfind(b"\n", 0, length) + 1].count(b'{"ok": true'))
        )
        with_the_rest = Work()
        outcomes = list(fanout(with_the_rest, range(3), journal=path))
        assert [outcome.value for outcome in outcomes] == [{"of": 0}, {"of": 1}, {"of": 2}]
        assert len(with_the_rest.done) == 3 - complete
        assert sum(line.get("ok", False) for line in lines(path)) == 3


def test_two_runs_cannot_have_one_journal(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    with fanout(Work(), range(3), journal=path) as outcomes:
        next(outcomes)
        with pytest.raises(RuntimeError, match="is in use by another run: wait until that ends"):
            fanout(Work(), range(3), journal=path)
    assert len(list(fanout(Work(), range(3), journal=path))) == 3


def other(item: Any) -> Any:
    return item


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"sw1\nsw2\n", r"'[^']+' is not a journal of a fan-out; name another file"),
        (b'{"host": 1}', r"'[^']+' is not a journal of a fan-out; name another file"),
        (b'{"ungil_journal": 2}\n', r"the journal '[^']+' comes from a newer version of ungil"),
        (b'{"ungil_journal": \n', r"line 1 of the journal '[^']+' is damaged; remove that line"),
        (
            b'{"ungil_journal": 1, "function": "a.b", "key": null}\n',
            r"was written with function a\.b, not .*\.other: name another file, or remove it",
        ),
        (b'HEAD\n{"ok": true, "key": "a\n', r"line 2 of the journal '[^']+' is damaged"),
        (b'HEAD\n{"ok": true}\n{}\n', r"line 2 of the journal '[^']+' is damaged"),
        (b"HEAD\n[]\n", r"line 2 of the journal '[^']+' is damaged"),
        (b"HEAD\n\xff\n", r"line 2 of the journal '[^']+' is damaged"),
    ],
)
def test_a_file_that_is_another_is_told_and_left_as_it_is(
    tmp_path: Path, content: bytes, sentence: str
) -> None:
    path = tmp_path / "journal"
    head = f'{{"ungil_journal": 1, "function": "{__name__}.other", "key": null}}'
    path.write_bytes(content.replace(b"HEAD", head.encode()))
    before = path.read_bytes()
    with pytest.raises(ValueError, match=sentence):
        fanout(other, range(3), journal=path)
    assert path.read_bytes() == before


def test_a_device_is_no_journal() -> None:
    with pytest.raises(ValueError, match="the journal '/dev/zero' is not a regular file"):
        fanout(other, range(3), journal="/dev/zero")


def name_of_item(item: Any) -> str:
    return item.name


class Device:
    def __init__(self, name: str) -> None:
        self.name = name


def test_items_that_json_cannot_hold_have_a_key(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    devices = [Device("a"), Device("b")]
    with pytest.raises(
        TypeError, match="the journal needs key, a function that returns a text for"
    ):
        list(fanout(Work(), devices, journal=path))
    path.unlink()
    list(fanout(name_of_item, devices, journal=path, key=name_of_item))
    again = list(fanout(name_of_item, [Device("b")], journal=path, key=name_of_item))
    assert [(it.value, it.resumed) for it in again] == [("b", True)]
    with pytest.raises(ValueError, match=r"was written with key .*name_of_item, not None"):
        fanout(name_of_item, ["b"], journal=path)
    with pytest.raises(ValueError, match="key needs journal"):
        fanout(other, range(3), key=name_of_item)


def test_equal_items_of_one_run_all_run(tmp_path: Path) -> None:
    work = Work()
    list(fanout(work, [1, 1, 1], journal=tmp_path / "journal", limit=1))
    assert work.done == [1, 1, 1]


def test_what_was_stopped_is_not_done(tmp_path: Path) -> None:
    path = tmp_path / "journal"

    async def forever(item: int) -> int:
        if item:
            await sleep(1000)
        return item

    with fanout(forever, range(3), journal=path, mode="lean") as outcomes:
        assert next(outcomes).value == 0
    assert [line["key"] for line in lines(path)[1:]] == [0]


def test_a_journal_that_cannot_be_written_ends_the_run_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    program = (
        "import resource, sys\n"
        "from ungil.fanout import fanout\n"
        "def work(item): return 'x' * 100\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "came = 0\n"
        "try:\n"
        "    for outcome in fanout(work, range(10**9), journal=sys.argv[1], limit=1):\n"
        "        came += outcome.ok\n"
        "except OSError as error: print(came < 20_000, error)\n"
    )
    outcome = subprocess.run(
        [sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True
    )
    assert outcome.stdout == f"True [Errno 27] File too large: {str(path)!r}\n"
    # What fitted is there, and the rest of the line that did not is cut off.
    assert 5 < len(Journal(path, "__main__.work")) < 9


def test_a_stream_resumes_as_well(tmp_path: Path) -> None:
    path = tmp_path / "journal"

    async def items() -> AsyncIterator[int]:
        for item in range(500):
            yield item

    async def run(work: Any) -> list[Outcome]:
        async with Fanout(journal=path) as f:
            return [outcome async for outcome in f.stream(work, items())]

    asyncio.run(run(Work(7)))
    again = Work()
    outcomes = asyncio.run(run(again))
    assert again.done == [7]
    assert sorted(it.item for it in outcomes) == list(range(500))
    assert sum(it.resumed for it in outcomes) == 499


def test_items_of_an_earlier_run_do_not_wait_for_those_that_run(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    gate = threading.Event()

    class Gated(Work):
        __qualname__ = "work"

        def __call__(self, item: Any) -> Any:
            assert gate.wait(PATIENCE_S)
            return super().__call__(item)

    list(fanout(Work(), range(1, 100), journal=path))

    async def run() -> list[bool]:
        resumed: list[bool] = []
        async with Fanout(journal=path, mode="threads") as f:
            async for outcome in f.stream(Gated(), range(100)):
                resumed.append(outcome.resumed)
                gate.set()
        return resumed

    resumed = asyncio.run(run())
    assert resumed[0]
    assert sorted(resumed) == [False] + [True] * 99


@pytest.mark.parametrize("mode", MODES)
def test_a_kill_loses_no_more_than_what_ran(tmp_path: Path, mode: str) -> None:
    journal, ran = tmp_path / "journal", tmp_path / "ran"
    told, tell = os.pipe()
    words = [sys.executable, str(PROGRAMS / "fanout_killed.py"), str(journal), str(ran), str(tell)]
    with subprocess.Popen([*words, "hangs", mode], pass_fds=[tell]) as process:
        seen = b""
        while len(seen) < 10:
            seen += os.read(told, 10)
        process.send_signal(signal.SIGKILL)
    os.close(told)
    done = [line["key"] for line in lines(journal)[1:]]
    assert sorted(done) == list(range(50))
    outcome = subprocess.run(
        [*words, "ends", mode], pass_fds=[tell], capture_output=True, text=True, check=True
    )
    os.close(tell)
    expected = [f"{item} {item * item} {item < 50}" for item in range(100)]
    assert outcome.stdout.splitlines() == expected
    times = [ran.read_text().split().count(str(item)) for item in range(100)]
    assert times == [1] * 50 + [2] * 10 + [1] * 40


def test_a_journal_that_a_killed_run_left_is_free(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    program = (
        "import os, signal, sys\n"
        "from ungil.fanout import fanout\n"
        "outcomes = fanout(str, range(9), journal=sys.argv[1])\n"
        "next(outcomes)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    assert subprocess.run([sys.executable, "-c", program, str(path)]).returncode == -9
    assert all(outcome.ok for outcome in fanout(str, range(9), journal=path))


def test_a_function_has_the_same_name_as_a_program_and_as_a_module(tmp_path: Path) -> None:
    (tmp_path / "tasks.py").write_text(
        "import functools, sys\n"
        "from ungil.fanout import fanout\n"
        "def check(item, extra=0): return item + extra\n"
        "def run():\n"
        "    for fn in (check, functools.partial(check, extra=0)):\n"
        "        print([it.resumed for it in fanout(fn, [1], journal='journal')])\n"
        "if __name__ == '__main__': run()\n"
    )
    ways = [["tasks.py"], ["-m", "tasks"], ["-c", "import tasks; tasks.run()"]]
    told = [
        subprocess.run(
            [sys.executable, *way], cwd=tmp_path, capture_output=True, text=True, check=True
        ).stdout.split()
        for way in ways
    ]
    assert told == [["[False]", "[True]"], ["[True]", "[True]"], ["[True]", "[True]"]]


def test_stopped_is_told_from_done(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    outcomes = fanout(Work(0), [0], journal=path, retries=1, retry_if=lambda _: outcomes.stop())
    # What runs when everything is stopped comes to its own end, and is tried no more.
    [outcome] = outcomes
    assert not isinstance(outcome.exception, Stopped)
    assert re.fullmatch(r'.*\n\{"ok": false.*\n', path.read_text())
