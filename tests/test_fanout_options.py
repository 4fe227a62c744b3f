"""The options of a fan-out: one list, behind `fanout`, `Fanout`, the runner and the command."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
import types
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any, get_args, get_type_hints

import pytest

from ungil.fanout import Backoff, CommonOptions, Fanout, Mode, Options, fanout
from ungil.fanout._plan import LARGEST, MODES, OPTIONS, Plan
from ungil.fanout.nornir import RunnerOptions, UngilRunner

Run = Callable[..., subprocess.CompletedProcess[str]]


def itself(item: Any) -> Any:
    return item


def fan_out(**options: Any) -> object:
    return fanout(itself, [1], **options)


def test_what_is_checked_is_what_is_documented() -> None:
    assert set(OPTIONS) == Options.__optional_keys__
    assert get_args(Mode) == MODES
    assert Options.__required_keys__ == frozenset()


def test_the_runner_has_its_options_from_the_fan_out() -> None:
    assert CommonOptions.__optional_keys__ < RunnerOptions.__optional_keys__
    assert RunnerOptions.__optional_keys__ < Options.__optional_keys__
    asked, common = get_type_hints(Options), get_type_hints(CommonOptions)
    assert {name: asked[name] for name in common} == common


def test_the_command_has_its_options_from_the_fan_out(ungil: Run) -> None:
    told = ungil("fanout", "--help").stdout
    named = {name for name in OPTIONS if f" --{name.replace('_', '-')} " in told}
    # A group is a field there, progress is always shown, and nothing but a host is a key.
    assert set(OPTIONS) - named == {"retry_if", "group", "progress", "key"}
    assert f"[{'|'.join(MODES)}]" in told


def test_without_options_each_is_what_its_description_says() -> None:
    plan = Plan({})
    defaults: dict[str, object] = {"limit": "auto", "mode": "auto", "retries": 0}
    for name in set(OPTIONS) - {"backoff"}:
        assert getattr(plan, name) == defaults.get(name), name
    backoff = plan.backoff
    assert (backoff.first, backoff.factor, backoff.most, backoff.jitter) == (0.1, 2, 30, 0.5)


@pytest.mark.parametrize("call", [fan_out, Fanout, UngilRunner])
def test_what_is_no_option_is_refused_with_those_that_there_are(
    call: Callable[..., object],
) -> None:
    with pytest.raises(TypeError) as refused:
        call(timout=3)
    message = str(refused.value)
    assert message.startswith("there is no option 'timout'; the options are ")
    assert "timeout" in message
    assert "\n" not in message


NOT_THE_RUNNERS = sorted(Options.__optional_keys__ - RunnerOptions.__optional_keys__)


@pytest.mark.parametrize("name", NOT_THE_RUNNERS)
def test_the_runner_refuses_what_nornir_does_itself(name: str) -> None:
    options: dict[str, Any] = {name: None}
    with pytest.raises(TypeError, match=f"there is no option '{name}'"):
        UngilRunner(**options)


def test_a_dict_of_options_is_one_fan_out_after_another() -> None:
    options: Options[int] = {"limit": 2, "mode": "threads"}
    for items in ([1, 2], [3]):
        assert [outcome.unwrap() for outcome in fanout(itself, items, **options)] == items
    assert options == {"limit": 2, "mode": "threads"}


def test_the_list_of_options_costs_a_fan_out_no_time() -> None:
    code = (
        "import sys; from ungil.fanout import fanout, sleep\n"
        "async def nap(_): await sleep(0)\n"
        "assert len(list(fanout(nap, range(3), timeout=5, retries=1))) == 3\n"
        "print([it for it in ('typing', 'ungil.fanout._options') if it in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True
    )
    assert done.stdout == "[]\n"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"timeout": "3"}, "timeout='3' is not a number of seconds"),
        ({"rate": "x"}, "rate='x' is not a number of starts a second"),
        ({"retries": "2"}, "retries='2' is not a whole number"),
        ({"retries": 1.5}, "retries=1.5 is not a whole number"),
        (
            {"per_group": "a", "group": str},
            "per_group='a' is neither a whole number nor a mapping of groups to whole numbers",
        ),
        (
            {"retry_if": 3},
            "retry_if=3 cannot be called: give a function that tells whether an exception is worth "
            "another try, or classes of exceptions",
        ),
        (
            {"retry_if": (OSError, 3)},
            f"retry_if={(OSError, 3)!r} cannot be called: give a function that tells whether an "
            "exception is worth another try, or classes of exceptions",
        ),
        ({"backoff": Backoff}, "backoff=Backoff is the class: write backoff=Backoff()"),
        (
            {"group": 3},
            "group=3 cannot be called: give a function that returns the group of an item",
        ),
        (
            {"journal": "done", "key": "host"},
            "key='host' cannot be called: give a function that returns the key of an item",
        ),
        (
            {"progress": 3},
            "progress=3 is neither True nor a function that is called with a Progress",
        ),
    ],
)
@pytest.mark.parametrize("call", [fan_out, Fanout])
def test_what_is_of_another_type_is_refused_in_a_sentence(
    call: Callable[..., object], options: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(TypeError) as refused:
        call(**options)
    assert str(refused.value) == sentence


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            {"limit": 10**20},
            f"limit=100000000000000000000 is too large: the largest is {sys.maxsize}",
        ),
        ({"retries": 2**32}, "retries=4294967296 is too large: the largest is 4294967295"),
        (
            {"group": str, "per_group": 10**20},
            f"per_group=100000000000000000000 is too large: the largest is {sys.maxsize}",
        ),
        (
            {"group": str, "per_group": {"1": 10**20}},
            f"per_group['1']=100000000000000000000 is too large: the largest is {sys.maxsize}",
        ),
    ],
)
def test_a_number_that_is_too_large_is_told_with_the_largest(
    options: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
        list(fanout(itself, [1], **options))


def test_the_largest_numbers_are_possible() -> None:
    options: dict[str, Any] = {**LARGEST, "group": str}
    assert [outcome.value for outcome in fanout(itself, [1], **options)] == [1]


@pytest.mark.parametrize("engine", [None, "processes:1"])
@pytest.mark.parametrize(
    ("classes", "attempts"), [(OSError, 2), (KeyError, 1), ((KeyError, OSError), 2), ((), 1)]
)
def test_exceptions_of_the_classes_that_retry_if_names_are_tried_again(
    classes: Any, attempts: int, engine: str | None
) -> None:
    options: dict[str, Any] = {"retries": 1, "retry_if": classes, "backoff": Backoff(0)}
    # It raises a FileNotFoundError.
    [outcome] = fanout(os.stat, ["no such file"], engine=engine, **options)
    assert outcome.attempts == attempts


def test_a_number_is_a_number_of_any_type() -> None:
    options: dict[str, Any] = {
        "timeout": Decimal(60),
        "rate": Fraction(10_000),
        "retries": True,
        "backoff": Backoff(Decimal(0), factor=Fraction(1), most=1, jitter=0),  # pyright: ignore[reportArgumentType]
    }
    assert [outcome.value for outcome in fanout(itself, [1], **options)] == [1]


def test_a_limit_of_a_group_that_is_no_number_is_told_with_its_group() -> None:
    options: dict[str, Any] = {"group": str, "per_group": {"1": "a"}}
    with pytest.raises(TypeError, match=r"^per_group\['1'\]='a' is not a whole number$"):
        list(fanout(itself, [1], **options))


def test_what_only_makes_a_generator_is_refused_because_nothing_would_run() -> None:
    def numbers(item: int) -> Iterator[int]:
        yield item

    async def later(item: int) -> AsyncIterator[int]:
        yield item

    async def first(fn: Callable[[int], object]) -> None:
        async for _ in Fanout().stream(fn, [1]):
            pass

    for fn in numbers, later, partial(numbers):
        for call in (
            lambda fn=fn: list(fanout(fn, [1])),
            lambda fn=fn: list(fanout(fn, [1], engine="processes")),
            lambda fn=fn: asyncio.run(first(fn)),
        ):
            with pytest.raises(TypeError, match="has a yield, so calling it only makes a generat"):
                call()

    @types.coroutine
    def awaited(item: int) -> Generator[None, None, int]:
        yield
        return item

    async def waits(item: int) -> int:
        return await awaited(item)

    assert [outcome.value for outcome in fanout(waits, [1], mode="asyncio")] == [1]


def test_who_prints_a_fan_out_sees_that_nothing_has_run_yet() -> None:
    outcomes = fanout(itself, [1, 2])
    assert repr(outcomes) == (
        "<ungil.fanout.Outcomes of itself: items run as you iterate, as in list(...)>"
    )
    next(outcomes)
    assert repr(outcomes) == "<ungil.fanout.Outcomes of itself: 1 taken>"


def test_an_order_that_is_neither_true_nor_false_is_refused() -> None:
    with pytest.raises(TypeError, match=r"^in_order='no' is neither True nor False$"):
        fanout(itself, [1], in_order="no")  # pyright: ignore[reportArgumentType]


def test_items_that_are_none_are_named() -> None:
    number: Any = 3
    with pytest.raises(TypeError, match=r"^items=3 cannot be iterated over: give a list of items$"):
        fanout(itself, number)


def test_items_that_only_an_async_for_goes_through_are_for_fanout_of_a_loop() -> None:
    async def numbers() -> AsyncIterator[int]:
        yield 1

    items: Any = numbers()
    with pytest.raises(TypeError, match=r"^items is .* only `async for` goes through: use `async"):
        fanout(itself, items)


def test_a_backoff_that_returns_a_text_is_refused_in_a_sentence() -> None:
    def fail(item: int) -> float:
        return 1 / item

    def backoff(error: BaseException, attempt: int) -> Any:
        return "1"

    with pytest.raises(TypeError, match=r"^backoff returned '1' for ZeroDivisionError"):
        list(fanout(fail, [0], retries=1, backoff=backoff))


def test_a_backoff_of_texts_is_refused_in_a_sentence() -> None:
    first: Any = "1"
    with pytest.raises(TypeError, match=r"^backoff's first='1' is not a number$"):
        Backoff(first)
    with pytest.raises(TypeError, match=r"^backoff's jitter='1' is not a number$"):
        Backoff(jitter=first)
