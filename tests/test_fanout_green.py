"""Fan-out in green threads.

Each test runs a program of its own: what gevent has patched stays patched.
"""

import subprocess
import sys
import textwrap

import pytest

PATCHED = "from gevent import monkey; monkey.patch_all()"
PREAMBLE = """
import sys, threading, time
import gevent
from gevent.event import Event
from ungil.fanout import Backoff, fanout

def green(fn, items, **options):
    return fanout(fn, items, **{"mode": "green", **options})
"""


def run(program: str, *, patched: bool = True) -> None:
    """Run `program`, which asserts what is to be true. The timeout is a watchdog."""
    source = (PATCHED if patched else "") + PREAMBLE + textwrap.dedent(program)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", source],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (done.stdout, done.stderr) == ("", "")


def test_outcomes_come_in_the_order_of_the_items_whichever_ends_first() -> None:
    run("""
        ended = []
        def late_if_early(number):
            time.sleep(0.03 if number == 0 else 0)
            ended.append(number)
            return number * 10
        outcomes = list(green(late_if_early, range(3)))
        assert ended[-1] == 0
        assert [(o.item, o.value, o.ok, o.attempts) for o in outcomes] == [
            (0, 0, True, 1), (1, 10, True, 1), (2, 20, True, 1)]
    """)


def test_everything_runs_at_once_in_one_thread() -> None:
    run("""
        came, all_are_there = [], Event()
        native = gevent.monkey.get_original("threading", "get_native_id")
        def meet(number):
            came.append(native())
            if len(came) == 500:
                all_are_there.set()
            return all_are_there.wait(60)
        assert all(outcome.value for outcome in green(meet, range(500), limit=500))
        assert set(came) == {native()}
    """)


def test_outcomes_come_while_others_still_run() -> None:
    run("""
        may_end = [Event() for _ in range(5)]
        may_end[0].set()
        for outcome in green(lambda number: may_end[number].wait(60), range(4), limit=4):
            assert outcome.value
            may_end[outcome.item + 1].set()
    """)


def test_no_more_than_the_limit_run_at_once_and_an_endless_input_is_taken_as_it_is_needed() -> None:
    run("""
        import itertools
        running, most, taken = 0, 0, 0
        def endless():
            global taken
            for taken in itertools.count(1):
                yield taken
        def item(number):
            global running, most
            running += 1
            most = max(most, running)
            time.sleep(0)
            running -= 1
            return number
        with green(item, endless(), limit=7) as outcomes:
            first = [outcome.value for outcome, _ in zip(outcomes, range(100))]
        assert first == list(range(1, 101))
        assert most == 7
        assert taken < 100 + 10_000 + 2 * 7  # the window, see ungil.fanout._options
    """)


def test_what_a_function_raises_is_its_outcome_even_if_it_would_end_the_program() -> None:
    run("""
        def raises(kind):
            raise kind()
        kinds = [ValueError, SystemExit, gevent.GreenletExit, gevent.Timeout, BaseException]
        outcomes = list(green(raises, kinds))
        assert [type(outcome.exception) for outcome in outcomes] == kinds
        assert not any(outcome.ok or outcome.abandoned for outcome in outcomes)
    """)


def test_a_green_thread_whose_time_is_over_really_ends() -> None:
    run("""
        cleaned_up, went_on = [], []
        def hangs(number):
            try:
                Event().wait()
            except Exception:
                pass  # as programs do with whatever a device may raise
            finally:
                cleaned_up.append(number)
            went_on.append(number)
        def wait_or_not(number):
            return number if number % 2 else hangs(number)
        outcomes = list(green(wait_or_not, range(6), timeout=0.05))
        assert [outcome.ok for outcome in outcomes] == [False, True] * 3
        for outcome in outcomes[::2]:
            assert type(outcome.exception) is TimeoutError
            assert str(outcome.exception) == "not done within 0.05 s"
            assert not outcome.abandoned
            assert outcome.seconds >= 0.05
        assert cleaned_up == [0, 2, 4]
        assert went_on == []
    """)


def test_time_runs_for_each_attempt_also_for_those_that_begin_late() -> None:
    run("""
        def item(number):
            time.sleep(0.04 if number else 10)
        outcomes = list(green(item, range(6), limit=1, timeout=0.2))
        assert [outcome.ok for outcome in outcomes] == [False] + [True] * 5
    """)


def test_one_that_catches_its_end_and_returns_has_timed_out_all_the_same() -> None:
    run("""
        def stays(number):
            try:
                time.sleep(60)
            except BaseException:
                return "here"
        [outcome] = green(stays, [1], timeout=0.02)
        assert type(outcome.exception) is TimeoutError and not outcome.abandoned
    """)


def test_one_that_goes_on_after_its_end_is_abandoned_and_another_takes_its_place() -> None:
    run("""
        from ungil.fanout import _green
        _green.GRACE_SECONDS = 0.02
        release, ends, ended = Event(), [], []
        def stubborn(number):
            if number == 1:
                return "next"
            while not release.is_set():
                try:
                    release.wait()
                except gevent.GreenletExit:
                    ends.append(number)
            ended.append(number)
        first, second = green(stubborn, [0, 1], limit=1, timeout=0.02)
        assert type(first.exception) is TimeoutError and first.abandoned
        assert second.value == "next"
        assert ended == []
        release.set()
        gevent.sleep(0)
        assert ended == [0]
        assert ends == [0]  # and was left alone after that
        assert first.value is None
    """)


def test_items_see_the_callers_context_and_nothing_that_another_has_set() -> None:
    run("""
        from contextvars import ContextVar
        name = ContextVar("name", default="nobody")
        name.set("caller")
        def item(number):
            before = name.get()
            name.set(number)
            time.sleep(0)
            return before, name.get()
        outcomes = green(item, range(6), limit=2)
        assert [outcome.value for outcome in outcomes] == [("caller", n) for n in range(6)]
        assert name.get() == "caller"
    """)


def test_nothing_of_one_item_reaches_the_next_in_its_green_thread() -> None:
    # The end of the first is due in the turn of the hub in which it returns.
    run("""
        def item(number):
            time.sleep(0.02 if number % 2 else 0)
            return number
        for _ in range(5):
            outcomes = list(green(item, range(40), limit=2, timeout=0.02))
            for outcome in outcomes:
                assert outcome.ok or type(outcome.exception) is TimeoutError, outcome
    """)


def test_what_has_failed_is_tried_again_after_a_pause() -> None:
    run("""
        tried = []
        def second_time(item):
            tried.append(item)
            if tried.count(item) < 2:
                raise OSError(item)
            return item
        backoff = Backoff(0.05, jitter=0)
        outcomes = list(green(second_time, "ab", retries=1, backoff=backoff))
        assert [(o.value, o.attempts) for o in outcomes] == [("a", 2), ("b", 2)]
        assert all(o.started - o.queued >= 0.049 for o in outcomes)
    """)


def test_a_rate_spreads_the_starts() -> None:
    run("""
        outcomes = list(green(abs, range(6), rate=100))
        starts = [outcome.started for outcome in outcomes]
        assert starts[-1] - starts[0] >= 0.049
    """)


def test_a_fan_out_with_a_rate_comes_to_its_end() -> None:
    run("""
        for _ in range(40):
            assert [o.value for o in green(abs, range(9), rate=400)] == [*range(9)]
    """)


def test_it_finds_its_limit_by_itself() -> None:
    run("""
        outcomes = list(green(lambda number: time.sleep(0.002), range(2000), limit="auto"))
        assert len(outcomes) == 2000 and all(outcome.ok for outcome in outcomes)
    """)


def test_of_one_group_only_so_many_run_at_once() -> None:
    run("""
        running = {"a": 0, "b": 0}
        def item(name):
            running[name[0]] += 1
            assert running["b"] <= 1
            time.sleep(0)
            running[name[0]] -= 1
        names = [group + str(n) for n in range(5) for group in "ab"]
        list(green(item, names, group=lambda name: name[0], per_group={"b": 1}))
        green(item, names, group=lambda name: name[0], per_group={"b": 1}).raise_for_failures()
    """)


def test_an_input_that_waits_is_asked_by_one_green_thread_at_a_time() -> None:
    run("""
        def slow_input():
            for number in range(30):
                time.sleep(0.001)
                yield number
        def item(number):
            time.sleep(0.002)
            return number
        assert [o.value for o in green(item, slow_input(), limit=5)] == list(range(30))
    """)


def test_what_the_input_raises_comes_after_the_outcomes_before_it() -> None:
    run("""
        def broken():
            yield 1
            raise LookupError("no more")
        outcomes = green(abs, broken())
        assert next(outcomes).value == 1
        try:
            next(outcomes)
        except LookupError as error:
            assert str(error) == "no more"
        else:
            raise AssertionError
    """)


def test_what_retry_if_raises_is_raised() -> None:
    run("""
        def asks(error):
            raise LookupError("whether to")
        try:
            list(green(lambda number: 1 / number, [0], retries=1, retry_if=asks))
        except LookupError as error:
            assert str(error) == "whether to"
        else:
            raise AssertionError
    """)


def test_ctrl_c_in_a_green_thread_ends_the_fan_out_and_all_others() -> None:
    run("""
        ended = []
        def item(number):
            if number == 2:
                raise KeyboardInterrupt
            try:
                time.sleep(60)
            finally:
                ended.append(number)
        try:
            list(green(item, range(3)))
        except KeyboardInterrupt:
            assert sorted(ended) == [0, 1]
        else:
            raise AssertionError
    """)


def test_leaving_early_ends_what_runs() -> None:
    run("""
        ended = []
        def item(number):
            try:
                time.sleep(60 if number else 0)
            finally:
                ended.append(number)
        for outcome in green(item, range(3)):
            break
        assert sorted(ended) == [0, 1, 2]
    """)


def test_other_green_threads_go_on_meanwhile_and_may_end_it() -> None:
    run("""
        ticks = []
        def tick():
            while True:
                ticks.append(len(ticks))
                time.sleep(0)
        def item(number):
            while len(ticks) < 5:
                time.sleep(0)
            if number:
                Event().wait()
            return number
        ticker = gevent.spawn(tick)
        outcomes = green(item, range(2))
        assert next(outcomes).value == 0
        try:
            with gevent.Timeout(0.02):
                next(outcomes)
        except gevent.Timeout:
            pass
        else:
            raise AssertionError
        ticker.kill()
    """)


def test_fan_outs_may_be_within_fan_outs() -> None:
    run("""
        def square(number):
            time.sleep(0.001)
            return number * number
        def row(number):
            return sum(outcome.value for outcome in green(square, range(number)))
        assert [o.value for o in green(row, range(6))] == [0, 0, 1, 5, 14, 30]
    """)


def test_a_disguised_coroutine_is_an_error_not_a_value() -> None:
    run("""
        async def later():
            pass
        [outcome] = green(lambda number: later(), [1])
        assert "has returned a coroutine" in str(outcome.exception)
        assert type(outcome.exception) is TypeError
    """)


def test_it_is_what_auto_chooses_in_a_patched_program() -> None:
    run("""
        outcomes = fanout(abs, [-1])
        assert (outcomes.mode, outcomes.reason) == ("green", "gevent has patched this program")
        assert [outcome.value for outcome in outcomes] == [1]
    """)


def test_a_program_that_is_not_patched_is_told_what_to_write_and_where() -> None:
    run(
        """
        try:
            list(green(abs, [1]))
        except RuntimeError as error:
            assert "`from gevent import monkey; monkey.patch_all()` as the first" in str(error)
        else:
            raise AssertionError
        """,
        patched=False,
    )


@pytest.mark.parametrize("missing", ["gevent", "greenlet"])
def test_a_program_without_gevent_is_told_what_to_install(missing: str) -> None:
    source = f"""
        import sys
        sys.modules[{missing!r}] = None
        from ungil.fanout import fanout
        try:
            list(fanout(abs, [1], mode="green"))
        except ModuleNotFoundError as error:
            assert str(error) == 'mode="green" needs gevent: pip install "ungil[green]"', error
        else:
            raise AssertionError
    """
    command = [sys.executable, "-c", textwrap.dedent(source)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
