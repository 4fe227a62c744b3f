"""What the workers of the tests of `share.Pool` run: importable, as spawned ones need it."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import as_completed
from typing import Any

from ungil import share
from ungil.share._pool import calls as pool_calls
from ungil.share._pool import worker as pool_worker

_initialised: list[Any] = []

# Moments in the life of a task, and the function that is called there first.
POINTS = ("taken", "begun", "run", "told")


def square(number: int) -> int:
    return number * number


def same(value: Any) -> Any:
    return value


def everything(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
    return args, kwargs


def pid() -> int:
    return os.getpid()


def die(number: int = signal.SIGKILL) -> None:
    os.kill(os.getpid(), number)
    signal.pause()


def leave(status: int) -> None:
    os._exit(status)


def fail(message: str) -> None:
    raise LookupError(message)


def exit_(status: int) -> None:
    sys.exit(status)


def wait_for(event: share.Event) -> int:
    event.wait()
    return os.getpid()


def meet(barrier: share.Barrier) -> tuple[str, int | None]:
    """Waits for the others, and says which worker of whom this is."""
    barrier.wait(timeout=10)
    parent = multiprocessing.parent_process()
    return multiprocessing.current_process().name, parent and parent.pid


def wait_and_die(event: share.Event) -> None:
    event.wait()
    die()


def begin_and_wait(begun: share.Event, go: share.Event) -> None:
    begun.set()
    go.wait()


def add_to(items: share.list[int], item: int) -> None:
    items.append(item)


def count(counts: share.dict[str, int], key: str) -> int:
    return counts.incr(key)


def die_until(counts: share.dict[str, int], times: int) -> int:
    """Dies so many times, and then says how often it has begun."""
    begun = counts.incr("begun")
    if begun <= times:
        die()
    return begun


def fibonacci(pool: share.Pool, number: int) -> int:
    if number < 2:
        return number
    both = [pool.submit(fibonacci, pool, number - less) for less in (1, 2)]
    return sum(future.result() for future in as_completed(both))


def nested_failure(pool: share.Pool) -> str:
    try:
        pool.submit(fail, "inside").result()
    except LookupError as error:
        return repr(error)
    return "nothing"


def nested_same(pool: share.PoolTasks, value: Any) -> Any:
    return pool.submit(same, value).result()


def ask_and_die(pool: share.PoolTasks, counts: share.dict[str, int]) -> None:
    """Submits a task that nobody waits for."""
    pool.submit(count, counts, "asked")
    die()


def stop_at(number: int, last: int = 1) -> int:
    if number == last:
        raise StopIteration
    return number


def initialise(shared: share.dict[str, Any], local: str) -> None:
    shared.incr("workers")
    _initialised.append(local)


def initialised() -> list[Any]:
    return _initialised


def fail_to_start() -> None:
    raise LookupError("no start")


def leave_at_start() -> None:
    os._exit(7)


def nap_and_say(seconds: float, word: str) -> None:
    time.sleep(seconds)
    print(word, flush=True)


def clean_up(begun: share.Event, cleaned: share.dict[str, int]) -> None:
    try:
        begun.set()
        while True:  # One long wait might begin just after the signal.
            time.sleep(0.01)
    finally:
        cleaned.incr("cleaned")


def clean_up_when_terminated(begun: share.Event, cleaned: share.Event) -> None:
    def leave(_signal: int, _frame: object) -> None:
        cleaned.set()
        os._exit(0)

    signal.signal(signal.SIGTERM, leave)
    begun.set()
    while True:
        time.sleep(0.01)


def take_no_notice(begun: share.Event) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    begun.set()
    while True:
        time.sleep(0.01)


class Wordy(Exception):
    """An exception that can be pickled and not unpickled, as those of httpx and others."""

    def __init__(self, what: str, where: str) -> None:
        super().__init__(f"{what} in {where}")


def fail_wordily() -> None:
    raise Wordy("a leak", "the roof")


class Unreadable:
    """Its pickle cannot be read."""

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return fail, ("unreadable",)


def unreadable() -> Unreadable:
    return Unreadable()


def cannot_be_pickled() -> object:
    return threading.Lock()


def total(items: Sequence[int]) -> int:
    return sum(items)


def fill(namespace: Any, value: Any, array: Any, barrier: Any) -> None:
    """Changes what a manager has made."""
    namespace.seen = [1]
    value.value += 1
    array[1] = 7
    barrier.wait()


def die_once_at(point: str, armed: share.dict[str, int]) -> None:
    """An initialiser: the first worker that comes to that moment of a task dies there."""

    def here() -> None:
        if armed.cas("armed", 1, 0):
            os.kill(os.getpid(), signal.SIGKILL)

    def before(call: Callable[..., Any]) -> Callable[..., Any]:
        def killed(*args: Any) -> Any:
            here()
            return call(*args)

        return killed

    def after(call: Callable[..., Any]) -> Callable[..., Any]:
        def killed(*args: Any) -> Any:
            call(*args)
            here()

        return killed

    module: Any = pool_worker
    calls: Any = pool_calls
    match point:
        case "taken":  # Out of the line, and nowhere else.
            calls.address_of = before(calls.address_of)
        case "begun":  # On its desk, and not unpickled.
            calls.call_of = before(calls.call_of)
        case "run":  # The function has returned, and nobody knows.
            calls.result = before(calls.result)
        case _:  # The result is out, and the task still on its desk.
            module._Worker._tell = after(module._Worker._tell)
