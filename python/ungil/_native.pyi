"""The native part: the recorder, the reader of traces, and what the hook can be loaded into."""

from asyncio import AbstractEventLoop
from collections.abc import (
    Awaitable,
    Callable,
    Coroutine,
    Generator,
    Hashable,
    ItemsView,
    Iterable,
    Iterator,
    KeysView,
    Mapping,
    Sequence,
    Set,
    ValuesView,
)
from os import PathLike
from types import GenericAlias
from typing import (
    Any,
    ClassVar,
    Final,
    Generic,
    Literal,
    Never,
    NoReturn,
    Protocol,
    Self,
    SupportsIndex,
    final,
    overload,
)

from typing_extensions import Buffer, TypeVar, disjoint_base

_K = TypeVar("_K")
_V = TypeVar("_V")
_T = TypeVar("_T")
_R = TypeVar("_R")
_Item = TypeVar("_Item", covariant=True, default=Any)
_Value = TypeVar("_Value", covariant=True, default=Any)

__all__ = [
    "ABSENT",
    "LEVELS",
    "POLICIES",
    "Absent",
    "Asker",
    "Cancelled",
    "Child",
    "Connecting",
    "Connection",
    "CutOff",
    "Demands",
    "Dispatcher",
    "FrozenDict",
    "FrozenIterator",
    "FrozenList",
    "FrozenSet",
    "FrozenTuple",
    "Held",
    "Lean",
    "Live",
    "Operation",
    "Outcome",
    "QueueLease",
    "QuickDict",
    "QuickList",
    "Recorder",
    "SharedArray",
    "SharedBarrier",
    "SharedBuffer",
    "SharedCondition",
    "SharedDeque",
    "SharedDict",
    "SharedDictWalk",
    "SharedEvent",
    "SharedHeap",
    "SharedList",
    "SharedListIterator",
    "SharedLock",
    "SharedMonitor",
    "SharedQueue",
    "SharedSemaphore",
    "SharedSet",
    "SharedStruct",
    "SharedTransaction",
    "Slot",
    "Slots",
    "Snapshots",
    "Stacks",
    "StillStarting",
    "StructSchema",
    "WithoutPolicy",
    "__version__",
    "after_fork_in_child",
    "after_fork_in_parent",
    "ask_for_snapshot",
    "attach_policy",
    "before_fork",
    "block_all_signals",
    "connect",
    "connect_unix",
    "detach_policy",
    "die_by",
    "export_trace",
    "freeze",
    "frozen_parts",
    "gil_install",
    "gil_installed",
    "gil_level",
    "gil_policy",
    "gil_regroup",
    "gil_set_group",
    "gil_set_level",
    "gil_set_policy",
    "gil_stats",
    "gil_thread_stats",
    "gil_thread_waits",
    "gil_totals",
    "gil_uncounted_threads",
    "hook_path",
    "hookable",
    "is_shared",
    "kept_waiting",
    "leave_transaction",
    "look_at_recorded",
    "mark_path",
    "measure_trace",
    "open_frozen",
    "owner_died",
    "preload_value",
    "process_policy",
    "read_trace",
    "receive_frozen",
    "receive_handle",
    "remove_dead_sessions",
    "remove_stale_pages",
    "restore_signals",
    "send_handle",
    "set_frozen_views",
    "set_process_policy",
    "set_proxy",
    "set_stand_in",
    "set_values",
    "set_watch",
    "sleep",
    "struct_cas",
    "struct_incr",
    "trace_rows",
    "trace_span",
    "trace_stretches",
    "unfinished_traces",
    "unscheduled",
    "version",
    "wait_for_change",
    "wait_for_queues",
    "wait_readable",
    "wait_writable",
    "watch_bell",
    "watch_disturb",
    "watch_heap",
    "watch_object",
    "watch_queue",
    "watch_sleep",
    "write_page",
]

__version__: str
"""The version of ungil."""

LEVELS: tuple[str, ...]
"""The levels that a thread can have, lowest first."""
POLICIES: tuple[str, ...]
"""How the GIL can be scheduled."""

@final
class Asker:
    """A thread that, while it is told to, wants the GIL again and again and lets go at once.

    So a hold in which the interpreter runs bytecode lasts little longer than a switch interval, and
    a longer one keeps the GIL from a thread that asks for it. Python does not know the thread.
    """

    def __new__(cls) -> Asker:
        """Start the thread, which does not ask yet. Raises OSError if there can be none."""

    @property
    def tid(self) -> int:
        """Its kernel thread id."""

    def ask(self, asks: bool) -> None:
        """Whether it asks from now on."""

    def stop(self) -> None:
        """End the thread. Not for the child of a fork, which does not have it."""

@final
class Child:
    """A program that runs as if nobody stood between it and whoever started this process.

    Inside of `with`, which has to be entered before another thread is started, every signal that is
    sent to this process alone goes to the program, and the process stops when the program is
    stopped by the terminal. Belongs to the thread that made it.
    """

    def __new__(cls) -> Child: ...
    def __enter__(self) -> Child:
        """From now on signals wait for the program."""

    def __exit__(self, *_exception: object) -> None:
        """Let signals have their effect on this process again."""

    def start(
        self,
        executable: str,
        words: list[str],
        environment: dict[str, str],
        recorder: Recorder | None = None,
    ) -> None:
        """Start the file `executable` with a command line, its name included, and an environment.

        A SIGUSR2 to this process does not go on to the program if there is a `recorder`: it asks
        that for a snapshot.
        It has the signal mask and the dispositions with which this process was started. Raises
        OSError if the system refuses, ValueError if there is a NUL in what is given.
        """

    @property
    def pid(self) -> int | None:
        """The process id, None before `start()`."""

    def wait(self) -> int:
        """Wait for the end: the exit status, or minus the number of the signal that killed it."""

@final
class Recorder:
    """Records every process that the environment of `environment()` reaches, until `stop()`.

    A recorder that is dropped before `stop()` leaves no file behind.
    """

    def __new__(
        cls,
        path: str | None,
        *,
        overwrite: bool,
        blame_after_ms: float,
        follow_children: bool,
        counter: bool = True,
        judged_from_ms: tuple[float, float] | None = None,
        flight: tuple[float, list[tuple[str, float]], int | None, bool] | None = None,
        native: bool = False,
    ) -> Recorder:
        """Prepare to write the trace `path`, which appears under that name when it is complete.

        None writes no trace.

        Holds longer than `blame_after_ms` while somebody waits get a Python stack.
        Times are taken from the processor's counter, unless `counter` is false or the kernel does
        not make its own clock from it; CLOCK_MONOTONIC, in which all are told, costs more.
        `judged_from_ms` are the own time of holds and that of waits from which on `judged()` tells
        them; it tells nothing without it.

        With `flight` only the last seconds are kept, and written as snapshots that are called
        after `path` (`x.pftrace`: `x-1.pftrace` and so on): how many seconds; when, as pairs of
        "wait" or "hold" and milliseconds; how many files stay at most; whether a stall is written
        to a file, or only told.
        With `native` long holds come with the native functions that the thread was in; to see them
        it is stopped for some tens of microseconds, a hundred times a second at most.
        Raises FileExistsError (unless `overwrite`), FileNotFoundError, PermissionError, OSError;
        RuntimeError with a sentence if there is no room for the recording's buffers.
        """

    def environment(self, base: dict[str, str]) -> dict[str, str]:
        """`base` with what a process needs to be recorded: LD_PRELOAD (kept and extended), UNGIL_*.

        Raises ValueError if the loader could not preload the hook from where it is installed.
        """

    def start(self, executable: str) -> None:
        """Record in a background thread from now on.

        `executable` is the program about to be started: the report says why, if it has no GIL.
        Raises OSError if there can be no thread.
        """

    def join(self) -> None:
        """Record this very process from now on, until `stop()`, and the children that it forks.

        In the place of `environment()` and `start()`. The recording thread never takes the GIL. A
        hold that goes on begins, in the trace, now.
        Raises RuntimeError with a sentence if its GIL cannot be recorded, OSError as `start()`.
        """

    def attach(self, pid: int) -> float | None:
        """Record process `pid`, which runs, until `stop()`, and the children that it forks.

        In the place of `environment()` and `start()`. See `attach_policy` for how, for what is
        returned, and for errors.
        """

    def status(self) -> str:
        """How far it is, as JSON: `{"events": n, "processes": n, "threads": n}`."""

    def judged(self) -> str:
        """Holds and waits that have ended since the last call, as JSON (docs/testing.md).

        After `stop()`, those that ended since the last call before it.
        """

    def snapshots(self) -> Snapshots:
        """The snapshots of a flight recorder."""

    def stop(self) -> str:
        """Drain what is left, complete the file and return the report as JSON (schema 1).

        That of a flight recorder is `null`.

        A file that could not be written, see `incomplete`, does not keep it from reporting.
        Raises RuntimeError if the recorder is not running.
        """

    def with_causes(self) -> str:
        """After `stop()`, its report with the advice that needs no simulation; see `read_trace`."""

    @property
    def incomplete(self) -> tuple[str, str] | None:
        """After `stop()`, if the trace lacks its end or its name: why, and where it is."""

@final
class Live:
    """A recording without a file, for somebody who looks now and then.

    Holds of `blame_after_ms` and longer that keep somebody waiting get a stack.
    Raises OSError or RuntimeError, as `Recorder` does.
    """

    def __new__(
        cls, *, blame_after_ms: float, follow_children: bool, counter: bool = True
    ) -> Live: ...
    def attach(self, pid: int) -> float | None:
        """See process `pid`, which runs, from now on, until `stop()`.

        With `follow_children` also the children that it forks. May be called for several
        processes. See `attach_policy` for how, for what is returned, and for errors.
        """

    def look(self) -> str:
        """What was counted since the last look, and what is so now, as JSON.

        `{"lately": REPORT, "worst_waits": [{"pid", "tid", "ms"}], "now": [PROCESS]}`. The report
        is of schema 1, without findings. A worst wait is the longest of a thread that ended in the
        last minute, or goes on. PROCESS is what `look_at_recorded` returns.
        Raises RuntimeError if no process was attached to.
        """

    def stop(self) -> None:
        """Have every process leave. One that cannot be asked does when it next uses its GIL."""

def look_at_recorded(pid: int) -> str | None:
    """Who holds and who waits in a process that somebody else records, as JSON; else None.

    `{"pid", "at_ns", "seen_since_ns", "python", "not_recorded", "policy", "switch_interval_ns",
    "unrecorded_threads", "threads": [{"tid", "ident", "gil", "holding_since_ns",
    "waiting_since_ns", "is_first_wait", "releases"}]}`, times by CLOCK_MONOTONIC. A thread that
    has held a GIL since before `seen_since_ns` has no hold there until it lets go. The process and
    its recorder notice nothing; the number of the GIL is 0, as only the recorder knows it.
    """

@final
class Stacks:
    """The Python stacks of process `pid`, read from outside while it runs.

    Raises ProcessLookupError if it has ended, RuntimeError with a sentence if it cannot be read.
    """

    def __new__(cls, pid: int) -> Stacks: ...
    def read(self) -> str:
        """What all its threads do, as JSON; raises as the class does.

        `{"begun_ns", "at_ns", "threads": [{"ident", "tid", "name", "owns_gil", "frames":
        [{"function", "file", "line"}]}]}`, innermost frame first.
        """

def attach_policy(pid: int, policy: str, quantum_ns: int | None = None) -> float | None:
    """Have process `pid`, which runs under no policy, follow one; None is the policy's own quantum.

    It is asked through its control page, if it has one. Else a thread of it is borrowed for some
    milliseconds, by ptrace, and loads the hook. Return for how many seconds a thread was stopped,
    at most; None if none was.
    Raises ProcessLookupError if there is no such process; RuntimeError with a sentence about the
    process if it may not be traced, has no GIL that can be scheduled, or is at no safe place for
    five seconds.
    """

def detach_policy(pid: int) -> float | None:
    """Have process `pid` follow no policy, and call the C library as if it had never had one.

    Return and raise as `attach_policy`.
    """

@final
class Snapshots:
    """The snapshots of a flight recorder, also for other threads than the recorder's.

    One is told of as JSON: `{"path": .., "error": .., "asked": .., "cause": .., "stalls": n,
    "kept_s": .., "last_s": .., "is_short": ..}`.
    """

    def take(self, path: str | None = None) -> str:
        """Write the seconds that are kept, to a new file. RuntimeError if none are."""

    def ask(self) -> None:
        """Have the seconds that are kept written to a new file, and wait for nothing."""

    def next(self, patience_s: float) -> str | None:
        """The next one, whoever asked for it; None if there is none after so many seconds.

        It comes back at once if the recorder has stopped and all was told.
        """

def ask_for_snapshot(pid: int, path: str | None = None) -> str:
    """As `Snapshots.take`, of the flight recorder `pid`, or of the one that records it.

    `path` is absolute. Raises LookupError with a sentence if there is none, OSError if it does not
    answer.
    """

def remove_dead_sessions() -> list[tuple[str, int]]:
    """Remove what recorders that were killed have left in shared memory and temporary folders.

    Where each session was, and how many bytes it took. Those of other users are left alone, and
    so are those whose recorder lives.
    """

def unfinished_traces(path: str) -> list[tuple[str, bool]]:
    """The unfinished traces that were to be called `path`, the latest first.

    With each whether it is still being recorded.
    """

def read_trace(
    path: str,
    blame_after_ms: float,
    part: tuple[int, int] | None = None,
    *,
    advise: bool = False,
    simulate: bool = True,
    advise_within_s: float | None = None,
) -> str:
    """Return the report of a trace file, or of a part of it, as JSON (schema 1).

    A part goes from its first moment up to its second, both in nanoseconds of CLOCK_MONOTONIC. A
    trace that was cut off is read as far as it goes, which a note says. With `advise` it has the
    key `advised`, whose predictions replay the trace some dozen times; of a part there are none.
    What takes longer than `advise_within_s` in all is left out. If not `simulate`, `advised` has
    only what it is where it is not the GIL, and `remedies_left_out` says if there may be more.
    Raises ValueError, in one sentence, for a foreign or damaged file or one of another schema,
    OSError if it cannot be read.
    """

def write_page(
    trace: str,
    page: str,
    shell: str,
    blame_after_ms: float,
    part: tuple[int, int] | None = None,
    progress: Callable[[int], object] | None = None,
    *,
    advise: bool = False,
    simulate: bool = True,
    most_bytes: int | None = None,
) -> str:
    """Write the page of a trace file, or of a part of it, and return what `read_trace` does.

    The page is `shell`, the page without data, with the data in it. It appears, or replaces
    another, when it is complete. `progress` is called now and then with the number of records read
    so far. It has 20 MB at most, or `most_bytes` if that is less.
    Raises what `read_trace` does, an OSError with `filename` if the page cannot be written,
    RuntimeError if the shell is none.
    """

@final
class Demands:
    """What the threads of a trace wanted, one demand for each GIL: the most wanted comes first.

    Raises ValueError, in one sentence, for a foreign or damaged file or one of another schema,
    OSError if it cannot be read.
    """

    def __new__(cls, path: str) -> Demands:
        """Read the trace file `path`; one that was cut off as far as it goes."""

    @property
    def cut(self) -> str | None:
        """The note of a report about a trace that was cut off; None if it is whole."""

    def listed(self) -> str:
        """What there is to choose from, as JSON (docs/simulate.md)."""

    def predict(
        self,
        index: int,
        *,
        policy: str | None,
        quantum_ms: float | None,
        cores: int | None,
        without: list[int],
        work: list[tuple[int, float]],
        times: list[tuple[int, int]],
        levels: list[tuple[int, str]],
        once: bool,
        runs: int,
        seed: int,
    ) -> str:
        """Replay one demand under other rules; recorded and predicted figures as JSON (schema 1).

        `policy` None is no GIL, `quantum_ms` None a policy's own; threads are meant by their place
        in `listed`. Raises ValueError, in one sentence, if no thread is left or a name is unknown,
        IndexError for an `index` that is not listed, MemoryError for too many threads.
        """

def trace_span(path: str) -> tuple[int, int, int | None, str | None]:
    """Return when a trace begins and ends, what day that is, and where it is cut.

    Begin and end are in nanoseconds of CLOCK_MONOTONIC; the third is the begin in nanoseconds since
    1970, None if the trace does not tell. The fourth is the note of a report about a trace that was
    cut off, None if it is whole. Raises what `read_trace` does.
    """

def trace_stretches(
    path: str, from_ns: int, until_ns: int
) -> list[tuple[int, int, int, bool, int, int]]:
    """Who held a GIL and who waited for it, of a trace file, in the order in which that ended.

    Each as process id, number of the GIL, thread id, whether it held (or waited), begin and end in
    nanoseconds since the start of the first process. Those that begin before `from_ns` or not
    before `until_ns` are left out. Raises what `read_trace` does.
    """

def measure_trace(path: str, blame_after_ms: float, most_parts: int, least_part_ms: float) -> str:
    """The measures of a trace file, as JSON: its report, and sums of threads whose names are alike.

    The report has the advice that needs no simulation, as `read_trace` gives it.
    They are of all of it, and of at most `most_parts` parts of equal length, each of
    `least_part_ms` milliseconds at least. Raises what `read_trace` does.
    """

def export_trace(
    path: str,
    format: str,
    descriptor: int,
    part: tuple[int, int] | None = None,
    most_markers: int = 500_000,
    weight: str = "waited",
) -> tuple[int, int]:
    """Write a trace file in the `format` "firefox", "speedscope" or "collapsed" to a descriptor.

    `part` is as for `read_trace`. `firefox` gets the `most_markers` longest holds and waits;
    returned is how many are missing, and what they add up to in nanoseconds. `collapsed` weighs
    stacks by what others "waited", or by how long they "held". Raises what `read_trace` does, and
    ValueError for another format or weight.
    """

def trace_rows(
    path: str,
    take: Callable[[str, list[tuple[int | str | None, ...]]], object],
    part: tuple[int, int] | None = None,
) -> None:
    """Hand the rows of a trace file to `take`, many at a time, with the name of their table.

    `part` is as for `read_trace`. Raises what `read_trace` does, and what `take` raises.
    """

def hook_path() -> str:
    """Where the hook library is installed."""

def hookable(executable: str) -> str | None:
    """None if the hook can record this interpreter, else why not, in a sentence."""

def preload_value(others: str | None, *, written: bool = False) -> str:
    """What LD_PRELOAD has to be for the hook to be loaded, and what it loads so far after it.

    The loader may have to complete it, by a token with a dollar sign; not if it is to be `written`
    somewhere, where that may mean something else.
    Raises ValueError if the loader could not preload the hook from where it is installed, OSError.
    """

def unscheduled(executable: str) -> tuple[str, bool, bool] | None:
    """None if nothing speaks against scheduling this program, else what does, in a sentence.

    With it comes whether the hook can be preloaded all the same, for the programs it starts, and
    whether it surely runs unscheduled: a free-threaded Python is scheduled while its GIL is on.
    """

def restore_signals() -> None:
    """Undo what Python does to signals at its start and exec would pass on, as for SIGPIPE."""

@final
class WithoutPolicy(RuntimeError):
    """The process has no policy, and may be given one on one of its own threads."""

@final
class StillStarting(RuntimeError):
    """The process may be about to get a policy."""

def process_policy(pid: int) -> tuple[str, int]:
    """The policy of a running process, and its quantum in nanoseconds.

    Raises FileNotFoundError or ProcessLookupError if there is no such process, PermissionError if
    it is not ours to look into, RuntimeError, in a sentence, if ungil does not schedule it, and
    StillStarting, which is one, if it may do so in a moment.
    """

def set_process_policy(pid: int, policy: str, quantum_ns: int) -> tuple[str, int]:
    """Change the policy of a running process, and return what `process_policy` did before.

    A quantum of 0 is the policy's own. Raises what `process_policy` does, and ValueError for an
    unknown policy.
    """

def mark_path() -> str:
    """What `ungil run` puts into the environment of the program that this process becomes.

    If that is no Python, the hook in it makes a file of this name, into which every process that
    is scheduled writes, and says on stderr in the end if none was.
    """

def remove_stale_pages() -> list[tuple[str, int]]:
    """Remove the control pages that killed processes of this user have left.

    Where each was, and how many bytes it took. Those of other PID namespaces are left alone.
    """

def block_all_signals() -> None:
    """Keep every signal from the calling thread, also 32 and 33.

    `signal.pthread_sigmask` leaves those two out, which the C library keeps for itself.
    """

def die_by(number: int) -> None:
    """End this process by a signal, without a core dump.

    Returns if the signal does not kill, as for the first process of a container.
    """

def gil_install() -> None:
    """Count this process from now on, and let it be scheduled. Raises RuntimeError: a sentence."""

def gil_installed() -> bool:
    """Whether this process is counted."""

def gil_policy() -> tuple[str, float | None] | None:
    """The policy in force and its quantum in milliseconds, None where none can be set.

    The quantum of `stock` is None: CPython's own switch interval.
    """

def gil_set_policy(name: str, quantum_ms: float | None) -> bool:
    """Change the policy; None is its own quantum. False where none can be set.

    Raises ValueError, in one sentence, for a policy or quantum that there is not.
    """

def gil_level() -> str | None:
    """The calling thread's level, None where none can be set."""

def gil_set_level(name: str) -> str | None:
    """Change the calling thread's level and return the one before, None where none can be set.

    Raises ValueError, which names the known levels, for an unknown one.
    """

def gil_stats() -> list[dict[str, int]]:
    """A dict for each running thread that was seen to use the GIL.

    Keys: tid, ident, waits, waited_ns, holds, held_ns, voluntary, forced, drop_requests.
    Raises RuntimeError if this process is not counted.
    """

def gil_thread_stats() -> tuple[int, int, int, int, int, int, int, int, int]:
    """The calling thread's numbers and clocks.

    waits, waited_ns, holds, held_ns, voluntary, forced, drop_requests, `time.monotonic_ns()`,
    `time.thread_time_ns()`.
    Raises RuntimeError if this process is not counted, or there are too many threads.
    """

def gil_thread_waits() -> tuple[int, int, int, int, int, int]:
    """The calling thread's numbers that take no clock of CPU time.

    waits, waited_ns, held_ns, holds, and how many nanoseconds it waited for the hold that it is
    in, and for the one before.

    Raises as `gil_thread_stats` does.
    """

def gil_totals() -> list[tuple[int, int, int, int, int, int, int, int, int]]:
    """The sums of each of the groups of threads, with the threads that have ended.

    waits, waited_ns, holds, held_ns, voluntary, forced, drop_requests, and how many threads run,
    and wait now. The first row is of threads that ended in no group, the last one, behind that of
    group 9, of running ones that are in none.
    Raises RuntimeError if this process is not counted.
    """

def gil_regroup(groups: dict[int, int], other: int) -> None:
    """Put each running thread into the group of its identifier, or else into `other`.

    What a thread has counted stays with the group that it was in, if it was in one: no sum falls.
    Raises ValueError for a group that is not in 1 to 9, RuntimeError if this process is not
    counted.
    """

def gil_set_group(group: int) -> None:
    """Put the calling thread into a group, in the same way."""

def gil_uncounted_threads() -> int:
    """How many threads found no place to be counted. Raises RuntimeError if not installed."""

@final
class Held:
    """A shared object on its way to its proxy."""

@disjoint_base
class SharedBuffer(Buffer):
    """The proxy of a shared buffer, or what one is to be made of."""

    def __new__(
        cls,
        held: Held | None = None,
        /,
        *,
        source: Buffer | None = None,
        size: int = 0,
        writable: bool = False,
    ) -> Self: ...
    def __len__(self) -> int: ...
    @property
    def readonly(self) -> bool:
        """Whether views can only read it."""

@disjoint_base
class SharedArray(Buffer):
    """The proxy of a shared array, or what one is to be made of: its numbers, and its length."""

    def __new__(
        cls,
        held: Held | None = None,
        /,
        *,
        source: Buffer | None = None,
        shape: Sequence[int] = ...,
        format: str = "B",
        itemsize: int = 1,
        capacity: int = 0,
    ) -> Self: ...
    def __len__(self) -> int: ...
    def __getitem__(self, key: Any, /) -> Any: ...
    def __setitem__(self, key: Any, value: Any, /) -> None: ...
    @property
    def shape(self) -> tuple[int, ...]:
        """How long the axes are."""

    @property
    def format(self) -> str:
        """What an item is, as PEP 3118 and `struct` write it."""

    @property
    def itemsize(self) -> int:
        """Bytes of an item."""

    @property
    def capacity(self) -> int:
        """How long the first axis can become before the items are moved to other memory."""

    def add(self, index: Any, value: Any, /) -> Any:
        """Add to a number in one step, and return what it was.

        Raises OverflowError, and changes nothing, where the sum does not fit; IndexError.
        """

    def maximum(self, index: Any, value: Any, /) -> Any:
        """Raise a number to `value` if it is less, in one step; return what it was."""

    def minimum(self, index: Any, value: Any, /) -> Any:
        """Lower a number to `value` if it is more, in one step; return what it was."""

    def cas(self, index: Any, old: Any, new: Any, /) -> bool:
        """Replace a number by `new` if it equals `old`, in one step; return whether it did."""

    def append(self, item: Any, /) -> None:
        """Add an item, or a row, at the end."""

    def extend_by(self, source: Buffer, rows: int, /) -> None:
        """Add so many rows at the end that are in memory as those of the array are."""

    def resize(self, length: int, /) -> None:
        """Set the length of the first axis, in one step: it loses rows, or gains rows of zeros."""

    def reserve(self, length: int, /) -> None:
        """Make room for a first axis of this length: the items stay where they are until then."""

    def memory(self) -> tuple[SharedBuffer, int]:
        """Return what the items are in at this moment, and how long the first axis is."""

@disjoint_base
class SharedHeap:
    """Shared memory that this process is attached to."""

    @staticmethod
    def anonymous(max_size: int) -> SharedHeap:
        """Make a heap without a name, of at most `max_size` bytes.

        Raises ValueError for an impossible size, MemoryError, OSError.
        """

    @staticmethod
    def unnamed(path: str | PathLike[str], max_size: int) -> SharedHeap:
        """Make a heap that nobody finds before it is published there."""

    def publish(self) -> None:
        """Give it the path that `unnamed` was told. Raises FileExistsError."""

    @staticmethod
    def open(path: str | PathLike[str]) -> SharedHeap:
        """Attach to the heap in a file of another process; also /proc/PID/fd/N.

        Raises ValueError if the file is no heap, PermissionError if it is not this user's alone.
        """

    @staticmethod
    def find(uuid: bytes, place: str | PathLike[str]) -> SharedHeap:
        """Return the heap with this uuid, opened at `place` unless the process is attached to it.

        Raises FileNotFoundError if another heap, or nothing, is there, and as `open` does.
        """

    @property
    def uuid(self) -> bytes:
        """What tells the heap from all others."""

    @property
    def path(self) -> str | None:
        """The file that it was made or opened as, if it has a name."""

    @property
    def place(self) -> str:
        """Where other processes find it now: its name, or this process's open file."""

    @property
    def max_size(self) -> int:
        """Bytes to which it can grow."""

    def unlink(self) -> bool:
        """Take its name away; False if it has none any more."""

    @property
    def root(self) -> SharedDict[Any, Any]:
        """The dict that every process with the heap finds."""

    def share(self, given: object, /) -> object:
        """Make a shared object equal to `given`; `given` itself if it cannot change.

        Raises TypeError that names the place of what cannot be shared.
        """

    def atomic(self) -> SharedTransaction:
        """Return what makes several changes one."""

    def gc(self, patience: float = 10.0) -> tuple[int, int] | None:
        """Collect what nobody can reach; return bytes freed and dead processes cleaned up behind.

        None: others were busy for `patience` seconds.
        """

    def statistics(self, patience: float | None = None) -> dict[str, Any]:
        """Return what is in the heap and who uses it, apart from this process.

        "contents", the objects by type, is None without `patience` and if others were busy for so
        many seconds: to look at them stops all other processes for a moment.
        """

@final
class Absent:
    """The type of ABSENT."""

ABSENT: Final[Absent]
"""In `share.dict.cas`, the value of a key that is not there."""

@disjoint_base
class SharedDict(Generic[_K, _V]):
    """The proxy of a shared dict: what is fast about it."""

    def __new__(cls, held: Held | None = None, /) -> Self: ...
    def __class_getitem__(cls, key: object) -> GenericAlias: ...
    def __len__(self) -> int: ...
    def __contains__(self, key: object, /) -> bool: ...
    def __getitem__(self, key: _K, /) -> _V: ...
    def __setitem__(self, key: _K, value: _V, /) -> None: ...
    def __delitem__(self, key: _K, /) -> None: ...
    @overload
    def get(self, key: _K, default: None = None, /) -> _V | None: ...
    @overload
    def get(self, key: _K, default: _V, /) -> _V: ...
    @overload
    def get(self, key: _K, default: _T, /) -> _V | _T:
        """Return the value of `key`, or `default`."""

    def incr(self, key: _K, by: _V | None = None, /) -> _V:
        """Add `by` (1) to the value of `key` in one step, and return the sum.

        A missing value counts as 0. Raises TypeError if it is not a number.
        """

    def cas(self, key: _K, old: _V | Absent, new: _V | Absent, /) -> bool:
        """Set `key` to `new` if its value equals `old`, in one step; return whether it did.

        A shared object equals only itself. If `old` is ABSENT, the key must be missing; if `new` is
        ABSENT, the key is deleted.
        """

    def clear(self) -> None:
        """Remove everything."""

    def copy(self) -> dict[_K, _V]:
        """Copy it as it is at one moment into an ordinary dict; shared objects stay shared."""

    @overload
    def pop(self, key: _K, /) -> _V: ...
    @overload
    def pop(self, key: _K, /, default: _V) -> _V: ...
    @overload
    def pop(self, key: _K, /, default: _T) -> _V | _T:
        """Remove `key` and return its value, or `default`. Raises KeyError without one."""

    def popitem(self) -> tuple[_K, _V]:
        """Remove the key that was put in last; return it and its value.

        Raises KeyError if it is empty.
        """

    def set_all(self, pairs: dict[_K, _V], /) -> None:
        """Take over the values of an ordinary dict, in one step."""

    @overload
    def setdefault(
        self: SharedDict[_K, _T | None], key: _K, default: None = None, /
    ) -> _T | None: ...
    @overload
    def setdefault(self, key: _K, default: _V, /) -> _V:
        """Return the value of `key`; if it has none, set it to `default` first."""

    def walk(
        self, part: Literal["keys", "values", "items"], step: Literal[1, -1], /
    ) -> SharedDictWalk:
        """Iterate over what is in it, in the order of insertion or from the end.

        Others may change it meanwhile.
        """

class QuickDict(SharedDict[_K, _V]):
    """The same, with subscripts that make no detour by PyO3."""

@final
class SharedDictWalk:
    """An iterator over lists of what is in a dict."""

    def __iter__(self) -> Self: ...
    def __next__(self) -> list[Any]: ...

@disjoint_base
class SharedList(Generic[_T]):
    """The proxy of a shared list: what is fast about it."""

    def __new__(cls, held: Held | None = None, /) -> Self: ...
    def __class_getitem__(cls, key: object) -> GenericAlias: ...
    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, key: SupportsIndex, /) -> _T: ...
    @overload
    def __getitem__(self, key: slice, /) -> list[_T]: ...
    @overload
    def __setitem__(self, key: SupportsIndex, value: _T, /) -> None: ...
    @overload
    def __setitem__(self, key: slice, value: Iterable[_T], /) -> None: ...
    def __delitem__(self, key: SupportsIndex | slice, /) -> None: ...
    def __contains__(self, value: object, /) -> bool: ...
    def __iter__(self) -> SharedListIterator[_T]: ...
    def __reversed__(self) -> SharedListIterator[_T]: ...
    def append(self, value: _T, /) -> None:
        """Add `value` at the end."""

    def cas(self, index: SupportsIndex, old: _T, new: _T, /) -> bool:
        """Put `new` at `index` if the item there equals `old`, in one step; return whether it did.

        A shared object equals only itself. Raises IndexError.
        """

    def clear(self) -> None:
        """Remove everything."""

    def count(self, value: object, /) -> int:
        """Return how many items equal `value`."""

    def extend(self, values: Iterable[_T], /) -> None:
        """Add `values` at the end, in one step."""

    def incr(self, index: SupportsIndex, by: _T | None = None, /) -> _T:
        """Add `by` (1) to the item at `index` in one step, and return the sum.

        Raises IndexError, and TypeError if it is not a number.
        """

    def index(
        self,
        value: object,
        start: SupportsIndex = ...,
        stop: SupportsIndex = ...,
        /,
    ) -> int:
        """Return the index of the first item that equals `value`.

        Raises ValueError if there is none.
        """

    def insert(self, index: SupportsIndex, value: _T, /) -> None:
        """Add `value` before `index`."""

    def pop(self, index: SupportsIndex = ..., /) -> _T:
        """Remove an item, the last one by default, and return it. Raises IndexError."""

    def remove(self, value: object, /) -> None:
        """Remove the first item that equals `value`. Raises ValueError if there is none."""

    def reorder(self, version: int, order: list[int], /) -> bool:
        """Put item `order[i]` at place i; False if the list has another version by now."""

    def alone(self, work: Callable[[], _R]) -> _R:
        """Call `work` in a transaction, in which nobody else changes what it looks at."""

    def repeat(self, times: SupportsIndex, /) -> None:
        """Put so many copies of the items, one after the other, in the place of them."""

    def reverse(self) -> None:
        """Reverse the order."""

    def snapshot(self) -> tuple[list[_T], int]:
        """Return all items of one moment, and the version of the list that they are from."""

class QuickList(SharedList[_T]):
    """The same, with subscripts that make no detour by PyO3."""

@final
class SharedListIterator(Generic[_T]):
    """An iterator over a list, by index."""

    def __iter__(self) -> Self: ...
    def __next__(self) -> _T: ...

@disjoint_base
class SharedSet(Generic[_T]):
    """The proxy of a shared set: what reads or changes it."""

    def __new__(cls, held: Held | None = None, /) -> Self: ...
    def __class_getitem__(cls, key: object) -> GenericAlias: ...
    def __len__(self) -> int: ...
    def __contains__(self, given: object, /) -> bool: ...
    def __iter__(self) -> Iterator[_T]:
        """Go through the members of this moment."""

    def add(self, member: _T, /) -> None:
        """Add `member`. Raises TypeError if it cannot be hashed or shared."""

    def discard(self, member: object, /) -> None:
        """Remove `member` if it is there."""

    def remove(self, member: object, /) -> None:
        """Remove `member`. Raises KeyError if it is not there."""

    def pop(self) -> _T:
        """Remove any member, and return it. Raises KeyError if there is none."""

    def clear(self) -> None:
        """Remove all members."""

    def update(self, *others: Iterable[_T]) -> None:
        """Add all of these, in one step."""

    def intersection_update(self, *others: Iterable[object]) -> None:
        """Keep only members that are in all of these, in one step."""

    def difference_update(self, *others: Iterable[object]) -> None:
        """Remove all of these, in one step."""

    def symmetric_difference_update(self, other: Iterable[_T], /) -> None:
        """Remove those of these that are members and add the others, in one step."""

@disjoint_base
class SharedDeque(Generic[_T]):
    """The proxy of a shared deque: what reads or changes it."""

    def __new__(cls, held: Held | None = None, /) -> Self: ...
    def __class_getitem__(cls, key: object) -> GenericAlias: ...
    @property
    def maxlen(self) -> int | None:
        """How many items it can have; None: any number."""

    def __len__(self) -> int: ...
    def __getitem__(self, key: SupportsIndex, /) -> _T: ...
    def __setitem__(self, key: SupportsIndex, item: _T, /) -> None: ...
    def __delitem__(self, key: SupportsIndex, /) -> None: ...
    def __contains__(self, item: object, /) -> bool: ...
    def __iter__(self) -> Iterator[_T]:
        """Go through the items of this moment."""

    def __reversed__(self) -> Iterator[_T]:
        """Go through the items of this moment from right to left."""

    def __imul__(self, times: SupportsIndex, /) -> Self:
        """Repeat the items, in one step."""

    def append(self, item: _T, /) -> None:
        """Add `item` at the right end; if that is too many, drop the leftmost."""

    def appendleft(self, item: _T, /) -> None:
        """Add `item` at the left end; if that is too many, drop the rightmost."""

    def extend(self, items: Iterable[_T], /) -> None:
        """Add items at the right end, in one step."""

    def extendleft(self, items: Iterable[_T], /) -> None:
        """Add items at the left end one after the other, in one step."""

    def pop(self) -> _T:
        """Take the item at the right end. Raises IndexError if there is none."""

    def popleft(self) -> _T:
        """Take the item at the left end. Raises IndexError if there is none."""

    def insert(self, index: SupportsIndex, item: _T, /) -> None:
        """Add `item` before an index. Raises IndexError if there is no room for one more."""

    def remove(self, item: object, /) -> None:
        """Remove the first item that equals `item`. Raises ValueError if there is none."""

    def index(
        self,
        item: object,
        start: SupportsIndex = ...,
        stop: SupportsIndex = ...,
        /,
    ) -> int:
        """Find the first item that equals `item`. Raises ValueError if there is none."""

    def count(self, item: object, /) -> int:
        """Count the items that equal `item`."""

    def rotate(self, steps: SupportsIndex = 1, /) -> None:
        """Move `steps` items from the right end to the left, or back if it is negative."""

    def reverse(self) -> None:
        """Reverse the order."""

    def clear(self) -> None:
        """Remove all items."""

@final
class SharedTransaction:
    """Makes what is done in its `with` block one change."""

    def __enter__(self) -> None:
        """Begin it, or a part of the one that this thread has under way."""

    def __exit__(self, kind: object, error: object, traceback: object, /) -> None:
        """Make it happen, or undo it if the block raised an exception."""

def set_watch(watch: Callable[[int], Callable[[], object] | None]) -> None:
    """Declare what calls `leave_transaction` as soon as the task that runs has given way, once.

    It gets the number of a transaction and returns what cancels this, or None.
    """

def leave_transaction(number: int) -> None:
    """Undo the transaction with this number, if it is under way in this thread."""

def set_stand_in(stand_in: Callable[[object, int], tuple[object, ...] | None]) -> None:
    """Declare the function that finds stand-ins of keys, once.

    It gets an object and its hash, and returns a tuple with its stand-in, an empty one if no stored
    key can equal the object, or None if only comparing with each tells.
    """

def set_values(
    apart: Callable[[object], tuple[int, bool, object, object] | str],
    together: Callable[[int, object, object], object],
    lasting: list[int],
    member: int,
) -> None:
    """Declare the functions that take values apart and put them together, once.

    Objects with the same kind and key are equal; if `is_alias`, the second of the four, they equal
    their key. Those of the kinds `lasting` never change, so that one may serve for all that have
    the same parts; so may the members of enums, of the kind `member`.
    """

def send_handle(proxy: object) -> tuple[str, bytes]:
    """Make a handle of a shared object: where its heap is, and which object it is.

    The object lives until the handle was used, or this process has ended.
    """

def is_shared(given: object, /) -> bool:
    """Return whether it is a proxy: a struct or a lock may not be shared yet."""

def receive_handle(place: str, handle: bytes) -> object:
    """Return the proxy of the object of a handle, attaching to its heap if need be.

    Raises FileNotFoundError if the heap is not there any more, ReferenceError if the object is not,
    ValueError for what is no handle, and as `SharedHeap.open` does.
    """

class SharedMonitor:
    """What the classes of shared objects inherit to be monitors."""

    def __enter__(self) -> Self: ...
    def __exit__(self, *_exception: object) -> None: ...

def owner_died(object: object, /) -> bool:
    """Whether the thread in the monitor of an object followed one that died in it."""

@final
class StructSchema:
    """Which fields a class has, and what fits them."""

    def __new__(
        cls, hash: int, module: str, name: str, fields: list[tuple[str, str, tuple[type, ...]]]
    ) -> StructSchema:
        """Describe the fields: a name, what fits it for a person, and the classes that do."""

    def declare(self, class_: type) -> None:
        """Declare the class of this schema, instead of one that had the same before."""

    def attribute(self, class_: type, index: int) -> object:
        """Make the attribute by which a class, and those derived from it, have a field."""

@disjoint_base
class SharedStruct:
    """An instance of a class that was declared, local or shared."""

    def __new__(cls, *args: object, **_kwargs: object) -> Self: ...

def struct_incr(object: SharedStruct, field: str, by: object = None, /) -> object:
    """Add `by` (1) to the number in a field in one step, and return the sum."""

def struct_cas(object: SharedStruct, field: str, old: object, new: object, /) -> bool:
    """Give a field the value `new` if it equals `old`, in one step; return whether it did."""

@disjoint_base
class SharedLock:
    """A lock, re-entrant or not."""

    def __new__(cls, held: Held | None = None, /, *, reentrant: bool = False) -> Self: ...
    def acquire(self, blocking: bool = True, timeout: float | None = ...) -> bool:
        """Acquire the lock; return whether it did.

        Without `blocking` it does not wait; with `timeout` it waits at most so many seconds. It
        waits for ever with -1, the default, or None.
        """

    def release(self) -> None:
        """Release it. Raises RuntimeError if it is not held, a re-entrant one by this thread."""

    def __enter__(self) -> bool: ...
    def __exit__(self, *_exception: object) -> None: ...
    def locked(self) -> bool:
        """Whether it is held."""

    @property
    def owner_died(self) -> bool:
        """Whether its holder got it from a thread that died with it."""

@disjoint_base
class SharedCondition:
    """A condition, with a lock of its own or another one's."""

    def __new__(cls, held: Held | None = None, /, *, lock: SharedLock | None = None) -> Self: ...
    def acquire(self, blocking: bool = True, timeout: float | None = ...) -> bool:
        """Acquire its lock; return whether it did.

        Without `blocking` it does not wait; with `timeout` it waits at most so many seconds. It
        waits for ever with -1, the default, or None.
        """

    def release(self) -> None:
        """Release its lock."""

    def __enter__(self) -> bool: ...
    def __exit__(self, *_exception: object) -> None: ...
    def wait(self, timeout: float | None = None) -> bool:
        """Release the lock until there is a notification; return whether there was one in time.

        `timeout` is in seconds; None: without end.
        Raises RuntimeError if this thread does not hold the lock.
        """

    def notify(self, n: int = 1) -> None:
        """Wake up to `n` of the waiters. Raises RuntimeError as `wait`."""

    def notify_all(self) -> None:
        """Wake all waiters."""

    def locked(self) -> bool:
        """Whether its lock is held."""

    @property
    def owner_died(self) -> bool:
        """Whether the holder of its lock got it from a thread that died with it."""

@disjoint_base
class SharedSemaphore:
    """A number of units: without owners, or bounded, each with its owner."""

    def __new__(
        cls, held: Held | None = None, /, *, value: int = 1, bounded: bool = False
    ) -> Self: ...
    def acquire(self, blocking: bool = True, timeout: float | None = None) -> bool:
        """Take a unit; return whether there was one in time.

        Without `blocking` it does not wait; with `timeout` it waits at most so many seconds.
        """

    def release(self, n: int = 1) -> None:
        """Give `n` units back. Raises ValueError for more than a bounded one has."""

    def __enter__(self) -> bool: ...
    def __exit__(self, *_exception: object) -> None: ...
    @property
    def value(self) -> int:
        """How many units are free."""

@disjoint_base
class SharedEvent:
    """Set or not."""

    def __new__(cls, held: Held | None = None, /) -> Self: ...
    def is_set(self) -> bool:
        """Whether it is set."""

    def set(self) -> None:
        """Set it, and wake all waiters."""

    def clear(self) -> None:
        """Clear it."""

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it is set, at most `timeout` seconds; return whether that was in time."""

@disjoint_base
class SharedBarrier:
    """Parties that go on together."""

    def __new__(cls, held: Held | None = None, /, *, parties: int = 1) -> Self: ...
    def wait(
        self, timeout: float | None = None, *, action: Callable[[], object] | None = None
    ) -> int:
        """Wait for the other parties; return the number of this one, in the order of arrival.

        The last one to arrive calls its `action` before all go on.
        Raises threading.BrokenBarrierError if it is broken, or `timeout` seconds are over, which
        breaks it.
        """

    def abort(self) -> None:
        """Break it: all that wait or come later get BrokenBarrierError."""

    def reset(self) -> None:
        """Reset it: parties that wait get BrokenBarrierError, later ones do not."""

    @property
    def parties(self) -> int:
        """How many must come."""

    @property
    def n_waiting(self) -> int:
        """How many have come and wait."""

    @property
    def broken(self) -> bool:
        """Whether it is broken."""

@disjoint_base
class SharedQueue(Generic[_T]):
    """What many put in and many take out."""

    def __new__(
        cls,
        held: Held | None = None,
        /,
        *,
        maxsize: int = 0,
        ordered: bool = False,
        spin: float = 0.0,
    ) -> Self: ...
    def __class_getitem__(cls, key: object) -> GenericAlias: ...
    @property
    def maxsize(self) -> int:
        """How many items it can have at a time; 0: any number."""

    @property
    def spin(self) -> float:
        """For how many seconds a thread that waits looks before it sleeps."""

    def qsize(self) -> int:
        """How many items it has at this moment, without leased ones."""

    def empty(self) -> bool:
        """Whether it has none at this moment."""

    def full(self) -> bool:
        """Whether it has as many as it can at this moment."""

    def put(self, item: _T, block: bool = True, timeout: float | None = None) -> None:
        """Put an item in. While there is no room it waits, at most `timeout` seconds.

        Raises queue.Full if there was no room in time, or, without `block`, at once; `ShutDown` if
        the queue is closed; TypeError if the item cannot be shared.
        """

    def put_nowait(self, item: _T) -> None:
        """Put an item in, as `put(item, block=False)`."""

    def put_many(self, items: Iterable[_T], timeout: float | None = None) -> int:
        """Put items in, in their order, with one wake-up for all that find room at a time.

        Return how many are in: all, unless there was no room for so many within `timeout` seconds.
        Others can take out, and put in, before the last one is in.
        """

    def get(self, block: bool = True, timeout: float | None = None) -> _T:
        """Take the first item out. While there is none it waits, at most `timeout` seconds.

        Raises queue.Empty if there was none in time, or, without `block`, at once; `ShutDown` if
        the queue is closed and empty.
        """

    def get_nowait(self) -> _T:
        """Take the first item out, as `get(block=False)`."""

    def get_many(self, most: int, timeout: float | None = None) -> list[_T]:
        """Take out as many items as there are, up to `most`, and wait for the first as `get`."""

    def lease(self, block: bool = True, timeout: float | None = None) -> QueueLease[_T]:
        """Take the first item out until it is acknowledged, and wait for one as `get`.

            with jobs.lease() as job:
                work(job)

        If the process dies before that, the item returns to the front of the queue. On a closed
        queue, it waits while other processes hold leases.
        """

    @property
    def leased(self) -> int:
        """How many items are leased."""

    def recover(self) -> int:
        """Put back items whose lease belonged to a dead process; return how many.

        A process that waits for an item does this now and then.
        """

    def task_done(self) -> None:
        """Say that an item that was taken out is done. Acknowledging a lease does so, too.

        Raises ValueError if all items that were put in are done.
        """

    @property
    def unfinished(self) -> int:
        """How many items were put in and are not yet done."""

    def join(self, timeout: float | None = None) -> bool:
        """Wait until all items that were put in are done, at most `timeout` seconds.

        Return whether they were in time.
        """

    def shutdown(self, immediate: bool = False) -> None:
        """Close the queue, in all processes and for ever, as `queue.Queue.shutdown` does.

        `put` raises `ShutDown` at once, `get` raises it when the queue is empty. If `immediate`,
        the remaining items are dropped, and count as done.
        """

    def close(self) -> None:
        """Close the queue as `shutdown()`."""

    @property
    def closed(self) -> bool:
        """Whether it is closed."""

@final
class QueueLease(Generic[_T]):
    """An item of a queue, leased to this process until it acknowledges it.

    As a context manager, it gives the item, and acknowledges it at the end or puts it back after an
    exception. If the lease object is dropped, the item is put back.
    """

    def __class_getitem__(cls, key: object) -> GenericAlias: ...
    @property
    def item(self) -> _T:
        """The item."""

    @property
    def over(self) -> bool:
        """Whether the item was acknowledged or put back."""

    def ack(self) -> None:
        """Say that the item is done: it leaves the queue for good.

        Raises RuntimeError if the lease has ended, or belongs to the process that forked this one.
        """

    def put_back(self) -> None:
        """Put the item back, as the first one of the queue. Raises RuntimeError as `ack`."""

    def __enter__(self) -> _T: ...
    def __exit__(self, *exception: object) -> None: ...

def wait_for_queues(queues: Sequence[SharedQueue[Any]], timeout: float | None = None) -> list[int]:
    """Wait until an item can be taken out of one of these; return the numbers of all such.

    Raises ValueError if they are not all in one heap.
    """

def version(object: object, /) -> int:
    """Return how often a shared object has changed, modulo 2^31."""

def wait_for_change(object: object, version: int, timeout: float | None = None) -> int:
    """Wait until a shared object has changed another number of times; return how many times.

    The same number if it did not within `timeout` seconds.
    """

def watch_object(object: object) -> int:
    """Return how often a shared object has changed; the heap's bell rings when it does again."""

def watch_heap(object: object) -> bytes:
    """Return what tells the heap of a shared object from others."""

def watch_bell(object: object) -> int:
    """Return what the bell of the object's heap says; it rings when what is watched has changed."""

def watch_sleep(object: object, seen: int, seconds: float) -> bool:
    """Sleep until the bell says something else than `seen`; return whether it does."""

def watch_disturb(object: object) -> None:
    """Wake all who sleep at the bell of the object's heap."""

def watch_queue(queue: SharedQueue[Any], room: bool) -> bool:
    """Whether an item can be taken out of a queue or, if `room`, put in, or it is closed.

    If not, the bell rings when that has changed.
    """

def set_proxy(kind: str, class_: type) -> None:
    """Declare the class of the proxies of a kind, once.

    The kinds are "dict", "list", "set", "deque", and the names of the classes of `threading` and
    `queue`.
    """

def before_fork() -> None:
    """Prepare a place for the child in every heap of this process."""

def after_fork_in_parent() -> None:
    """Give up what was prepared: the child has it, or there is none."""

def after_fork_in_child() -> None:
    """Take the places that the parent prepared."""

@final
class Outcome(Generic[_Item, _Value]):
    """The outcome of one item: what the function returned, or the exception that it raised."""

    @property
    def item(self) -> _Item:
        """The item, as it came from the input."""

    @property
    def index(self) -> int:
        """Its place in the input, from 0."""

    @property
    def value(self) -> _Value | None:
        """What the function returned; None where it raised."""

    @property
    def exception(self) -> BaseException | None:
        """What the last attempt raised; None where it returned."""

    @property
    def attempts(self) -> int:
        """How often the function was called for the item."""

    @property
    def queued(self) -> float:
        """When the item was taken from the input, in seconds since 1970."""

    @property
    def started(self) -> float:
        """When the last attempt began, in seconds since 1970.

        For an item that never ran, the time when it was given up.
        """

    @property
    def finished(self) -> float:
        """When the last attempt ended, in seconds since 1970.

        That is `seconds` after `started`, also if the system's clock was set meanwhile.
        """

    @property
    def seconds(self) -> float:
        """How many seconds the last attempt took, by the monotonic clock.

        That includes what it waited for an event loop or a thread that came late.
        """

    @property
    def abandoned(self) -> bool:
        """Whether the function goes on after its timeout: a thread cannot be stopped."""

    @property
    def resumed(self) -> bool:
        """Whether the item did not run, because a journal says that an earlier run has done it.

        The value is the journal's.
        """

    @property
    def ok(self) -> bool:
        """Whether the function returned."""

    def unwrap(self) -> _Value:
        """Return the value, or raise the exception."""

    @classmethod
    def __class_getitem__(cls, key: object) -> GenericAlias: ...
    @staticmethod
    def _of(
        what: tuple[object, int, object, BaseException | None],
        when: tuple[int, int, int, int, int, bool, bool],
    ) -> Outcome: ...

@final
class Dispatcher:
    """Which items run when. One for each fan-out; the modes ask it."""

    def __new__(
        cls,
        input: Iterator[Any] | None,
        *,
        limit: int,
        window: int,
        in_order: bool,
        rate: tuple[float, float] | None = None,
        retries: int = 0,
        backoff: tuple[float, float, float, float] = ...,
        retry_if: Callable[[Any], object] | None = None,
        wait: Callable[[BaseException, int], tuple[float, bool] | None] | None = None,
        group: Callable[[Any], tuple[Hashable, int] | None] | None = None,
        resume: Callable[[Any], tuple[Any] | None] | None = None,
        finished: Callable[[Outcome], object] | None = None,
        name: Callable[[BaseException], str] | None = None,
        too_much: Callable[[BaseException], float | None] | None = None,
        seed: int = 1,
        opening: tuple[str, bool] | None = None,
        is_read_apart: bool = False,
    ) -> Dispatcher: ...
    def next(self) -> Outcome | None: ...
    def succeeded(self, outcome: Outcome, value: object) -> Outcome | None: ...
    def failed(
        self, outcome: Outcome, exception: BaseException, *, abandoned: bool = False
    ) -> Outcome | None: ...
    def given_back(self, outcome: Outcome, exception: BaseException) -> Outcome | None: ...
    def take(self) -> Outcome | None: ...
    def put(self, item: object) -> Outcome | None: ...
    @property
    def wants(self) -> bool: ...
    def read(self) -> bool: ...
    @property
    def in_stock(self) -> int | None: ...
    def close(self, error: BaseException | None = None) -> None: ...
    def stop(self, exception: BaseException) -> None: ...
    def lower_limit(self, limit: int) -> None: ...
    @property
    def running(self) -> int: ...
    @property
    def limit(self) -> int: ...
    @property
    def room(self) -> int: ...
    @property
    def pause(self) -> float | None: ...
    @property
    def in_the_dark(self) -> bool: ...
    def asleep(self) -> None: ...
    def lagged(self, lag: float) -> None: ...
    @property
    def found(self) -> str | None: ...
    @property
    def waits_for_time(self) -> bool: ...
    @property
    def ready(self) -> bool: ...
    @property
    def ended(self) -> bool: ...
    @property
    def counts(self) -> tuple[int, int, int, int]: ...
    @property
    def progress(self) -> tuple[int, int, int, int, int, int, int]: ...
    @property
    def failures(self) -> list[tuple[str, int]]: ...

def kept_waiting(native_id: int) -> int | None:
    """How long a thread has used a processor, ns, if it waits for nothing but one, or for the GIL.

    None if it waits for something else, or if the kernel does not say.
    """

class _HasFileno(Protocol):
    def fileno(self) -> int: ...

class Cancelled(BaseException):
    """Raised in a coroutine of a lean fan-out where it waits, when it shall end.

    As `asyncio.CancelledError`, which is raised in mode "asyncio".
    """

class CutOff(RuntimeError):
    """The item was running when the fan-out was stopped, and was cancelled.

    The exception that ended it is its `__cause__`.
    """

_T_co = TypeVar("_T_co", covariant=True)

@disjoint_base
class Operation(Generic[_T_co]):
    """What a primitive of `ungil.fanout` returns, to be awaited once.

    It works on a loop of mode "lean" and on asyncio's.
    """

    def __await__(self) -> Generator[Any, Any, _T_co]: ...
    def __next__(self) -> Any: ...
    def throw(self, exception: object, value: object = None, _traceback: object = None) -> NoReturn:
        """Raise an exception where it waits, as in a coroutine."""

    def close(self) -> None:
        """Give it up: it stops waiting."""

    def _advance(
        self,
    ) -> tuple[Literal["sleep", "read", "write", "call"] | None, Any]: ...

@final
class Connecting(Operation[Connection]):
    """A connection that is being made: `await` gives it, and `async with` also closes it."""

    def __aenter__(self) -> Awaitable[Connection]: ...
    def __aexit__(self, *_exception: object) -> Awaitable[None]: ...

@final
class Connection:
    """A stream to another program, as `connect` gives it. `with` and `async with` close it.

    One item reads it at a time, and one writes it. Each method that returns an `Operation` is to be
    awaited, and raises OSError for what the system says of the connection.
    """

    def read(self, n: int | None = None, /) -> Operation[bytes]:
        """What has arrived, at most `n` bytes, as soon as there is something.

        `b""` at the end. Without `n`, everything up to the end.
        """

    def read_exactly(self, n: int, /) -> Operation[bytes]:
        """`n` bytes. Raises EOFError if the peer ends before them."""

    def read_line(self, *, limit: int = 65536) -> Operation[bytes]:
        r"""A line with its end, `b"\n"`, which the last line may lack.

        `b""` at the end. Raises ValueError for one longer than `limit` bytes: a peer that never
        ends a line must not fill the memory.
        """

    def read_until(self, separator: bytes, /, *, limit: int = 65536) -> Operation[bytes]:
        """Everything up to and including `separator`.

        Raises EOFError if the peer ends before it, and ValueError if it does not come within
        `limit` bytes.
        """

    def write(self, data: Buffer, /) -> Operation[None]:
        """Send all of `data`. Returns when the system has it, which says nothing about the peer."""

    def close(self) -> None:
        """Close the connection. An item that waits for it gets an OSError."""

    @property
    def closed(self) -> bool:
        """Whether it was closed on this side."""

    def fileno(self) -> int:
        """The number of its descriptor. Raises OSError if it is closed."""

    def __enter__(self) -> Self: ...
    def __exit__(self, *_exception: object) -> None: ...
    def __aenter__(self) -> Operation[Self]: ...
    def __aexit__(self, *_exception: object) -> Operation[None]: ...

def connect(host: str, port: int) -> Connecting:
    """A TCP connection to `host`, a name or an address. Of a name all addresses are tried in turn.

    `await connect(...)` gives the `Connection`, and `async with connect(...)` also closes it.
    Raises the OSError that says why not (ConnectionRefusedError, TimeoutError, ...),
    socket.gaierror if the name has no address, ValueError for an impossible port.
    """

def connect_unix(path: str | PathLike[str]) -> Connecting:
    """A connection to the UNIX socket at `path`; an abstract one if that begins with a zero byte.

    It is used as `connect` is. Raises the OSError that says why not (FileNotFoundError,
    ConnectionRefusedError, ...), ValueError for a path that no socket can have.
    """

def sleep(seconds: float) -> Operation[None]:
    """Returns after this many seconds."""

def wait_readable(file: int | _HasFileno) -> Operation[None]:
    """Returns when a descriptor, or an object with `fileno()`, can be read without waiting.

    Raises OSError if it cannot be waited for.
    """

def wait_writable(file: int | _HasFileno) -> Operation[None]:
    """Returns when a descriptor, or an object with `fileno()`, can be written without waiting.

    Raises OSError if it cannot be waited for.
    """

@disjoint_base
class Slots:
    """What the slots of one fan-out on asyncio have in common; the rest is `_asyncio.Slots`."""

    announced: bool
    closing: bool
    waited_for: bool
    def __new__(
        cls,
        loop: AbstractEventLoop,
        fn: Callable[[Any], Coroutine[Any, Any, Any]],
        dispatcher: Dispatcher,
        timeout: float | None,
        arrived: Callable[[], None],
    ) -> Self: ...

@final
class Slot:
    """What a task of asyncio runs: items, one after the other."""

    def __new__(cls, slots: Slots, attempt: Outcome) -> Self: ...
    def __await__(self) -> Self: ...
    def __iter__(self) -> Self: ...
    def __next__(self) -> Any: ...
    def send(self, _value: Any) -> Any: ...
    def throw(self, exception: BaseException) -> Any: ...
    def close(self) -> None: ...
    @property
    def cr_frame(self) -> Any: ...
    @property
    def cr_code(self) -> Any: ...
    @property
    def cr_await(self) -> Any: ...
    @property
    def cr_running(self) -> bool: ...
    @property
    def __qualname__(self) -> str: ...

@disjoint_base
class Lean:
    """Drives the coroutines of one fan-out."""

    name: str
    def __new__(
        cls, function: Callable[[Any], Any], dispatcher: Dispatcher, timeout: float | None
    ) -> Self: ...
    def advance(self) -> None: ...
    def close(self) -> None: ...

@final
class FrozenIterator(Generic[_T]):
    """An iterator over something frozen."""

    def __iter__(self) -> Self: ...
    def __next__(self) -> _T: ...
    def __length_hint__(self) -> int: ...

@final
class FrozenDict(Mapping[_K, _V]):
    """A dict that never changes, in a frozen file; see `freeze`.

    It equals a dict, or any other mapping, that has equal values for the same keys. Dicts, lists
    and sets in it are frozen, too; small tuples are ordinary ones, made at each reading. What
    would change it raises TypeError.
    """

    def __class_getitem__(cls, key: object) -> GenericAlias: ...
    def __len__(self) -> int: ...
    def __contains__(self, key: object, /) -> bool: ...
    def __getitem__(self, key: _K, /) -> _V: ...
    def __setitem__(self, key: Never, value: Never, /) -> None: ...
    def __delitem__(self, key: Never, /) -> None: ...
    def __iter__(self) -> Iterator[_K]: ...
    def __reversed__(self) -> Iterator[_K]: ...
    @overload
    def get(self, key: object, default: None = None, /) -> _V | None:
        """Return the value of a key, or `default`."""

    @overload
    def get(self, key: object, default: _V, /) -> _V: ...
    @overload
    def get(self, key: object, default: _T, /) -> _V | _T: ...
    def keys(self) -> KeysView[_K]:
        """Return a view of the keys, in the order in which they were inserted."""

    def values(self) -> ValuesView[_V]:
        """Return a view of the values."""

    def items(self) -> ItemsView[_K, _V]:
        """Return a view of the pairs."""

    def walk(self, part: Literal["keys", "values", "items"], step: int, /) -> FrozenIterator[Any]:
        """Iterate over a part of the pairs: from the last one for a step of -1."""

    def irange(
        self,
        minimum: _K | None = None,
        maximum: _K | None = None,
        inclusive: tuple[bool, bool] = ...,
        reverse: bool = False,
    ) -> Iterator[_K]:
        """Iterate over the keys from `minimum` to `maximum` in their order.

        `inclusive`, (True, True), says whether these two are included. Bisection finds the range,
        as in `sortedcontainers.SortedDict.irange`. Raises TypeError if the keys have no common
        order.
        """

    def copy(self) -> dict[_K, _V]:
        """Return an ordinary dict; what is nested stays frozen."""

    def thaw(self) -> dict[_K, Any]:
        """Return an ordinary dict, with ordinary objects at every depth."""

    def __copy__(self) -> dict[_K, _V]: ...
    def __deepcopy__(self, memo: Any, /) -> dict[_K, Any]: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]
    def __or__(self, other: Any, /) -> dict[Any, Any]: ...
    def __ror__(self, other: Any, /) -> Any: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

@final
class FrozenList(Sequence[_Value]):
    """A list that never changes, in a frozen file; see `freeze`.

    A slice is a view of the same file. It equals a list with equal items.
    """

    def __class_getitem__(cls, key: object) -> GenericAlias: ...
    def __len__(self) -> int: ...
    def __contains__(self, given: object, /) -> bool: ...
    @overload
    def __getitem__(self, key: SupportsIndex, /) -> _Value: ...
    @overload
    def __getitem__(self, key: slice, /) -> FrozenList[_Value]: ...
    def __setitem__(self, key: Never, value: Never, /) -> None: ...
    def __delitem__(self, key: Never, /) -> None: ...
    def __iter__(self) -> Iterator[_Value]: ...
    def __reversed__(self) -> Iterator[_Value]: ...
    def index(self, value: Any, start: SupportsIndex = ..., stop: SupportsIndex = ..., /) -> int:
        """Return the index of the first item that equals `value`. Raises ValueError."""

    def count(self, value: Any, /) -> int:
        """Return how many items equal `value`."""

    def copy(self) -> list[_Value]:
        """Return an ordinary list; what is nested stays frozen."""

    def thaw(self) -> list[Any]:
        """Return an ordinary list, with ordinary objects at every depth."""

    def __copy__(self) -> list[_Value]: ...
    def __deepcopy__(self, memo: Any, /) -> list[Any]: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __lt__(self, other: Any, /) -> bool: ...
    def __le__(self, other: Any, /) -> bool: ...
    def __gt__(self, other: Any, /) -> bool: ...
    def __ge__(self, other: Any, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __add__(self, other: Any, /) -> list[Any]: ...
    def __radd__(self, other: Any, /) -> list[Any]: ...
    def __mul__(self, times: SupportsIndex, /) -> list[_Value]: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

@final
class FrozenTuple(Sequence[_Value]):
    """A tuple in a frozen file, if it is large or the whole file; see `freeze`.

    A tuple of up to 256 items in something else is read as an ordinary one. It equals a tuple with
    equal items, and has its hash.
    """

    def __class_getitem__(cls, key: object) -> GenericAlias: ...
    def __len__(self) -> int: ...
    def __contains__(self, given: object, /) -> bool: ...
    @overload
    def __getitem__(self, key: SupportsIndex, /) -> _Value: ...
    @overload
    def __getitem__(self, key: slice, /) -> FrozenTuple[_Value]: ...
    def __setitem__(self, key: Never, value: Never, /) -> None: ...
    def __delitem__(self, key: Never, /) -> None: ...
    def __iter__(self) -> Iterator[_Value]: ...
    def __reversed__(self) -> Iterator[_Value]: ...
    def index(self, value: Any, start: SupportsIndex = ..., stop: SupportsIndex = ..., /) -> int:
        """Return the index of the first item that equals `value`. Raises ValueError."""

    def count(self, value: Any, /) -> int:
        """Return how many items equal `value`."""

    def copy(self) -> tuple[_Value, ...]:
        """Return an ordinary tuple; what is nested stays frozen."""

    def thaw(self) -> tuple[Any, ...]:
        """Return an ordinary tuple, with ordinary objects at every depth."""

    def __copy__(self) -> tuple[_Value, ...]: ...
    def __deepcopy__(self, memo: Any, /) -> tuple[Any, ...]: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __lt__(self, other: Any, /) -> bool: ...
    def __le__(self, other: Any, /) -> bool: ...
    def __gt__(self, other: Any, /) -> bool: ...
    def __ge__(self, other: Any, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __add__(self, other: Any, /) -> tuple[Any, ...]: ...
    def __radd__(self, other: Any, /) -> tuple[Any, ...]: ...
    def __mul__(self, times: SupportsIndex, /) -> tuple[_Value, ...]: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

@final
class FrozenSet(Set[_Value]):
    """A set, or a frozenset, that never changes, in a frozen file; see `freeze`.

    It has what a `frozenset` has. What makes a new set makes an ordinary one.
    """

    def __class_getitem__(cls, key: object) -> GenericAlias: ...
    def __len__(self) -> int: ...
    def __contains__(self, member: object, /) -> bool: ...
    def __iter__(self) -> Iterator[_Value]: ...
    def irange(
        self,
        minimum: Any = None,
        maximum: Any = None,
        inclusive: tuple[bool, bool] = ...,
        reverse: bool = False,
    ) -> Iterator[_Value]:
        """Iterate over the members from `minimum` to `maximum` in their order.

        As of `FrozenDict`.
        """

    def copy(self) -> set[Any] | frozenset[Any]:
        """Return an ordinary set, or frozenset."""

    def thaw(self) -> set[Any] | frozenset[Any]:
        """Return an ordinary set, or frozenset."""

    def __copy__(self) -> set[Any] | frozenset[Any]: ...
    def __deepcopy__(self, memo: Any, /) -> set[Any] | frozenset[Any]: ...
    def union(self, *others: Iterable[Any]) -> set[Any] | frozenset[Any]:
        """Return the members of all, as an ordinary set."""

    def intersection(self, *others: Iterable[Any]) -> set[Any] | frozenset[Any]:
        """Return the members that are in all."""

    def difference(self, *others: Iterable[Any]) -> set[Any] | frozenset[Any]:
        """Return the members that are in none of the others."""

    def symmetric_difference(self, other: Iterable[Any], /) -> set[Any] | frozenset[Any]:
        """Return the members that are in one of the two."""

    def isdisjoint(self, other: Iterable[Any], /) -> bool:
        """Return whether none of the members is in the other."""

    def issubset(self, other: Iterable[Any], /) -> bool:
        """Return whether all members are in the other."""

    def issuperset(self, other: Iterable[Any], /) -> bool:
        """Return whether all of the other are members."""

    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __lt__(self, other: Set[Any], /) -> bool: ...
    def __le__(self, other: Set[Any], /) -> bool: ...
    def __gt__(self, other: Set[Any], /) -> bool: ...
    def __ge__(self, other: Set[Any], /) -> bool: ...
    def __hash__(self) -> int: ...
    def __and__(self, other: Set[Any], /) -> Set[_Value]: ...
    def __rand__(self, other: Set[Any], /) -> Set[Any]: ...
    def __or__(self, other: Set[_T], /) -> Set[_Value | _T]: ...
    def __ror__(self, other: Set[_T], /) -> Set[_Value | _T]: ...
    def __sub__(self, other: Set[Any], /) -> Set[_Value]: ...
    def __rsub__(self, other: Set[_T], /) -> Set[_T]: ...
    def __xor__(self, other: Set[_T], /) -> Set[_Value | _T]: ...
    def __rxor__(self, other: Set[_T], /) -> Set[_Value | _T]: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

def freeze(
    given: object, path: str | PathLike[str] | None, progress: Callable[[int], object] | None, /
) -> Any:
    """Make a frozen copy of an object, in memory or in the file at `path`."""

def frozen_parts(given: object, /) -> tuple[Any, ...] | None:
    """Return what `receive_frozen` takes, for a frozen object; None for any other."""

def open_frozen(path: str | PathLike[str], verify: bool) -> Any:
    """Map the file at `path`; what is frozen in it."""

def receive_frozen(
    path: str | PathLike[str] | None,
    here: str | PathLike[str],
    uuid: int,
    first: int,
    second: int,
    part: tuple[int, int, int] | None,
) -> Any:
    """Return the frozen object of what was pickled. The file is mapped, if need be."""

def set_frozen_views(
    views: dict[str, Callable[[Any], Any]], received: Callable[..., object]
) -> None:
    """Declare the views of frozen dicts, and the function that is called with what is pickled."""
