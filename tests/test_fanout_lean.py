"""The loop of `ungil.fanout` that does without asyncio: coroutines, time, cancellation."""

import asyncio
import contextvars
import decimal
import gc
import os
import random
import signal
import subprocess
import sys
import threading
import time
import traceback
import weakref
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterable, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ungil._native import Dispatcher, Lean
from ungil.fanout import Cancelled, Outcome, fanout, sleep, wait_writable


def lean(fn: Callable[[Any], Any], items: Iterable[Any], **options: Any) -> list[Outcome]:
    return list(fanout(fn, items, mode="lean", **options))


def values(outcomes: Iterable[Outcome]) -> list[Any]:
    return [outcome.unwrap() for outcome in outcomes]


def driven(fn: Callable[[Any], Any], items: Iterable[Any]) -> list[Outcome]:
    """As `lean`, for functions that are no `async def`."""
    dispatcher = Dispatcher(iter(items), limit=100, window=100, in_order=True)
    loop = Lean(fn, dispatcher, None)
    outcomes: list[Outcome] = []
    while not dispatcher.ended or dispatcher.ready:
        loop.advance()
        while (outcome := dispatcher.take()) is not None:
            outcomes.append(outcome)
    return outcomes


def python(program: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-X", "dev", "-c", program]
    return subprocess.run(command, capture_output=True, text=True, timeout=100)


# Coroutines


def test_values_come_in_the_order_of_the_items_and_not_of_their_end() -> None:
    async def task(delay: float) -> float:
        await sleep(delay)
        return delay

    delays = [0.02, 0.0, 0.01, 0.005]
    outcomes = lean(task, delays)
    assert values(outcomes) == delays
    assert sorted(outcomes, key=lambda o: o.finished) == [outcomes[i] for i in (1, 3, 2, 0)]


def test_asyncio_is_not_imported() -> None:
    result = python(
        "import sys; from ungil.fanout import fanout, sleep\n"
        "async def task(item): await sleep(0.001); return item\n"
        "outcomes = fanout(task, range(3))\n"
        "print(outcomes.mode, [o.value for o in outcomes])\n"
        "print({'asyncio', 'threading', 'typing', 'socket'} & sys.modules.keys())"
    )
    assert (result.stdout, result.stderr) == ("lean [0, 1, 2]\nset()\n", "")


def test_nobody_wakes_before_its_time() -> None:
    generator = random.Random(5)

    async def task(delays: list[float]) -> bool:
        for delay in delays:
            begin = time.monotonic()
            await sleep(delay)
            if time.monotonic() < begin + delay:
                return False
        return True

    delays = [[generator.random() / 50 for _ in range(3)] for _ in range(500)]
    assert all(values(lean(task, delays)))


def test_a_sleep_of_nothing_lets_the_others_go_first() -> None:
    steps: list[tuple[str, int]] = []

    async def task(name: str) -> None:
        for step in range(3):
            steps.append((name, step))
            await sleep(-step)

    lean(task, "ab")
    assert steps == [(name, step) for step in range(3) for name in "ab"]


def test_a_hundred_thousand_sleep_at_once() -> None:
    running = most = 0

    async def task(_: int) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        while most < 100_000:
            await sleep(0.4)
        running -= 1

    assert len(values(lean(task, range(100_000), limit=100_000))) == 100_000


def test_coroutines_that_never_wait_are_no_recursion() -> None:
    async def task(item: int) -> int:
        return item

    assert values(lean(task, range(50_000), limit=1)) == list(range(50_000))


def test_coroutines_that_never_wait_let_sleepers_wake() -> None:
    woken = False

    async def task(item: int) -> None:
        nonlocal woken
        if item == 0:
            await sleep(1e-6)
            woken = True

    def items() -> Iterator[int]:
        item = 0
        while not woken:
            yield item
            item += 1

    dispatcher = Dispatcher(items(), limit=2, window=10**9, in_order=True)
    loop = Lean(task, dispatcher, None)
    while not dispatcher.ended:
        loop.advance()
    assert woken


def test_an_endless_input_takes_no_memory() -> None:
    alive = most = 0

    class Item:
        def __init__(self) -> None:
            nonlocal alive, most
            alive += 1
            most = max(most, alive)

        def __del__(self) -> None:
            nonlocal alive
            alive -= 1

    async def task(_: Item) -> None:
        await sleep(0)

    for outcome in fanout(task, (Item() for _ in range(60_000)), mode="lean", limit=100):
        assert outcome.ok
        del outcome
    assert most < 12_000
    assert alive == 0


def test_no_more_run_at_once_than_the_limit() -> None:
    running = most = 0

    async def task(_: int) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await sleep(0.0001)
        running -= 1

    values(lean(task, range(500), limit=7))
    assert most == 7


def test_what_fails_is_tried_again() -> None:
    tries: list[int] = []

    async def task(item: int) -> int:
        await sleep(0)
        tries.append(item)
        if tries.count(item) <= item:
            raise OSError(item)
        return item

    outcomes = lean(task, range(4), retries=2)
    assert [outcome.attempts for outcome in outcomes] == [1, 2, 3, 3]
    assert [outcome.ok for outcome in outcomes] == [True, True, True, False]


@asynccontextmanager
async def entered(steps: list[str]) -> AsyncGenerator[None]:
    await sleep(0)
    steps.append("enter")
    try:
        yield
    finally:
        await sleep(0)
        steps.append("leave")


def test_exceptions_pass_through_context_managers_with_their_traceback() -> None:
    steps: list[str] = []

    async def inner() -> None:
        await sleep(0.001)
        raise ValueError("inside")

    async def task(_: int) -> None:
        async with entered(steps):
            await inner()

    (outcome,) = lean(task, [1])
    assert isinstance(outcome.exception, ValueError)
    names = [frame.name for frame in traceback.extract_tb(outcome.exception.__traceback__)]
    assert names[0] == "task"
    assert names[-1] == "inner"
    assert steps == ["enter", "leave"]


def test_each_item_has_context_variables_of_its_own() -> None:
    variable = contextvars.ContextVar("variable", default=0)
    variable.set(7)

    async def task(item: int) -> tuple[int, int]:
        before = variable.get()
        variable.set(item)
        await sleep(0)
        return before, variable.get()

    assert values(lean(task, [1, 2, 3])) == [(7, 1), (7, 2), (7, 3)]
    assert variable.get() == 7


def test_a_decimal_precision_is_that_of_one_item() -> None:
    async def task(digits: int) -> str:
        with decimal.localcontext() as context:
            context.prec = digits
            await sleep(0)
            return str(decimal.Decimal(1) / 3)

    assert values(lean(task, [2, 5, 3])) == ["0.33", "0.33333", "0.333"]


def test_a_generator_that_is_left_is_closed_by_the_loop() -> None:
    steps: list[str] = []

    async def numbers() -> AsyncIterator[int]:
        try:
            yield 1
        finally:
            await sleep(0.001)
            steps.append("closed")

    async def task(_: int) -> int:
        async for number in numbers():
            return number
        return 0

    assert values(lean(task, range(2))) == [1, 1]
    assert steps == ["closed", "closed"]


class coroutine:
    """Awaitable, and no coroutine whatever it is called."""

    def __init__(self, *yields: object) -> None:
        self.yields = yields

    def __await__(self) -> Generator[Any, Any, str]:
        yield from self.yields
        return "done"


def test_whatever_can_be_awaited_can_be_run() -> None:
    assert values(driven(coroutine, [None])) == ["done"]
    assert values(driven(sleep, [0, 0.001])) == [None, None]


def test_who_yields_nothing_lets_others_go_first() -> None:
    async def task(_: int) -> str:
        return await coroutine(None, None)

    assert values(lean(task, range(3))) == ["done"] * 3


def numbers_by_mistake(_: object) -> Iterator[int]:
    yield 1


@pytest.mark.parametrize(
    ("fn", "message"),
    [
        (str, r"str\(\) returned '1', which cannot be awaited"),
        (numbers_by_mistake, r"numbers_by_mistake\(\) returned <generator .* cannot be awaited"),
    ],
)
def test_what_returns_no_awaitable_is_told_so(fn: Callable[[Any], Any], message: str) -> None:
    (outcome,) = driven(fn, [1])
    with pytest.raises(TypeError, match=message):
        outcome.unwrap()


def test_what_raises_before_it_can_be_awaited_has_failed() -> None:
    (outcome,) = driven(int, ["x"])
    assert isinstance(outcome.exception, ValueError)


def test_each_wait_is_for_once() -> None:
    async def task(_: int) -> None:
        nap = sleep(0)
        await nap
        await nap

    (outcome,) = lean(task, [1])
    with pytest.raises(RuntimeError, match="awaited already"):
        outcome.unwrap()


@pytest.mark.parametrize(("seconds", "kind"), [(float("nan"), ValueError), ("1", TypeError)])
def test_only_a_number_of_seconds_can_be_slept(seconds: Any, kind: type[Exception]) -> None:
    with pytest.raises(kind):
        sleep(seconds)


# Other event loops


def test_who_awaits_asyncio_is_told_the_mode() -> None:
    cleaned: list[int] = []

    async def task(item: int) -> None:
        try:
            await asyncio.Future(loop=loop)
        finally:
            await sleep(0)
            cleaned.append(item)

    loop = asyncio.new_event_loop()
    outcomes = lean(task, range(2))
    loop.close()
    for outcome in outcomes:
        with pytest.raises(RuntimeError, match=r'task\(\) awaits asyncio: pass mode="asyncio"'):
            outcome.unwrap()
    assert cleaned == [0, 1]


def test_who_yields_something_strange_is_told_what() -> None:
    async def task(_: int) -> None:
        await coroutine(5)

    (outcome,) = lean(task, [1])
    with pytest.raises(RuntimeError, match=r"task\(\) awaits int, which mode=\"lean\" does not"):
        outcome.unwrap()


def test_who_never_stops_awaiting_asyncio_keeps_nobody_from_working() -> None:
    async def task(item: int) -> int:
        while item == 0:
            with suppress(RuntimeError):
                await coroutine(5)
        await sleep(0.001)
        return item

    outcomes = lean(task, range(3), timeout=0.05)
    assert [outcome.value for outcome in outcomes] == [None, 1, 2]
    assert isinstance(outcomes[0].exception, TimeoutError)


def test_who_misses_asyncio_is_told_the_mode() -> None:
    async def task(_: int) -> None:
        await asyncio.sleep(1)

    (outcome,) = lean(task, [1])
    with pytest.raises(RuntimeError, match="no running event loop") as raised:
        outcome.unwrap()
    assert raised.value.__notes__ == ['mode="lean" runs without asyncio: pass mode="asyncio"']


def test_asyncio_inside_of_a_lean_coroutine_does_not_skip_the_sleep() -> None:
    async def task(_: int) -> None:
        async def inner() -> None:
            await sleep(1)

        asyncio.run(inner())

    (outcome,) = lean(task, [1])
    with pytest.raises(RuntimeError, match="bad yield: <a wait for the lean fan-out"):
        outcome.unwrap()


def test_the_same_coroutine_runs_on_asyncio() -> None:
    async def task(item: float) -> float:
        begin = time.monotonic()
        await sleep(item)
        return time.monotonic() - begin

    (took,) = values(fanout(task, [0.01], mode="asyncio"))
    assert took >= 0.01
    assert asyncio.run(task(0.01)) >= 0.01


Program = str | tuple["str | Program", ...]


def programs() -> st.SearchStrategy[Program]:
    """What a coroutine may do, and do inside of that."""
    steps: st.SearchStrategy[Program] = st.sampled_from(["sleep", "yield", "raise", "leave"])

    def around(inner: st.SearchStrategy[Program]) -> st.SearchStrategy[Program]:
        return st.one_of(
            st.tuples(st.just("one after the other"), inner, inner),
            st.tuples(st.sampled_from(["call", "catch", "manage", "iterate"]), inner),
            st.tuples(st.just("finally"), inner, inner),
        )

    return st.recursive(steps, around, max_leaves=8)


class Interpreter:
    """Runs a program, and writes down what it does."""

    def __init__(self) -> None:
        self.log: list[str] = []

    async def run(self, program: Program) -> None:
        name, *inner = (program,) if isinstance(program, str) else program
        self.log.append(str(name))
        match name, inner:
            case "sleep", _:
                await sleep(0.0001)
            case "yield", _:
                await sleep(0)
            case "raise", _:
                raise ValueError(len(self.log))
            case "leave", _:
                async for _ in self.numbers("yield"):
                    break
            case "catch", [inside]:
                with suppress(ValueError):
                    await self.run(inside)
            case "manage", [inside]:
                async with self.manager():
                    await self.run(inside)
            case "iterate", [inside]:
                async for number in self.numbers(inside):
                    self.log.append(f"number {number}")
            case "finally", [inside, last]:
                try:
                    await self.run(inside)
                finally:
                    await self.run(last)
            case _:
                for inside in inner:
                    await self.run(inside)
        self.log.append(f"end of {name}")

    async def numbers(self, program: Program) -> AsyncIterator[int]:
        try:
            yield 1
            await self.run(program)
            yield 2
        finally:
            await sleep(0)

    @asynccontextmanager
    async def manager(self) -> AsyncGenerator[None]:
        await sleep(0)
        try:
            yield
        finally:
            await sleep(0.0001)
            self.log.append("leave")


@settings(max_examples=60, deadline=None)
@given(st.lists(programs(), max_size=4))
def test_coroutines_do_the_same_as_on_asyncio(items: list[Program]) -> None:
    async def task(program: Program) -> list[str]:
        interpreter = Interpreter()
        try:
            await interpreter.run(program)
        except ValueError as error:
            interpreter.log.append(repr(error))
        return interpreter.log

    expected = values(fanout(task, items, mode="asyncio"))
    assert values(lean(task, items)) == expected


# Ends before their time


def test_a_timeout_lets_the_coroutine_clean_up_and_says_where_it_was() -> None:
    cleaned: list[int] = []

    async def hang() -> None:
        await sleep(float("inf"))

    async def task(item: int) -> None:
        try:
            await hang()
        except Exception:  # A cancellation is none.
            cleaned.append(-1)
        finally:
            await sleep(0.001)
            cleaned.append(item)

    outcomes = lean(task, range(3), timeout=0.01, retries=1)
    assert sorted(cleaned) == [0, 0, 1, 1, 2, 2]
    for outcome in outcomes:
        error = outcome.exception
        assert isinstance(error, TimeoutError)
        assert str(error) == "not done within 0.01 s"
        assert isinstance(error.__cause__, Cancelled)
        where = traceback.extract_tb(error.__cause__.__traceback__)
        assert [frame.name for frame in where] == ["task", "hang"]
        assert outcome.attempts == 2
        assert not outcome.abandoned


def test_who_catches_its_cancellation_and_returns_has_timed_out_all_the_same() -> None:
    async def task(_: int) -> str:
        with suppress(Cancelled):
            await sleep(10)
        return "late"

    (outcome,) = lean(task, [1], timeout=0.01)
    assert isinstance(outcome.exception, TimeoutError)
    assert outcome.exception.__notes__ == ["it has caught its cancellation, and returned"]


def test_what_fails_while_it_is_cancelled_is_the_cause() -> None:
    async def task(_: int) -> None:
        try:
            await sleep(10)
        finally:
            raise ValueError("in the middle of cleaning up")

    (outcome,) = lean(task, [1], timeout=0.01)
    assert isinstance(outcome.exception, TimeoutError)
    assert isinstance(outcome.exception.__cause__, ValueError)
    assert isinstance(outcome.exception.__cause__.__context__, Cancelled)


def test_who_does_not_end_is_given_up() -> None:
    async def task(_: int) -> None:
        while True:
            try:
                await sleep(0.01)
            except Cancelled:
                caught.append(1)

    caught: list[int] = []
    outcomes = lean(task, [1], timeout=0.01)
    assert isinstance(outcomes[0].exception, TimeoutError)
    assert outcomes[0].abandoned
    # Once by its timeout, and once by the end of everything.
    assert caught == [1, 1]


def test_who_is_in_time_is_not_disturbed_by_timeouts() -> None:
    async def task(item: int) -> int:
        await sleep(0.0001)
        return item

    assert values(lean(task, range(1000), timeout=60)) == list(range(1000))


class Alarm(Exception):
    """What the handler of a signal raises."""


@pytest.fixture
def alarm() -> Iterator[Callable[[float], None]]:
    """Raises Alarm in the main thread, so many seconds later."""

    def ring(*_: object) -> None:
        raise Alarm

    before = signal.signal(signal.SIGALRM, ring)
    yield lambda seconds: cast("None", signal.setitimer(signal.ITIMER_REAL, seconds))
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def test_a_signal_ends_a_wait_and_everything_cleans_up(alarm: Callable[[float], None]) -> None:
    cleaned: list[int] = []

    async def task(item: int) -> None:
        try:
            await sleep(1000)
        finally:
            await sleep(0.001)
            cleaned.append(item)

    alarm(0.05)
    with pytest.raises(Alarm):
        lean(task, range(3))
    assert cleaned == [0, 1, 2]


def test_ctrl_c_inside_of_a_coroutine_ends_the_fan_out() -> None:
    cleaned: list[int] = []

    async def task(item: int) -> None:
        try:
            await sleep(0 if item == 1 else 1000)
            signal.raise_signal(signal.SIGINT)
        finally:
            cleaned.append(item)

    with pytest.raises(KeyboardInterrupt):
        lean(task, range(3))
    assert cleaned == [1, 0, 2]


def test_who_leaves_in_the_middle_ends_the_rest() -> None:
    cleaned: list[int] = []

    async def task(item: int) -> int:
        try:
            await sleep(1000 if item else 0)
        finally:
            await sleep(0.001)
            cleaned.append(item)
        return item

    for outcome in fanout(task, range(4), mode="lean"):
        assert outcome.unwrap() == 0
        break
    assert cleaned == [0, 1, 2, 3]


LEFT = """
from ungil.fanout import fanout, sleep

async def task(item):
    try:
        await sleep(1000 if item else 0)
    finally:
        await sleep(0.001)
        print("cleaned", item)

outcomes = fanout(task, range(3), mode="lean")
next(outcomes)
{end}
"""


@pytest.mark.parametrize("end", ["", "raise SystemExit(0)", "del task"])
def test_what_is_left_at_the_end_of_the_program_ends_quietly(end: str) -> None:
    result = python(LEFT.format(end=end))
    assert (result.stdout, result.stderr) == ("cleaned 0\ncleaned 1\ncleaned 2\n", "")


def test_what_only_refers_to_itself_is_collected() -> None:
    class Tracked:
        pass

    async def task(item: Any) -> None:
        await sleep(1000 if item else 0)

    def leave() -> "weakref.ref[Tracked]":
        tracked = Tracked()
        items: list[Any] = [None, tracked]
        outcomes = fanout(task, items, mode="lean")
        next(outcomes)
        # Its item, in the frame of a coroutine that it drives, refers to it.
        cast("Any", tracked).outcomes = outcomes
        return weakref.ref(tracked)

    reference = leave()
    gc.collect()
    assert reference() is None


# Inside of each other, threads, forks


def test_a_loop_that_was_closed_begins_anew() -> None:
    async def task(item: int) -> int:
        await sleep(1000 if item == 0 else 0)
        return item

    dispatcher = Dispatcher(iter(range(4)), limit=2, window=10, in_order=False)
    loop = Lean(task, dispatcher, 60)
    loop.advance()
    loop.close()
    while not dispatcher.ended:
        loop.advance()
    outcomes = [dispatcher.take() for _ in range(4)]
    assert sorted(o.index for o in outcomes if o is not None and o.ok) == [1, 2, 3]


def test_a_fan_out_in_a_lean_coroutine_is_refused() -> None:
    async def inner(item: int) -> int:
        return item

    async def task(_: int) -> list[int]:
        return values(lean(inner, [1]))

    (outcome,) = lean(task, [1])
    with pytest.raises(RuntimeError, match="a fan-out inside of a coroutine of a lean fan-out"):
        outcome.unwrap()


def test_an_item_cannot_iterate_its_own_fan_out() -> None:
    async def task(_: int) -> None:
        loop.advance()

    dispatcher = Dispatcher(iter([1]), limit=1, window=1, in_order=True)
    loop = Lean(task, dispatcher, None)
    loop.advance()
    outcome = dispatcher.take()
    assert outcome is not None
    with pytest.raises(RuntimeError, match="this fan-out is being iterated"):
        outcome.unwrap()


def test_each_thread_has_loops_of_its_own() -> None:
    async def task(item: int) -> int:
        await sleep(0.001)
        return item

    results: list[list[int]] = []

    def work() -> None:
        results.append(values(lean(task, range(200))))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [list(range(200))] * 4


def test_other_threads_run_while_a_loop_waits() -> None:
    arrived = threading.Event()

    async def task(_: int) -> bool:
        while not arrived.is_set():
            await sleep(0.001)
        return True

    thread = threading.Thread(target=arrived.set)
    outcomes = fanout(task, [1], mode="lean")
    thread.start()
    assert values(outcomes) == [True]
    thread.join()


FORKED = """
import os
from ungil.fanout import fanout, sleep

def say(*words):  # A whole line, so that those of two processes do not mix.
    os.write(1, (" ".join(map(str, words)) + "\\n").encode())

async def task(item):
    try:
        if item == 1 and os.fork() == 0:
            say("forked")
        await sleep(0.1)
    finally:
        say("cleaned", item)
    return item

parent = os.getpid()
try:
    say([outcome.value for outcome in fanout(task, range(3), mode="lean")])
except RuntimeError as error:
    say(str(error).replace(str(parent), "PARENT"))
    os._exit(7)
say(os.wait()[1] >> 8)
"""


def test_a_forked_child_does_not_go_on_with_its_parents_items() -> None:
    result = python(FORKED)
    said = (
        "this fan-out belongs to process PARENT, which has forked this one: "
        "leave a forked child with os._exit(), or use subprocess"
    )
    cleaned = [f"cleaned {item}" for item in range(3)]
    assert sorted(result.stdout.splitlines()) == sorted(
        ["forked", said, *cleaned, "[0, 1, 2]", "7"]
    )
    assert "Error" not in result.stderr


def test_a_loop_is_left_in_the_thread_that_made_it_or_another() -> None:
    async def task(item: int) -> int:
        await sleep(0.001)
        return item

    outcomes = fanout(task, range(5), mode="lean", limit=1)
    got = [next(outcomes).value]
    thread = threading.Thread(target=lambda: got.extend(values(outcomes)))
    thread.start()
    thread.join()
    assert got == [0, 1, 2, 3, 4]


def descriptors() -> set[str]:
    return {path.name for path in Path("/proc/self/fd").iterdir()}


def test_descriptors_are_given_back() -> None:
    readable, writable = os.pipe()

    async def task(_: int) -> None:
        await wait_writable(writable)
        opened.append(len(descriptors()))

    opened: list[int] = []
    before = len(descriptors())
    lean(task, range(3))
    assert min(opened) > before
    assert len(descriptors()) == before
    os.close(readable)
    os.close(writable)
