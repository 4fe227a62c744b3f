"""Whether threads waited next to nothing on both sides, and what else kept a program waiting."""

from __future__ import annotations

from typing import Any, cast

import pytest

from ungil.comparison.elsewhere import changed
from ungil.comparison.little import waited_little
from ungil.comparison.measures import Measures
from ungil.comparison.runs import Run

NOTHING = {"kind": "none", "text": "nothing wrong with the GIL", "advice": None}


def thread(waited_s: float, ended_s: float | None = None) -> dict[str, Any]:
    return {"waited_s": waited_s, "started_s": 0.0, "ended_s": ended_s}


def run(
    threads: list[dict[str, Any]],
    findings: list[dict[str, Any]] | None = None,
    advice: list[dict[str, Any]] | None = None,
    others: float = 0.0,
) -> Run:
    """A run of ten seconds, whose process had one thread for the first two."""
    gil = {"threads": threads, "others": {"waited_s": others} if others else None}
    process = {"started_s": 0.0, "duration_s": 12.0, "startup_s": 2.0, "gils": [gil]}
    report = {
        "duration_s": 12.0,
        "processes": [process],
        "findings": [NOTHING] if findings is None else findings,
        "advised": {"schema": 1, "advice": advice or [], "rejected": []},
    }
    return Run("a.pftrace", cast("Measures", {"report": report}))


def blocked(took_s: float, function: str = "digest (/srv/www/shop/app.py:11)") -> dict[str, Any]:
    """Advice that the loop was blocked for so long."""
    return cause("blocked-event-loop", function, took_s)


def cause(name: str, function: str = "f (app.py:1)", took_s: float = 1.0) -> dict[str, Any]:
    return {
        "kind": "not-the-gil",
        "cause": name,
        "subject": {"function": function},
        "evidence": [
            {"what": "looks", "value": 9, "unit": "count"},
            {"what": "time", "value": took_s, "unit": "s"},
        ],
    }


CALM = run([thread(0.02), thread(0.1, 7.0)])


def test_the_parts_of_their_time_are_of_the_lives_of_threads_beside_others() -> None:
    after = run([thread(0.1)] * 5, others=0.05)
    little = waited_little([CALM], [after, after])
    assert little is not None
    assert little.before == pytest.approx(0.12 / 15)
    assert little.after == pytest.approx(0.55 / 50)


@pytest.mark.parametrize(
    "after",
    [
        run([thread(0.3)]),
        run([*[thread(0.0)] * 50, thread(0.6)]),
        run([thread(0.1)], [{"kind": "convoy", "text": "", "advice": None}]),
        run([thread(0.1)], [{**NOTHING, "advice": "only processes run in parallel"}]),
        run([thread(0.1)], [{"kind": "not-recorded", "text": ""}]),
        run([thread(0.0)], others=0.3),
        run([]),
    ],
    ids=["3 %", "one thread", "a finding", "a limit", "not recorded", "others", "nobody"],
)
def test_waits_that_may_matter_are_not_little(after: Run) -> None:
    assert waited_little([CALM], [CALM]) is not None
    assert waited_little([CALM], [after]) is None
    assert waited_little([after], [CALM]) is None


def test_a_loop_that_is_no_longer_blocked_is_told_of() -> None:
    before = run([], advice=[blocked(0.9), blocked(0.3), cause("sleep")])
    after = run([], advice=[blocked(0.24, "other (app.py:19)")])
    (said,) = changed([before], [after], little=False)
    assert said == (
        "the event loop was blocked for 1.0 s by digest (shop/app.py:11) in 10 s before, "
        "0.2 s by other (app.py:19) after"
    )
    (said,) = changed([before], [run([])], little=False)
    assert said.endswith(" in 10 s before, 0 s after")
    assert changed([before], [run([], advice=[blocked(0.6)])], little=False) == []
    # Of several runs, none may be where the others are.
    assert changed([before, run([])], [run([])], little=False) == []


def test_the_first_cause_is_gone_only_where_all_causes_are_known() -> None:
    before, after = (
        run([], advice=[cause("lock"), cause("sleep")]),
        run([], advice=[cause("sleep")]),
    )
    said = "the cause lock, which was the first thing to look at, is gone"
    assert changed([before], [after], little=True) == [said]
    # Where the GIL is the limit, waits for a lock are not looked for.
    assert changed([before], [after], little=False) == []
    assert changed([before, after], [after], little=True) == []
    assert changed([before], [before], little=True) == []
    full = run([], advice=[cause("sleep"), cause("network"), cause("disk")])
    assert changed([before], [full], little=True) == []
