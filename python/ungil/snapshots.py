"""Snapshots of a flight recorder, and the sentence that is said of one."""

from __future__ import annotations

import json
import os
from typing import Literal, TypedDict, cast

from ungil.formatting import digits, duration, native_reason, plural, printable


class Condition(TypedDict):
    """What must not last longer than so many nanoseconds."""

    limit: Literal["wait", "hold"]
    over_ns: int


class Holder(TypedDict):
    """Who held the GIL, and in which line it was seen, as `function (file:line)`."""

    tid: int
    thread: str
    line: str | None


class Cause(TypedDict):
    """What lasted too long, and who held the GIL for most of that time."""

    condition: Condition
    pid: int
    tid: int
    thread: str
    length_ns: int
    goes_on: bool
    holder: Holder | None


class Written(TypedDict):
    """A snapshot that was written to `path`, or could not be, for `error`."""

    path: str | None
    error: str | None
    asked: bool
    """Whether somebody asked for it; otherwise it has a `cause`."""
    cause: Cause | None
    stalls: int
    """How many stalls there were since the snapshot before, the one of `cause` included."""
    kept_s: float
    """How many seconds it holds,"""
    last_s: float
    """and how many it was to hold."""
    is_short: bool
    """Whether it holds fewer because there was no room for more."""


def written(text: str) -> Written:
    """What the recorder says."""
    return cast(Written, json.loads(text))


def sentence(snapshot: Written) -> str:
    """All that is said of a snapshot, without a final dot."""
    if snapshot["error"] is not None:
        return f"cannot write a snapshot: {native_reason(snapshot['error'])}"
    parts = [f"{_place(snapshot['path'])}: {_why(snapshot)}"]
    if snapshot["stalls"] > 1:
        parts.append(f"with it {plural(snapshot['stalls'] - 1, 'more stall')}")
    kept = f"the last {digits(snapshot['kept_s'])} s"
    if snapshot["is_short"]:
        kept += f" of {snapshot['last_s']:g} s, for which there was no room"
    return "; ".join([*parts, kept])


def _why(snapshot: Written) -> str:
    cause = snapshot["cause"]
    if cause is None:
        return "as asked"
    thread, lasted = printable(cause["thread"]), duration(cause["length_ns"] / 1e9)
    if cause["goes_on"]:
        lasted += " so far"
    holder = cause["holder"]
    line = f" at {printable(holder['line'])}" if holder is not None and holder["line"] else ""
    if cause["condition"]["limit"] == "hold":
        return f"{thread} held the GIL for {lasted}{line}"
    if holder is None:
        return f"{thread} waited {lasted}, and who held is not known"
    return f"{thread} waited {lasted}, {printable(holder['thread'])} held the GIL{line}"


def _place(path: str | None) -> str:
    """A path as the user would type it."""
    if path is None:
        return "not written"
    near = os.path.relpath(path)
    return path if near.startswith("..") else near
