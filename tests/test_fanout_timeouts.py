"""Time-outs end what they should: this attempt, and neither the next one nor another item."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from typing import Any

import pytest

from ungil.fanout import Backoff, _threads, fanout, sleep


@pytest.mark.parametrize("mode", ["lean", "asyncio", "uvloop"])
def test_an_attempt_is_not_ended_by_the_time_out_of_the_one_before(
    mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Both begin at once. The first fails at once, and its next attempt sees the time-out of the
    # second, which is when the time of its own first attempt would have been over.
    if mode == "asyncio":
        monkeypatch.setitem(sys.modules, "uvloop", None)
    hung_was_ended = False
    tries: list[str] = []

    async def work(item: str) -> str:
        nonlocal hung_was_ended
        tries.append(item)
        if item == "hangs":
            try:
                await sleep(1000)
            finally:
                hung_was_ended = True
        if tries.count(item) == 1:
            raise ConnectionError(item)
        while not hung_was_ended:
            await sleep(0.01)
        return "second"

    again, hung = fanout(
        work,
        ["again", "hangs"],
        mode="lean" if mode == "lean" else "asyncio",
        timeout=1,
        retries=1,
        retry_if=lambda error: isinstance(error, ConnectionError),
        backoff=Backoff(0.8, jitter=0),
    )
    assert (again.value, again.attempts) == ("second", 2)
    assert isinstance(hung.exception, TimeoutError)
    assert not hung.abandoned


GREEN = """\
from gevent import monkey
monkey.patch_all()
import gevent, time
from gevent.event import Event
from ungil.fanout import Backoff, fanout
hung_was_ended, first_ended, second_runs, tries = Event(), Event(), Event(), []

def work(item):
    tries.append(item)
    if item == "hangs":
        try:
            time.sleep(1000)
        finally:
            hung_was_ended.set()
    if item == "again":
        if tries.count(item) == 1:
            raise ConnectionError(item)
        hung_was_ended.wait()
    if item == "stubborn":
        if tries.count(item) == 1:
            while not second_runs.is_set():
                try:
                    gevent.sleep(0.01)
                except gevent.GreenletExit:
                    pass
            first_ended.set()
            return "first"
        second_runs.set()
        first_ended.wait()
        gevent.sleep(0.05)
    return "second"

def is_worth_another(error):
    return isinstance(error, ConnectionError) or tries[-1] == "stubborn"

def run(items, **options):
    options |= {"mode": "green", "retries": 1, "retry_if": is_worth_another}
    for outcome in fanout(work, items, **options):
        print(outcome.value, outcome.attempts, type(outcome.exception).__name__, outcome.abandoned)

run(["again", "hangs"], timeout=1, backoff=Backoff(0.8, jitter=0))
run(["stubborn"], timeout=1, backoff=Backoff(0))
"""


def test_the_same_holds_for_green_threads() -> None:
    outcome = subprocess.run([sys.executable, "-c", GREEN], capture_output=True, text=True)
    assert outcome.stderr == ""
    assert outcome.stdout.splitlines() == [
        "second 2 NoneType False",
        "None 1 TimeoutError False",
        "second 2 NoneType False",
    ]


def test_a_thread_is_not_given_up_by_the_time_out_of_the_attempt_before() -> None:
    hung_was_given_up = threading.Event()
    tries: list[str] = []

    def is_worth_another(error: Exception) -> bool:
        if isinstance(error, TimeoutError):
            hung_was_given_up.set()
        return isinstance(error, ConnectionError)

    def work(item: str) -> str:
        tries.append(item)
        if tries.count("again") == 1 and item == "again":
            raise ConnectionError(item)
        assert hung_was_given_up.wait(60)
        return "second"

    again, hung = fanout(
        work,
        ["again", "hangs"],
        timeout=1,
        retries=1,
        retry_if=is_worth_another,
        backoff=Backoff(0.8, jitter=0),
    )
    assert (again.value, again.attempts) == ("second", 2)
    assert isinstance(hung.exception, TimeoutError)
    assert hung.abandoned


def test_an_attempt_in_a_thread_that_was_given_up_does_not_end_the_next_one() -> None:
    first: list[threading.Thread] = []
    second_runs = threading.Event()

    def work(_item: int) -> str:
        if not first:
            first.append(threading.current_thread())
            assert second_runs.wait(60)
            return "first"
        second_runs.set()
        first[0].join()
        return "second"

    [outcome] = fanout(work, [0], timeout=1, retries=3, backoff=Backoff(0))
    assert (outcome.value, outcome.attempts, outcome.abandoned) == ("second", 2, False)


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
@pytest.mark.parametrize("ends", ["returns", "raises"])
def test_a_coroutine_that_was_given_up_does_not_end_the_next_attempt(
    loop: str, ends: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if loop == "asyncio":
        monkeypatch.setitem(sys.modules, "uvloop", None)
    second_runs = False
    first_ended = False

    async def first() -> str:
        nonlocal first_ended
        while not second_runs:
            try:
                await asyncio.sleep(0.01)
            except asyncio.CancelledError:
                continue  # it does not want to end
        first_ended = True
        if ends == "raises":
            raise ValueError("first")
        return "first"

    tries = 0

    async def work(_item: int) -> str:
        nonlocal second_runs, tries
        tries += 1
        if tries == 1:
            return await first()
        second_runs = True
        while not first_ended:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.05)
        return "second"

    [outcome] = fanout(work, [0], mode="asyncio", timeout=1, retries=3, backoff=Backoff(0))
    assert (outcome.value, outcome.attempts, outcome.abandoned) == ("second", 2, False)


def test_what_a_coroutine_raises_because_it_was_cancelled_is_the_cause_of_its_time_out() -> None:
    async def work(_item: int) -> None:
        try:
            await asyncio.sleep(1000)
        except asyncio.CancelledError:
            raise ValueError("not so soon") from None

    [outcome] = fanout(work, [0], mode="asyncio", timeout=0.05)
    assert isinstance(outcome.exception, TimeoutError)
    assert isinstance(outcome.exception.__cause__, ValueError)


LATE = """\
import socket, sys, time
how = sys.argv[1]
if how == "green":
    from gevent import monkey
    monkey.patch_all()
    from gevent.monkey import get_original
    block = get_original("time", "sleep")
else:
    block = time.sleep
if how == "asyncio":
    sys.modules["uvloop"] = None
from ungil.fanout import fanout, sleep, wait_readable

near, far = socket.socketpair()

def tell():
    # While it computes, the others have waited long enough, and nobody lets them go on.
    block(0.2)
    far.send(b"x")
    block(1.0)

def green(item):
    if item == "sleeps":
        time.sleep(0.3)
    elif item == "reads":
        assert near.recv(1) == b"x"
    else:
        time.sleep(0.1)
        tell()

async def coroutine(item):
    if item == "sleeps":
        await sleep(0.3)
    elif item == "reads":
        await wait_readable(near)
    else:
        await sleep(0.1)
        tell()

mode = "asyncio" if how == "uvloop" else how
fn = green if how == "green" else coroutine
outcomes = list(fanout(fn, ["sleeps", "reads", "computes"], mode=mode, timeout=0.8))
assert all(outcome.ok for outcome in outcomes), [outcome.exception for outcome in outcomes]
"""


@pytest.mark.parametrize("how", ["lean", "asyncio", "uvloop", "green"])
def test_who_only_waits_for_a_loop_that_comes_late_is_in_time(how: str) -> None:
    subprocess.run([sys.executable, "-c", LATE, how], check=True, timeout=120)


def test_what_a_thread_takes_to_start_is_not_the_items(monkeypatch: pytest.MonkeyPatch) -> None:
    release = threading.Event()
    slots: Any = _threads._Slot  # pyright: ignore[reportPrivateUsage]
    run = slots.run

    def late(slot: Any) -> None:
        # When the time of the item that hangs is over, this one has not begun.
        if slot.attempt is not None and slot.attempt.item == "late":
            release.wait()
        run(slot)

    monkeypatch.setattr(slots, "run", late)

    def work(item: str) -> str:
        if item == "hangs":
            over.wait()
        return item

    over = threading.Event()
    outcomes = fanout(work, ["hangs", "late"], mode="threads", timeout=1, limit=2)
    hung = next(outcomes)
    assert hung.abandoned
    release.set()
    (late_one,) = outcomes
    over.set()
    assert late_one.unwrap() == "late"
