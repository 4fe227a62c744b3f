"""The options of a fan-out: one list, behind `fanout`, `Fanout`, the runner and the command."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any, get_args, get_type_hints

import pytest

from ungil.fanout import CommonOptions, Fanout, Mode, Options, fanout
from ungil.fanout._plan import MODES, OPTIONS, Plan
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
