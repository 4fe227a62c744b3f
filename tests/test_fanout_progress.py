"""How far a fan-out is, told to functions and drawn on terminals."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fanout_contract.items import Waiting
from fanout_contract.modes import THREADS
from terminals import Start, Terminal

from ungil.fanout import Backoff, Fanout, Progress, fanout
from ungil.fanout import _progress as progress_module
from ungil.fanout._progress import Meter, kinds
from ungil.formatting import clock_duration as duration


class Told:
    """Remembers what it is told, and calls back when it hears what it waits for."""

    def __init__(self) -> None:
        self.all: list[Progress] = []

    def __call__(self, progress: Progress) -> None:
        self.all.append(progress)

    @property
    def last(self) -> Progress:
        return self.all[-1]


def every_fifth_fails(item: int) -> int:
    if item % 5 == 0:
        raise KeyError(item) if item % 2 else ConnectionRefusedError(item)
    return item


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Functions are called more often than once a second."""
    monkeypatch.setattr(progress_module, "_CALLS_EVERY", 0.001)


def test_the_last_word_is_how_it_ended() -> None:
    told = Told()
    list(fanout(every_fifth_fails, range(100), progress=told, limit=7, retries=1, backoff=NOW))
    last = told.last
    assert (last.total, last.done, last.failed, last.running) == (100, 100, 20, 0)
    assert last.failures == {"ConnectionRefusedError": 10, "KeyError": 10}
    assert (last.retried, last.resumed, last.limit) == (20, 0, 7)
    assert last.left is None
    assert last.seconds > 0
    assert last.rate > 0


NOW = Backoff(0)


@pytest.mark.usefixtures("often")
def test_what_runs_is_told_while_it_runs() -> None:
    heard = threading.Event()

    def tell(progress: Progress) -> None:
        if (progress.done, progress.running) == (0, 3):
            heard.set()

    def wait(item: int) -> int:
        assert heard.wait(60)
        return item

    assert [it.value for it in fanout(wait, range(3), progress=tell, limit=3)] == [0, 1, 2]


def test_an_input_without_a_length_has_no_total() -> None:
    told = Told()
    list(fanout(every_fifth_fails, iter(range(10)), progress=told))
    assert (told.last.total, told.last.left) == (None, None)
    assert str(told.last).startswith("10 done, 2 failed (")


@pytest.mark.usefixtures("often")
def test_what_the_function_raises_is_raised_and_nothing_more_starts() -> None:
    def fail(progress: Progress) -> None:
        if progress.done:
            raise RuntimeError("the display is broken")

    def endless() -> Iterator[int]:
        item = 0
        while True:
            yield (item := item + 1)

    with pytest.raises(RuntimeError, match="the display is broken"):
        for _ in fanout(every_fifth_fails, endless(), progress=fail, limit=10):
            pass


def test_what_the_function_raises_at_the_end_is_raised() -> None:
    def fail(progress: Progress) -> None:
        raise RuntimeError("the display is broken")

    before = set(threading.enumerate())
    came: list[int] = []
    with pytest.raises(RuntimeError, match="the display is broken"):
        came += [it.item for it in fanout(every_fifth_fails, range(3), progress=fail)]
    THREADS.settle()
    assert set(threading.enumerate()) <= before


def test_who_leaves_early_hears_the_last_word() -> None:
    told = Told()
    waiting = Waiting(THREADS)
    THREADS.release(waiting.released)
    with THREADS.fanout(waiting.fn, range(1000), progress=told, limit=1) as outcomes:
        assert next(outcomes).item == 0
    # The first, and the one that had taken its place.
    assert (told.last.done, told.last.running) == (2, 0)
    waiting.check(last=1)


def test_items_of_an_earlier_run_count_as_done_and_not_for_the_rate(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    list(fanout(every_fifth_fails, range(10), journal=path))
    told = Told()
    list(fanout(every_fifth_fails, range(10), journal=path, progress=told))
    assert (told.last.done, told.last.resumed, told.last.failed) == (10, 8, 2)
    assert "8 done before" in str(told.last)
    # Two in the whole time, not ten.
    assert told.last.rate == pytest.approx(2 / told.last.seconds, rel=0.5)


def test_a_stream_tells_as_well() -> None:
    told = Told()

    async def run() -> int:
        async with Fanout(progress=told) as f:
            return len([outcome async for outcome in f.stream(every_fifth_fails, range(10))])

    assert asyncio.run(run()) == 10
    assert (told.last.total, told.last.done, told.last.failed) == (10, 10, 2)


class Clock:
    """Time, and a dispatcher that has done so much by then."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        self.progress = (0, 0, 0, 0, 0, 0, 0)
        self.failures: list[tuple[str, int]] = []
        monkeypatch.setattr("time.monotonic", lambda: self.now)

    def go_on(self, seconds: int, done_each: int, meter: Meter) -> Progress:
        """So many seconds pass, and so much is done in each."""
        for _ in range(seconds):
            self.now += 1
            self.progress = (0, self.progress[1] + done_each, 0, 0, 0, 0, 0)
            meter.read()
        return meter.read()


def test_the_rate_is_that_of_the_last_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    meter = Meter(clock, range(10_000), "work")  # pyright: ignore[reportArgumentType]
    progress = clock.go_on(60, 100, meter)
    assert (progress.rate, progress.left) == (pytest.approx(100), pytest.approx(40))
    progress = clock.go_on(30, 10, meter)
    assert (progress.rate, progress.left) == (pytest.approx(10), pytest.approx(370))
    # When nothing has ended lately, what was it on the whole?
    progress = clock.go_on(30, 0, meter)
    assert progress.rate == pytest.approx(progress.done / 120)


def test_a_progress_is_a_line() -> None:
    progress = Progress()
    progress.total, progress.done, progress.resumed, progress.retried = 10_000, 9_999, 500, 31
    progress.failures = {"timeout": 7, "OSError": 3, "KeyError": 2, "A": 1, "B": 1}
    progress.failed, progress.running, progress.limit = 14, 1, 1000
    progress.rate, progress.left, progress.seconds = 1234.5, 4000, 1
    assert str(progress) == (
        "9,999 of 10,000 (99 %) done, "
        "14 failed (7 timeout, 3 OSError, 2 KeyError, 2 others), 31 retried, "
        "500 done before, 1 running of at most 1,000, 1,234/s, 1:06:40 left"
    )


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0.0 s"), (9.94, "9.9 s"), (9.96, "10 s"), (59.6, "1:00"), (3599.7, "1:00:00")],
)
def test_times_are_as_people_write_them(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_few_kinds_of_failures_are_all_named() -> None:
    assert kinds({"A": 1, "B": 2}) == "1 A, 2 B"


BAR = """\
import sys, threading
from ungil.fanout import fanout
gate = threading.Event()
def work(item):
    if item == 5:
        gate.wait(60)
    if item == 3:
        raise ValueError(item)
    return item
for outcome in fanout(work, range(6), progress=True, limit=2):
    print("item", outcome.item, flush=True)
    if outcome.item == 4:
        sys.stdin.readline()
        gate.set()
"""


def test_a_bar_is_drawn_below_what_the_program_prints_and_stays(start: Start) -> None:
    terminal = Terminal([sys.executable, "-c", BAR], start)
    seen = terminal.read_until("5/6")
    terminal.read_until("item 4")
    assert "1 failed (1 ValueError)" in terminal.read_until("1 failed (1 ValueError)")
    assert "\x1b[?25l" in seen  # the cursor is hidden
    terminal.type(b"\n")
    assert terminal.end() == 0
    lines = [line for line in terminal.lines() if line]
    assert [line for line in lines if line.startswith("item")] == [f"item {n}" for n in range(6)]
    assert lines[-2].startswith("work  ━")
    assert "6/6  100 %" in lines[-2]
    assert lines[-1] == "1 failed (1 ValueError)"
    assert terminal.seen.rindex("\x1b[?25h") > terminal.seen.rindex("\x1b[?25l")


def test_what_goes_to_a_file_stays_away_from_the_terminal_of_the_bar(start: Start) -> None:
    terminal = Terminal([sys.executable, "-c", BAR], start, stdout=subprocess.PIPE)
    terminal.read_until("5/6")
    terminal.type(b"\n")
    assert terminal.end() == 0
    assert terminal.login.stdout is not None
    assert terminal.login.stdout.read() == "".join(f"item {n}\n" for n in range(6))
    assert "item" not in terminal.seen


def test_two_bars_are_drawn_below_one_another(start: Start) -> None:
    program = """\
import threading
from ungil.fanout import fanout
met = threading.Barrier(2)
def one(item):
    met.wait(60)
    input() if item else None
    return item
def two(item):
    met.wait(60)
    return item
def run(fn): list(fanout(fn, range(2), progress=True, limit=1))
threads = [threading.Thread(target=run, args=[fn]) for fn in (one, two)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""
    terminal = Terminal([sys.executable, "-c", program], start)
    terminal.read_until("two")
    terminal.type(b"\n")
    assert terminal.end() == 0
    lines = [line for line in terminal.lines() if "2/2  100 %" in line]
    assert sorted(line.split()[0] for line in lines) == ["one", "two"]


def test_there_is_no_bar_where_there_is_no_terminal() -> None:
    program = (
        "import sys\n"
        "from ungil.fanout import fanout\n"
        "list(fanout(str, range(3), progress=True))\n"
        "print('rich' in sys.modules)\n"
    )
    outcome = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (outcome.stdout, outcome.stderr) == ("False\n", "")


def test_a_terminal_that_cannot_draw_shows_no_bar(
    start: Start, environment: dict[str, str]
) -> None:
    program = "from ungil.fanout import fanout\nlist(fanout(str, range(3), progress=True))\n"
    terminal = Terminal([sys.executable, "-c", program], start, env=environment | {"TERM": "dumb"})
    assert terminal.end() == 0
    assert terminal.seen == ""


def test_who_leaves_a_loop_early_leaves_no_bar_behind(start: Start) -> None:
    program = (
        "from ungil.fanout import fanout\n"
        "for outcome in fanout(str, range(1000), progress=True, limit=1):\n"
        "    break\n"
        "del outcome\n"
        "print('after')\n"
        "input()\n"
    )
    terminal = Terminal([sys.executable, "-c", program], start)
    seen = terminal.read_until("after")
    assert seen.index("\x1b[?25h") < seen.index("after")
    terminal.type(b"\n")
    assert terminal.end() == 0


@pytest.mark.parametrize("progress", [None, False])
def test_nothing_is_imported_for_a_progress_that_nobody_asked_for(progress: Any) -> None:
    program = (
        "import sys\n"
        "before = set(sys.modules)\n"
        "from ungil.fanout import fanout, sleep\n"
        "async def work(item): await sleep(0)\n"
        f"list(fanout(work, range(3), progress={progress!r}, mode='lean'))\n"
        "slow = {'rich', 'json', 'threading', 'ungil.fanout._progress', 'ungil.fanout._journal'}\n"
        "print(sorted(slow & (set(sys.modules) - before)))\n"
    )
    outcome = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert outcome.stdout == "[]\n", outcome.stderr
