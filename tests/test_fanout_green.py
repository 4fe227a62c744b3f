"""Fan-out in green threads: what no other mode promises."""

# pyright: reportUnknownVariableType=false
# (the types of gevent are not complete)

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from contextlib import suppress

import gevent
import pytest
from gevent import monkey
from gevent.event import Event
from suite import PATIENCE_S

from ungil.fanout import Backoff, Outcomes, _green, fanout

patched = pytest.mark.patched


def green(fn: object, items: object, **options: object) -> Outcomes:
    """For functions that only gevent can run."""
    return fanout(fn, items, **{"mode": "green", **options})  # pyright: ignore


@patched
def test_everything_runs_at_once_in_one_thread() -> None:
    came: list[int] = []
    all_are_there = Event()
    native = monkey.get_original("threading", "get_native_id")

    def meet(_: int) -> bool:
        came.append(native())
        if len(came) == 500:
            all_are_there.set()
        return all_are_there.wait(PATIENCE_S)

    assert all(outcome.value for outcome in green(meet, range(500), limit=500))
    assert set(came) == {native()}


@patched
def test_what_a_function_raises_is_its_outcome_even_if_it_would_end_the_program() -> None:
    def raises(kind: type[BaseException]) -> None:
        raise kind

    kinds = [ValueError, SystemExit, gevent.GreenletExit, gevent.Timeout, BaseException]
    outcomes = list(green(raises, kinds))
    assert [type(outcome.exception) for outcome in outcomes] == kinds
    assert not any(outcome.ok or outcome.abandoned for outcome in outcomes)


@patched
def test_a_green_thread_whose_time_is_over_really_ends() -> None:
    cleaned_up: list[int] = []
    went_on: list[int] = []

    def hangs(number: int) -> None:
        try:
            Event().wait()
        except Exception:
            pass  # As programs do with whatever a device may raise.
        finally:
            cleaned_up.append(number)
        went_on.append(number)

    outcomes = list(green(hangs, range(3), timeout=0.05))
    assert [type(outcome.exception) for outcome in outcomes] == [TimeoutError] * 3
    assert cleaned_up == [0, 1, 2]
    assert went_on == []


@patched
def test_one_that_catches_its_end_and_returns_has_timed_out_all_the_same() -> None:
    def stays(_: int) -> str:
        try:
            Event().wait()
        except BaseException:
            return "here"
        return "never"

    [outcome] = green(stays, [1], timeout=0.02)
    assert type(outcome.exception) is TimeoutError
    assert not outcome.abandoned


@patched
def test_one_that_goes_on_after_its_end_is_abandoned_and_another_takes_its_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_green, "GRACE_SECONDS", 0.02)
    release = Event()
    ends: list[int] = []
    ended: list[int] = []

    def stubborn(number: int) -> str | None:
        if number == 1:
            return "next"
        while not release.is_set():
            try:
                release.wait()
            except gevent.GreenletExit:
                ends.append(number)
        ended.append(number)
        return None

    outcomes = green(stubborn, [0, 1], limit=1, timeout=0.5)
    first, second = outcomes
    assert type(first.exception) is TimeoutError
    assert first.abandoned
    assert second.value == "next"
    assert ended == []
    release.set()
    gevent.sleep(0)
    assert ended == [0]
    assert ends == [0]  # And was left alone after that.
    assert first.value is None


@patched
def test_one_that_was_given_up_does_not_end_the_next_attempt() -> None:
    first_ended, second_runs = Event(), Event()
    tries: list[int] = []

    def stubborn(item: int) -> str:
        tries.append(item)
        if len(tries) == 1:
            while not second_runs.is_set():
                with suppress(gevent.GreenletExit):
                    gevent.sleep(0.01)
            first_ended.set()
            return "first"
        second_runs.set()
        first_ended.wait()
        gevent.sleep(0.05)
        return "second"

    [outcome] = green(stubborn, [0], timeout=1, retries=1, backoff=Backoff(0))
    assert (outcome.value, outcome.attempts, outcome.abandoned) == ("second", 2, False)


@patched
def test_nothing_of_one_item_reaches_the_next_in_its_green_thread() -> None:
    # The end of the first is due in the turn of the hub in which it returns.
    def item(number: int) -> int:
        time.sleep(0.02 if number % 2 else 0)
        return number

    for _ in range(5):
        for number, outcome in enumerate(green(item, range(40), limit=2, timeout=0.02)):
            kind = type(outcome.exception)
            assert (outcome.value, kind) in ((number, type(None)), (None, TimeoutError)), outcome


@patched
def test_ctrl_c_in_a_green_thread_ends_the_fan_out_and_all_others() -> None:
    ended: list[int] = []

    def item(number: int) -> None:
        if number == 2:
            raise KeyboardInterrupt
        try:
            Event().wait()
        finally:
            ended.append(number)

    with pytest.raises(KeyboardInterrupt):
        list(green(item, range(3)))
    assert sorted(ended) == [0, 1]


@patched
def test_other_green_threads_go_on_meanwhile_and_may_end_it() -> None:
    ticks: list[int] = []

    def tick() -> None:
        while True:
            ticks.append(len(ticks))
            time.sleep(0)

    def item(number: int) -> int:
        while len(ticks) < 5:
            time.sleep(0)
        if number:
            Event().wait()
        return number

    ticker = gevent.spawn(tick)
    outcomes = green(item, range(2))
    assert next(outcomes).value == 0
    with pytest.raises(gevent.Timeout), gevent.Timeout(0.02):
        next(outcomes)
    ticker.kill()


@patched
def test_it_is_what_auto_chooses_in_a_patched_program() -> None:
    outcomes = fanout(abs, [-1])
    assert (outcomes.mode, outcomes.reason) == ("green", "gevent has patched this program")
    assert [outcome.value for outcome in outcomes] == [1]


@patched
def test_green_threads_go_on_while_coroutines_run_on_asyncio() -> None:
    went_on: list[bool] = []

    async def wait_for_the_other(_: int) -> bool:
        while not went_on:
            await asyncio.sleep(0.001)
        return True

    other = gevent.spawn(lambda: (gevent.sleep(0.001), went_on.append(True)))
    assert [it.value for it in fanout(wait_for_the_other, [1], timeout=PATIENCE_S)] == [True]
    other.kill()


def test_auto_does_not_choose_the_lean_loop_where_other_green_threads_would_stop() -> None:
    code = (
        "from gevent import monkey; monkey.patch_all()\n"
        "import sys; from ungil.fanout import fanout, sleep\n"
        "async def rest(_): await sleep(0)\n"
        "assert 'asyncio' not in sys.modules\n"
        "auto, lean = fanout(rest, [1]), fanout(rest, [1], mode='lean')\n"
        "print(auto.mode, '-', auto.reason)\n"
        "print(lean.mode, '-', lean.reason)\n"
        "print(next(auto).ok, next(lean).ok)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "asyncio - an async def, and gevent has patched this program",
        "lean - asked for",
        "True True",
    ]


@patched
def test_worker_processes_are_refused_where_their_pipes_would_stop_all_green_threads() -> None:
    with pytest.raises(ValueError, match="cannot be used in a program that gevent has patched"):
        fanout(abs, [1], engine="processes:2")


def test_a_program_that_is_not_patched_is_told_what_to_write_and_where() -> None:
    with pytest.raises(
        RuntimeError, match=r"`from gevent import monkey; monkey\.patch_all\(\)` as the first"
    ):
        list(green(abs, [1]))


@pytest.mark.parametrize("missing", ["gevent", "greenlet"])
def test_a_program_without_gevent_is_told_what_to_install(missing: str) -> None:
    code = (
        f"import sys; sys.modules[{missing!r}] = None; "
        "from ungil.fanout import fanout; list(fanout(abs, [1], mode='green'))"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 1
    assert done.stderr.endswith(
        'ModuleNotFoundError: mode="green" needs gevent: pip install "ungil[green]"\n'
    )
