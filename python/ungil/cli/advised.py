"""When a trace gets its advice unasked: predictions replay it some dozen times."""

from __future__ import annotations

import json
from pathlib import Path

from ungil._native import read_trace

ADVISED_BYTES = 4_000_000
"""A trace of this size is read and replayed in about a second on two processors."""
CLOSING_S = 1.0
"""The end of a recording waits for its advice so long at most, and a replay more."""


def is_advised(trace: str, asked: bool | None = None) -> bool:
    """Whether to advise about the file `trace`: if that was asked for, or takes about a second.

    OSError without that file.
    """
    return Path(trace).stat().st_size <= ADVISED_BYTES if asked is None else asked


def with_advice(report: str, trace: str, blame_after: float) -> str:
    """The JSON `report` of the trace file `trace`, with its advice if that comes soon enough.

    Raises what `_native.read_trace` does.
    """
    if not is_advised(trace):
        return report
    read = read_trace(trace, blame_after, advise=True, advise_within_s=CLOSING_S)
    advised = json.loads(read).get("advised")
    return report if advised is None else json.dumps({**json.loads(report), "advised": advised})
