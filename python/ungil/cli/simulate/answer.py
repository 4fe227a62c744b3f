"""A prediction as JSON, schema 1: what the native part computes (docs/simulate.md)."""

from __future__ import annotations

from typing import TypedDict


class Scheduling(TypedDict):
    """A policy and its quantum, or the switch interval of `stock`; None for both without a GIL."""

    policy: str | None
    quantum_ms: float | None


class Listed(TypedDict):
    """A GIL of a trace, to choose from."""

    pid: int
    argv: list[str]
    gil: int
    recorded_under: Scheduling
    wanted_s: float
    processors: int | None
    """That the process may use; None if the trace does not tell."""
    threads: list[str]


class Lengths(TypedDict):
    """Some lengths of time."""

    count: int
    mean_us: float
    p50_us: float
    p99_us: float
    max_us: float


class ThreadFigures(TypedDict):
    """One thread in one run."""

    tid: int
    name: str
    held_s: float
    waited_s: float
    ran_s: float
    waits: Lengths
    returns: Lengths


class Figures(TypedDict):
    """One run, recorded or predicted."""

    duration_s: float
    cpu_per_s: float
    held_share: float
    handoffs: int
    forced: int
    waits: Lengths
    returns: Lengths
    jain: float | None
    threads: list[ThreadFigures]


class Range(TypedDict):
    """From the least to the most that a figure may be."""

    low: float
    high: float


class ThreadRanges(TypedDict):
    """Those of a thread."""

    waited_s: Range
    wait_p50_us: Range
    return_p50_us: Range


class Ranges(TypedDict):
    """Those of a run."""

    duration_s: Range
    cpu_per_s: Range
    wait_p50_us: Range
    wait_p99_us: Range
    return_p50_us: Range
    return_p99_us: Range
    threads: list[ThreadRanges]


class Changed(TypedDict):
    """A thread with another amount of work, or several times."""

    thread: str
    work: float
    times: int


class ToldRules(Scheduling):
    """What is different from the recording."""

    cores: int | None
    without: list[str]
    changes: list[Changed]
    levels: list[tuple[str, str]]
    once: bool


class Answer(TypedDict):
    """A prediction beside the recording."""

    schema: int
    pid: int
    argv: list[str]
    gil: int
    recorded_under: Scheduling
    rules: ToldRules
    recorded: Figures
    reproduced: Figures
    predicted: Figures
    ranges: Ranges
    notes: list[str]
