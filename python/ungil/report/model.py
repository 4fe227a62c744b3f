"""The report as JSON, schema 1: what the native part computes and the renderer shows.

Times are in the unit their name ends in. Keys marked NotRequired may be missing; a reader skips
keys it does not know.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Literal, NotRequired, TypedDict, cast

Who = int | Literal["others", "unknown"] | None
"""A party to a wait: a thread by its tid, some that are not listed, one that nobody knows because
events were lost, or nobody, when the GIL was on its way to the next holder."""


class Distribution(TypedDict):
    """How long the holds or the waits of a thread were."""

    count: int
    mean_us: float
    p50_us: float
    p99_us: float
    max_us: float


class Gaps(TypedDict):
    """The time between two moments at which a thread ran."""

    mean_ms: float
    max_ms: float


class ContextSwitches(TypedDict):
    """How often the kernel took a thread off its core."""

    voluntary: int
    involuntary: int


class Thread(TypedDict):
    """One thread, at one GIL."""

    tid: int
    name: str
    held_s: float
    waited_s: float
    cpu_s: float | None
    """None while it runs."""
    holds: Distribution
    waits: Distribution
    gaps: Gaps
    voluntary: int
    forced: int
    started_s: NotRequired[float]
    ended_s: NotRequired[float | None]
    """None while it runs."""
    main: NotRequired[bool]
    context_switches: NotRequired[ContextSwitches | None]
    drop_requests: NotRequired[int]
    lost_events: NotRequired[int]


class Others(TypedDict):
    """Threads that are not listed one by one, summed."""

    threads: int
    held_s: float
    waited_s: float
    holds: NotRequired[int]
    waits: NotRequired[int]
    drop_requests: NotRequired[int]


class OtherProcesses(TypedDict):
    """Processes that are not listed one by one, summed."""

    processes: int
    held_s: float
    waited_s: float


class Blame(TypedDict):
    """How long `victim` waited while `culprit` held."""

    victim: Who
    culprit: Who
    waited_s: float
    victim_name: NotRequired[str | None]
    culprit_name: NotRequired[str | None]


class Native(TypedDict):
    """The native function that Python code called, as samples show it."""

    function: str | None
    """What Python calls it, else its symbol; None if it has no name."""
    library: str
    """The file that it is from, or ""."""
    innermost: str | None
    """The function that was running then."""
    innermost_library: str
    samples: int
    """How many samples show `function`."""
    looks: int
    """In how many samples native code could have been seen."""
    stack: list[str]
    """The native frames of one of these samples, innermost first."""


class Stopped(TypedDict):
    """How often threads were stopped so that their native functions could be seen."""

    times: int
    p50_us: float
    p99_us: float
    max_us: float
    total_ms: float
    """How long they stood still, at most."""


class LongHold(TypedDict):
    """One hold that was longer than `--blame-after`."""

    tid: int
    start_s: float
    duration_ms: float
    stack: list[str]
    """Innermost frame first, as `function (file:line)`; empty if none was taken."""
    name: NotRequired[str]
    contended: NotRequired[bool]
    """Whether anybody waited meanwhile."""
    waited_s: NotRequired[float]
    waiters_max: NotRequired[int]
    cpu_ms: NotRequired[float | None]
    """For how long the holder ran."""
    not_run_ms: NotRequired[float | None]
    """For how long it wanted to run and the kernel did not run it."""
    stopped_ms: NotRequired[float]
    """For how long ungil had stopped it to see its native frames, at most."""
    user_frame: NotRequired[str | None]
    """The innermost frame that is the user's own code."""
    samples: NotRequired[int]
    """How often the stack was taken."""
    native: NotRequired[Native | None]
    """The native function that most samples show."""
    native_looks: NotRequired[int]
    """In how many samples native code would have been seen."""
    stack_samples: NotRequired[int]
    """How many of these samples have the innermost frame of `stack`."""
    stack_missing: NotRequired[str | None]
    """Why `stack` is empty."""


class Gil(TypedDict):
    """One GIL: a process has one, and one more for each sub-interpreter with its own."""

    gil: NotRequired[int]
    """Its number; 0 is the main interpreter's."""
    held_s: float
    contended_s: float
    handoffs: int
    forced: int
    wanting_mean: float
    wanting_busy_mean: float
    """Since there were several threads."""
    threads: list[Thread]
    blame: list[Blame]
    long_holds: list[LongHold]
    others: NotRequired[Others | None]
    startup_held_s: NotRequired[float]
    """The part of `held_s` in the `startup_s` of the process."""
    long_holds_count: NotRequired[int]
    """How many there were, listed or not."""


class FreeThreaded(TypedDict):
    """Whether a free-threaded build had a GIL."""

    gil: str | None
    """`on`, `off`, `switched on`, or None if that is not known."""
    gil_on_s: float | None
    module: NotRequired[str | None]
    """The extension module whose import switched it on, None if that is not known."""
    library: NotRequired[str | None]
    frame: NotRequired[str | None]
    """Where that was imported."""


class Parked(TypedDict):
    """Sleeps of a thread with one cause."""

    cause: str
    """`object`, `lock`, `internal`, `pause`, `stopping`, `event`, or `lock off the GIL`."""
    waited_s: float
    parks: Distribution


class ParkedThread(TypedDict):
    """A thread that slept."""

    tid: int
    name: str
    main: bool
    causes: list[Parked]


class Waker(TypedDict):
    """A thread that woke another one; both None if it is not known."""

    tid: int | None
    name: str | None
    count: int
    waited_s: float
    let_go: NotRequired[int]
    """How often it had the lock, and let go of it."""
    frame: NotRequired[str | None]
    """From where it did so mostly, None if that is not known."""
    user_frame: NotRequired[str | None]


class ParkedIn(TypedDict):
    """A line of code at which a thread waited."""

    frame: str
    user_frame: str | None
    stack: list[str]
    count: int
    waited_s: float


class ParkedAt(TypedDict):
    """What one thread waited for at one lock, or for one cause."""

    tid: int
    name: str
    cause: str
    of: str | None
    """The type of the object, None if it is not known."""
    lock: int | None
    together: bool
    contended: NotRequired[bool]
    """Whether threads take the lock in turn, and do not wait there for something to do."""
    count: int
    waited_s: float
    max_ms: float
    places: NotRequired[list[ParkedIn]]
    wakers: list[Waker]


class WorldPauses(TypedDict):
    """How often all threads were stopped."""

    count: int
    stopped_s: float
    max_ms: float
    collections: int
    collections_s: float


class Parks(TypedDict):
    """What the threads of a free-threaded Python slept for without a GIL."""

    threads: list[ParkedThread]
    others: list[Parked]
    waits: list[ParkedAt]
    pauses: WorldPauses


class Processors(TypedDict):
    """The processors that a process may use."""

    allowed: int
    """Those of its affinity."""
    limit: float | None
    """The lowest CPU limit of its control groups, in processors."""


class DidWithLock(TypedDict):
    """What a thread did that had a lock for which others slept."""

    what: str
    call: str
    on: str
    frame: str | None
    user_frame: str | None
    looks: int


class LockTaken(TypedDict):
    """A lock that threads took in turn."""

    lock: int
    count: int
    waited_s: float
    waited_for_s: float
    """Time in which any thread slept for it, at least."""
    looks: int
    did: list[DidWithLock]


class Process(TypedDict):
    """One process image."""

    pid: int
    argv: list[str]
    gils: list[Gil]
    python: NotRequired[str]
    parent_pid: NotRequired[int]
    not_recorded: NotRequired[str | None]
    free_threaded: NotRequired[FreeThreaded | None]
    parks: NotRequired[Parks | None]
    lock_waits: NotRequired[list[ParkedAt]]
    """What threads waited for in locks while there was a GIL."""
    locks: NotRequired[list[LockTaken]]
    """Those that threads took in turn."""
    started_s: NotRequired[float]
    policy: NotRequired[str | None]
    switch_interval_ms: NotRequired[float | None]
    unrecorded_threads: NotRequired[int]
    clock_error_us: NotRequired[float | None]
    stopped: NotRequired[Stopped | None]
    processors: NotRequired[Processors | None]
    duration_s: NotRequired[float]
    startup_s: NotRequired[float | None]
    """Until its second thread used a GIL: mostly imports."""


class Window(TypedDict):
    """A stretch of time, in seconds since the start of the trace."""

    start_s: float
    end_s: float
    started_at: str | None
    """Its start in ISO 8601 (UTC), None if the trace does not tell."""


class WorstWindow(Window):
    """Where a finding about a longer run was at its worst."""

    cost_s: float


class Part(Window):
    """The part of the trace that a report is about."""

    cut_holds: int
    cut_waits: int


class Finding(TypedDict):
    """What the numbers mean, in a sentence."""

    kind: str
    """`convoy`, `hog`, `unfair`, `native-hold`, `descheduled`, `late-wakeups`, `parked`,
    `world-pauses`, `gil-switched-on`, `none` or `not-recorded`."""
    text: str
    advice: NotRequired[str | None]
    pid: NotRequired[int | None]
    gil: NotRequired[int | None]
    scope: NotRequired[Literal["run", "window"]]
    window: NotRequired[Window | None]
    worst: NotRequired[WorstWindow | None]
    same_as: NotRequired[int | None]
    """The place of a finding before it that tells the same of another process."""


class Subject(TypedDict):
    """Whom a piece of advice is about."""

    pid: int | None
    gil: int | None
    threads: list[int]
    thread_group: str | None
    function: str | None


class Action(TypedDict):
    """What to type: a command, some lines of Python, or neither."""

    command: list[str] | None
    shell: str | None
    code: str | None


class Gain(TypedDict):
    """What a piece of advice is predicted to gain."""

    measure: str
    unit: str
    before: float
    after: float
    low: float
    high: float
    saved_s_per_s: float
    waited_s_per_s: list[float]
    p99_ms: list[float]
    cpu_s_per_s: list[float]


class Confidence(TypedDict):
    """How sure a piece of advice is."""

    level: str
    because: str


class Evidence(TypedDict):
    """A number that the trace shows."""

    what: str
    value: float
    unit: str
    pointer: str | None


class Advice(TypedDict):
    """What to do."""

    kind: str
    cause: str | None
    text: str
    subject: Subject
    action: Action
    gain: Gain | None
    confidence: Confidence
    evidence: list[Evidence]
    same_as: NotRequired[int | None]
    """The place of a better piece that asks for the same in another process."""


class Advised(TypedDict):
    """All that is advised, best first, and what was tried and would gain too little."""

    schema: int
    advice: list[Advice]
    rejected: list[Advice]
    gils_left_out: NotRequired[int]
    """At how many GILs threads wait for which no remedy was looked for."""


class Report(TypedDict):
    """All that a trace says. The largest process comes first."""

    schema: int
    python: str
    duration_s: float
    lost_events: int
    lost_share: float
    processes: list[Process]
    findings: list[Finding]
    notes: NotRequired[list[str]]
    started_at: NotRequired[str | None]
    part: NotRequired[Part | None]
    other_processes: NotRequired[OtherProcesses | None]
    advised: NotRequired[Advised]
    remedies_left_out: NotRequired[bool]
    """Whether what could help at the GIL, which takes a simulation, is not in `advised`."""


CUT = "the trace ends after"
"""With this begins the first note of a trace that was cut off."""


def cut_of(notes: Sequence[str]) -> str | None:
    """Which of the notes of a report says that its trace was cut off, if it was."""
    return next((note for note in notes if note.startswith(CUT)), None)


def parse(text: str) -> Report:
    """The report in `text`, which the native part wrote."""
    return cast(Report, json.loads(text))
