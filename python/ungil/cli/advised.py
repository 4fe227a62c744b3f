"""When a trace gets its advice unasked: predictions replay it some dozen times."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TypedDict

from ungil._native import read_trace

SIMULATED_BYTES = 4_000_000
"""A trace of this size is read and replayed in about a second on two processors."""
CLOSING_S = 1.0
"""The end of a recording waits for its advice so long at most, and a replay more."""


class HowAdvised(TypedDict):
    """Options of `_native.read_trace`, and of the page of a trace."""

    advise: bool
    simulate: bool


def how_advised(trace: str, asked: bool | None = None) -> HowAdvised:
    """How to advise about the file `trace`: with a simulation if asked, or if it takes a second.

    What needs no simulation takes a moment, however large the trace is. OSError without that file.
    """
    simulate = _is_small(trace) if asked is None else asked
    return HowAdvised(advise=asked is not False, simulate=simulate)


def with_advice(report: Callable[[], str], trace: str, blame_after: float) -> str:
    """The JSON of the `report` of the file `trace`, with a simulation if that is soon over.

    `report` tells it with the advice that needs none. Raises what `_native.read_trace` does.
    """
    told = report()
    if not _is_small(trace):
        return told
    read = read_trace(trace, blame_after, advise=True, advise_within_s=CLOSING_S)
    advised = json.loads(read).get("advised")
    if advised is None:
        return told
    return json.dumps({**json.loads(told), "advised": advised, "remedies_left_out": False})


def _is_small(trace: str) -> bool:
    return Path(trace).stat().st_size <= SIMULATED_BYTES
