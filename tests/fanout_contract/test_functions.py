"""What modes for ordinary functions promise, and those for coroutines cannot."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from fanout_contract.modes import Mode

from ungil.fanout import fanout


def test_a_fan_out_within_a_fan_out_works(blocking: Mode) -> None:
    async def square(number: int) -> int:
        await blocking.sleep(0.001)
        return number * number

    async def row(number: int) -> int:
        return sum(outcome.unwrap() for outcome in blocking.fanout(square, range(number)))

    outcomes = blocking.fanout(row, range(6))
    assert [outcome.unwrap() for outcome in outcomes] == [0, 0, 1, 5, 14, 30]


def test_a_function_that_returns_a_coroutine_is_told_what_it_should_be(blocking: Mode) -> None:
    def disguised(item: int) -> Coroutine[Any, Any, Any]:
        return blocking.itself(item)

    [outcome] = fanout(disguised, [1], mode=blocking.mode)
    assert type(outcome.exception) is TypeError
    assert "the function returned a coroutine, which a " in str(outcome.exception)
    assert "make it an async def" in str(outcome.exception)
