"""Fan-outs over processes of this machine: real ones, which are killed."""

from __future__ import annotations

import asyncio
import itertools
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import fanout_functions as functions
import pytest

from ungil.errors import EngineError, NotCarried, WorkerDied
from ungil.fanout import Fanout, Outcome, Stopped, _shards, fanout

TWO = "processes:2"


def children() -> set[int]:
    """The workers of this process."""
    found: set[int] = set()
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text().rpartition(")")[2].split()
            command = (status.parent / "cmdline").read_bytes()
        except OSError:
            continue  # it has ended
        if int(fields[1]) == os.getpid() and fields[0] != "Z" and b"spawn_main" in command:
            found.add(int(status.parent.name))
    return found


def eventually(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + functions.PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, "it never came to be"
        time.sleep(0.01)


def is_alive(process: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{process}/status").read_text()
    except OSError:
        return False


def folder(path: Path, name: str) -> Path:
    made = path / name
    made.mkdir()
    return made


def most_at_once(spans: list[tuple[float, float]]) -> int:
    edges = [(begun, 1) for begun, _ in spans] + [(ended, -1) for _, ended in spans]
    return max(itertools.accumulate(change for _, change in sorted(edges)))


@pytest.mark.parametrize("fn", [functions.double, functions.double_in_a_thread])
def test_outcomes_come_in_the_order_of_the_items(fn: Callable[[int], Any]) -> None:
    outcomes = list(fanout(fn, range(2000), engine=TWO, limit=50))
    assert [(o.index, o.item, o.value) for o in outcomes] == [(n, n, 2 * n) for n in range(2000)]


def test_all_workers_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # However long the second one takes to start.
    monkeypatch.setattr(_shards, "_PATIENCE_SECONDS", functions.PATIENCE_S)
    # Four calls that wait for each other, at most two of them in one process.
    processes = [
        outcome.unwrap()
        for outcome in fanout(functions.meet, [(tmp_path, 4)] * 4, engine=TWO, limit=4)
    ]
    assert len(set(processes)) == 2
    assert os.getpid() not in processes


def test_one_item_needs_one_worker() -> None:
    with fanout(functions.process, [1], engine="processes:8") as outcomes:
        [outcome] = outcomes
        assert outcome.value not in (None, os.getpid())


def test_no_items_need_no_worker() -> None:
    assert list(fanout(functions.process, [], engine=TWO)) == []


def test_an_endless_input_is_taken_as_it_is_needed() -> None:
    taken = itertools.count()
    outcomes = fanout(functions.double, taken, engine=TWO, limit=10)
    assert [outcome.value for outcome in itertools.islice(outcomes, 3000)][-1] == 5998
    outcomes.close()
    assert next(taken) < 3000 + _shards._MOST_DEPTH * 2 + 10_000  # pyright: ignore[reportPrivateUsage]


def test_what_the_input_raises_comes_after_the_outcomes_before_it() -> None:
    def items() -> Iterator[int]:
        yield from range(5)
        raise OSError("no more hosts")

    seen: list[int] = []
    with pytest.raises(OSError, match="no more hosts"):
        seen.extend(outcome.unwrap() for outcome in fanout(functions.double, items(), engine=TWO))
    assert seen == [0, 2, 4, 6, 8]


def test_what_cannot_cross_is_the_outcome_of_its_item_alone() -> None:
    items: list[Any] = [1, "raises", "unloadable", "stubborn", functions.Stubborn(), "exits", 2]
    outcomes = list(fanout(functions.peculiar, items, engine=TWO, retries=0))
    assert [outcome.value for outcome in outcomes if outcome.ok] == [1, 2]
    errors = {outcome.index: outcome.exception for outcome in outcomes if not outcome.ok}
    assert isinstance(errors[1], KeyError)
    assert isinstance(errors[5], SystemExit)
    assert [index for index, error in errors.items() if isinstance(error, NotCarried)] == [2, 3, 4]
    assert re.match(r"Unloadable: this: that \(which cannot be pickled: ", str(errors[2]))
    assert re.match(r"the function returned a Stubborn, which cannot be pick", str(errors[3]))
    assert re.match(r"the item cannot be pickled: TypeError: a Stubborn stays ", str(errors[4]))


def test_an_exception_says_where_it_was_raised() -> None:
    [outcome] = fanout(functions.peculiar, ["raises"], engine=TWO)
    [note] = outcome.exception.__notes__  # pyright: ignore
    assert re.fullmatch(r"raised on .*, process \d+: peculiar \(.*fanout_functions.py:\d+\)", note)


def test_what_cannot_cross_is_not_tried_again() -> None:
    asked: list[Exception] = []
    [outcome] = fanout(
        functions.peculiar, ["stubborn"], engine=TWO, retries=3, retry_if=asked.append
    )
    assert outcome.attempts == 1
    assert asked == []


def test_a_failed_item_is_tried_again_as_the_caller_says(tmp_path: Path) -> None:
    asked: list[Exception] = []

    def worth_it(error: Exception) -> bool:
        asked.append(error)
        return True

    items = [(tmp_path, number) for number in range(40)]
    outcomes = list(fanout(functions.fail_once, items, engine=TWO, retries=1, retry_if=worth_it))
    assert [outcome.value for outcome in outcomes] == list(range(40))
    assert {outcome.attempts for outcome in outcomes} == {2}
    assert len(asked) == 40


def test_what_retry_if_raises_ends_the_fan_out() -> None:
    def retry_if(_error: Exception) -> bool:
        raise ZeroDivisionError("a mistake in retry_if")

    with pytest.raises(ZeroDivisionError):
        list(fanout(functions.peculiar, ["raises"], engine=TWO, retries=1, retry_if=retry_if))


@pytest.mark.parametrize("limit", [1, 3])
def test_the_limit_holds_for_all_workers_together(limit: int) -> None:
    outcomes = fanout(functions.span, range(60), engine=TWO, limit=limit)
    assert most_at_once([outcome.unwrap() for outcome in outcomes]) <= limit


def test_the_limit_of_a_group_holds_for_all_workers_together() -> None:
    outcomes = list(
        fanout(functions.span, range(60), engine=TWO, limit=20, group=lambda n: n % 3, per_group=1)
    )
    for group in range(3):
        spans = [outcome.unwrap() for outcome in outcomes if outcome.item % 3 == group]
        assert most_at_once(spans) == 1


def test_a_coroutine_is_cancelled_when_its_time_is_over(tmp_path: Path) -> None:
    late, in_time = fanout(functions.hang, [tmp_path, None], engine=TWO, timeout=2)
    assert isinstance(late.exception, TimeoutError)
    assert in_time.ok
    assert not late.abandoned
    assert [path.name.partition("-")[0] for path in sorted(tmp_path.iterdir())] == [
        "begun",
        "cancelled",
    ]


def test_a_thread_is_abandoned_when_its_time_is_over_and_ends_with_its_worker(
    tmp_path: Path,
) -> None:
    with fanout(functions.hang_in_a_thread, [tmp_path], engine=TWO, timeout=0.3) as outcomes:
        [late] = outcomes
    assert isinstance(late.exception, TimeoutError)
    assert late.abandoned
    assert not children()


@pytest.mark.parametrize(("way", "end"), [("exit", "ended with status 3"), ("segfault", "SIGSEGV")])
def test_an_item_that_kills_its_worker_is_found_among_many(way: str, end: str) -> None:
    killers = {7, 130, 131}
    items = [(number, way if number in killers else "") for number in range(200)]
    outcomes = list(fanout(functions.die, items, engine=TWO, limit=40, retries=2))
    assert {outcome.index for outcome in outcomes if not outcome.ok} == killers
    assert all(outcome.value == outcome.index for outcome in outcomes if outcome.ok)
    for outcome in outcomes:
        if not outcome.ok:
            assert isinstance(outcome.exception, WorkerDied)
            text = str(outcome.exception)
            assert text.startswith("the worker died while it ran this item: it ")
            assert text.endswith(end)


def test_workers_that_only_die_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_shards, "_MOST_DEATHS", 3)
    items = [(number, "exit") for number in range(100)]
    seen: list[Outcome] = []
    with pytest.raises(EngineError, match="4 workers died and no item ended in between; the last"):
        seen.extend(fanout(functions.die, items, engine=TWO, limit=10))


def test_a_worker_that_is_killed_loses_no_item(tmp_path: Path) -> None:
    processes, go = folder(tmp_path, "processes"), folder(tmp_path, "go")

    def kill_one() -> None:
        functions.wait_for(processes, 2)
        # Each is in the middle of five items.
        victim = int(next(processes.iterdir()).name)
        os.kill(victim, signal.SIGKILL)
        eventually(lambda: not is_alive(victim))
        (go / "now").touch()

    items = [(processes, go, number) for number in range(100)]
    killer = threading.Thread(target=kill_one)
    killer.start()
    outcomes = list(fanout(functions.mark_and_wait, items, engine=TWO, limit=10))
    killer.join()
    assert [outcome.unwrap() for outcome in outcomes] == list(range(100))
    assert {outcome.attempts for outcome in outcomes} == {1}


def test_what_workers_have_not_begun_does_not_begin_after_a_stop(tmp_path: Path) -> None:
    begun, go = folder(tmp_path, "begun"), folder(tmp_path, "go")
    items = [(begun, go, number) for number in range(100)]
    journal = tmp_path / "journal"
    options: dict[str, Any] = {"journal": journal, "key": str}
    outcomes = fanout(
        functions.begin_and_wait, items, engine=TWO, limit=2, in_order=False, **options
    )

    def stop() -> None:
        functions.wait_for(begun, 2)
        outcomes.stop()

    threading.Thread(target=stop).start()
    ended: list[int] = []
    for outcome in outcomes:
        if outcome.ok:
            ended.append(outcome.unwrap())
        else:
            # The workers know by now.
            assert isinstance(outcome.exception, Stopped)
            (go / "now").touch()
    assert len(ended) == 2
    assert sorted(path.name for path in begun.iterdir()) == sorted(map(str, ended))
    assert len(journal.read_text().splitlines()) == 1 + 2


def test_workers_end_with_the_fan_out() -> None:
    assert len(list(fanout(functions.double, range(100), engine=TWO))) == 100
    assert not children()


def test_workers_end_with_a_loop_that_is_left(tmp_path: Path) -> None:
    for outcome in fanout(functions.hang, [None, None, tmp_path, tmp_path], engine=TWO, limit=4):
        assert outcome.ok
        assert children()
        break
    assert not children()
    # They had the time to cancel what they ran.
    names = sorted(path.name for path in tmp_path.iterdir())
    assert [name.replace("begun", "cancelled") for name in names if "begun" in name] == [
        name for name in names if "cancelled" in name
    ]


def test_workers_do_not_wait_for_threads(tmp_path: Path) -> None:
    with fanout(functions.hang_in_a_thread, [None, tmp_path], engine=TWO, limit=2) as outcomes:
        next(outcomes)
        functions.wait_for(tmp_path)
    assert not children()


PROGRAM = """
import sys
sys.path[:0] = {path!r}
import fanout_functions as functions
from pathlib import Path
from ungil.fanout import fanout

if __name__ == "__main__":
    for outcome in fanout(functions.hang, [Path({folder!r})] * 2, engine="processes:2", limit=2):
        print(outcome)
"""


@pytest.fixture
def hanging(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], set[int]]]:
    """A program with two workers, each in the middle of an item."""
    begun = folder(tmp_path, "begun")
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.format(path=[str(Path(__file__).parent)], folder=str(begun)))
    with subprocess.Popen(
        [sys.executable, program],
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            functions.wait_for(begun, 2)
            yield process, {int(path.name.partition("-")[2]) for path in begun.iterdir()}
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


def test_an_interrupt_from_the_keyboard_ends_everything_quietly(
    hanging: tuple[subprocess.Popen[str], set[int]], tmp_path: Path
) -> None:
    process, workers = hanging
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=functions.PATIENCE_S)
    assert process.returncode == -signal.SIGINT
    assert not any(map(is_alive, workers))
    assert errors.count("Traceback") == 1
    assert errors.endswith("KeyboardInterrupt\n")
    cancelled = {f"cancelled-{worker}" for worker in workers}
    assert cancelled <= {path.name for path in (tmp_path / "begun").iterdir()}


def test_workers_end_when_their_caller_is_killed(
    hanging: tuple[subprocess.Popen[str], set[int]],
) -> None:
    process, workers = hanging
    process.kill()
    eventually(lambda: not any(map(is_alive, workers)))


def run(program: str, path: Path) -> subprocess.CompletedProcess[str]:
    path.write_text(program)
    return subprocess.run(
        [sys.executable, path],
        capture_output=True,
        check=False,
        text=True,
        timeout=functions.PATIENCE_S,
    )


def test_a_program_that_would_start_itself_again_is_told(tmp_path: Path) -> None:
    program = """
from ungil.fanout import fanout
print([outcome.unwrap() for outcome in fanout(abs, [-1, -2], engine="processes:2")])
"""
    done = run(program, tmp_path / "unguarded.py")
    assert done.returncode == 1
    assert done.stdout == ""
    assert "EngineError: a worker process ended with status 1 before it could start" in done.stderr
    assert 'if __name__ == "__main__":' in done.stderr


def test_a_function_that_workers_cannot_find_is_named(tmp_path: Path) -> None:
    program = """
from ungil.fanout import fanout
if __name__ == "__main__":
    def here_only(item): return item
    list(fanout(here_only, [1, 2], engine="processes:2"))
"""
    done = run(program, tmp_path / "hidden.py")
    assert done.returncode == 1
    assert "EngineError: a worker process cannot load the function: " in done.stderr
    assert "here_only" in done.stderr


def test_a_function_that_cannot_be_pickled_is_refused() -> None:
    with pytest.raises(TypeError, match=r"<lambda>.* cannot be sent to other processes \(.*\): "):
        list(fanout(lambda item: item, [1], engine=TWO))


@pytest.mark.parametrize(
    "engine", ["processes:0", "processes:many", "threads", "tcp://", "ftp://host:1", 2, object()]
)
def test_an_engine_that_is_none_is_refused(engine: object) -> None:
    with pytest.raises(
        ValueError, match=r'is not one of "processes", "processes:N", "dask", "ray",'
    ):
        fanout(functions.double, [1], engine=engine)


@pytest.mark.parametrize("mode", ["lean", "green"])
def test_a_mode_with_its_own_loop_is_refused(mode: Any) -> None:
    with pytest.raises(ValueError, match="cannot be used with an engine"):
        fanout(functions.double, [1], engine=TWO, mode=mode)


def test_the_mode_of_the_workers_is_told() -> None:
    assert fanout(functions.double, [], engine=TWO).mode == "asyncio"
    assert fanout(functions.process, [], engine=TWO).mode == "threads"


def test_a_stream_gives_outcomes_as_they_finish(tmp_path: Path) -> None:
    go, empty = folder(tmp_path, "go"), folder(tmp_path, "empty")

    async def indices() -> list[int]:
        seen: list[int] = []
        async with Fanout(engine=TWO, limit=2) as fan:
            items = [(go, 1), (empty, 0)]
            async for outcome in fan.stream(functions.wait_for_files, items):
                seen.append(outcome.index)
                (go / "now").touch()
        return seen

    assert asyncio.run(indices()) == [1, 0]


def test_a_stream_takes_items_that_come_slowly() -> None:
    async def items() -> AsyncIterator[int]:
        for number in range(500):
            if number % 100 == 0:
                await asyncio.sleep(0.001)
            yield number

    async def values() -> list[int]:
        async with Fanout(engine=TWO, limit=20) as fan:
            return [outcome.unwrap() async for outcome in fan.stream(functions.double, items())]

    assert sorted(asyncio.run(values())) == [2 * number for number in range(500)]


def test_an_endless_stream_is_taken_as_it_is_needed() -> None:
    taken = itertools.count()

    async def items() -> AsyncIterator[int]:
        for number in taken:
            yield number

    async def first() -> None:
        async with Fanout(engine=TWO, limit=5) as fan:
            seen = 0
            async for _ in fan.stream(functions.double, items()):
                seen += 1
                if seen == 100:
                    break

    asyncio.run(first())
    assert next(taken) < 100 + 4 * _shards._MOST_DEPTH  # pyright: ignore[reportPrivateUsage]
    assert not children()


def test_a_stream_that_is_left_ends_its_workers(tmp_path: Path) -> None:
    async def leave() -> None:
        async with Fanout(engine=TWO, limit=2) as fan:
            async for outcome in fan.stream(functions.hang, [None, tmp_path]):
                assert outcome.ok
                break

    asyncio.run(leave())
    assert not children()


def test_a_stream_tells_why_workers_cannot_start() -> None:
    async def start() -> None:
        async with Fanout(engine=TWO) as fan:
            async for _ in fan.stream(lambda item: item, [1]):
                pass

    with pytest.raises(TypeError, match="cannot be sent to other processes"):
        asyncio.run(start())
