"""What the native part measures of a run, as JSON (`_native.measure_trace`).

Times are in the unit their name ends in.
"""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict


class Group(TypedDict):
    """Threads whose names are alike but for the numbers in them, summed."""

    pattern: str | None
    """None for threads that are not listed one by one."""
    name: str | None
    """The name, if all of them have the same."""
    threads: int
    held_s: float
    waited_s: float
    cpu_s: float
    cpu_threads: int
    """Of how many of them `cpu_s` is."""
    holds: int
    waits: int
    wait_p50_us: float | None
    wait_p99_us: float | None
    voluntary: int
    forced: int
    drop_requests: int
    blocking_calls: int
    blocking_waited_s: float
    lock_waited_s: float
    """Asleep for locks of the program that threads took in turn."""
    not_run_s: float
    lost_events: int


class Gil(TypedDict):
    """The GILs of one number."""

    gil: int
    held_s: float
    contended_s: float
    handoffs: int
    groups: list[Group]


class Process(TypedDict):
    """Processes with one command line, apart from the numbers in it."""

    pattern: str
    argv: list[str]
    pids: list[int]
    busy_s: float
    gils: list[Gil]


class Stretch(TypedDict):
    """A part of a run, or all of it."""

    start_s: float
    end_s: float
    processes: list[Process]


class Finding(TypedDict):
    """A finding of the report, as `ungil.report` knows it, with what it is compared by."""

    kind: str
    text: str
    pid: int | None
    gil: int | None
    threads: list[int]
    cost_s: float
    frame: NotRequired[str | None]
    user_frame: NotRequired[str | None]
    culprits: NotRequired[list[int]]
    """Who held meanwhile, where `threads` are those that waited; the worst first."""


class Measures(TypedDict):
    """A run."""

    report: dict[str, Any]
    """The report of all of it, schema 1."""
    whole: Stretch
    parts: list[Stretch]
