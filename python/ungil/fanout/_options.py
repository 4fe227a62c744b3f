"""The options of a fan-out: what each means, its type and its default, in this one place.

`fanout`, `Fanout`, the nornir runner and `ungil fanout` take them, and `_plan.py` checks them,
without this module, because typing takes as long to import as ten thousand items to run.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeAlias, TypedDict

from ungil.fanout._backoff import Backoff
from ungil.fanout._progress import Progress

if TYPE_CHECKING:
    from nornir.core.inventory import Host
    from typing_extensions import TypeVar

    _Item = TypeVar("_Item", default=Any)
else:
    from typing import TypeVar

    _Item = TypeVar("_Item")

Mode: TypeAlias = Literal["auto", "lean", "asyncio", "threads", "green"]
"""The modes of a fan-out: how items run."""


class CommonOptions(TypedDict, total=False):
    """Options that a fan-out and the nornir runner have in common, with one meaning."""

    mode: Mode
    """How items run: "lean" and "asyncio" are for an `async def`, "threads" and "green" for other
    functions. "asyncio" also runs other functions that return a coroutine. "auto", the default,
    chooses; `Outcomes.mode` and `Outcomes.reason` say what and why."""
    timeout: float | None
    """Seconds for each attempt. None, the default, sets no limit. A coroutine and a green thread
    are cancelled. A thread cannot be stopped and goes on, but its result no longer counts: its
    outcome says `abandoned`.
    """
    retries: int
    """How many times a failed item is tried again. 0 by default."""
    rate: float | None
    """How many items start per second at most; the first starts at once. None, the default, sets no
    limit."""
    per_group: int | Mapping[Any, int] | None
    """How many items of one group run at once at most: a number, or a mapping by group. A group
    that the mapping does not name has no limit of its own. None, the default, sets no limit."""


class Options(CommonOptions, Generic[_Item], total=False):
    """The options of a fan-out: these, and those of `CommonOptions`. Each can be left out.

    They are keyword arguments of `fanout` and `Fanout`. A dict of them has this type:

        options: Options = {"timeout": 30, "retries": 2}
        list(fanout(backup, hosts, **options))
    """

    limit: int | Literal["auto"]
    """How many items run at once at most. "auto", the default, finds out while they run."""
    retry_if: Callable[[Any], object] | type[BaseException] | tuple[type[BaseException], ...] | None
    """Whether an item that failed with this exception is tried again: a function of the exception,
    or the class of those for which it is, or a tuple of classes. None, the default: always.
    It is asked about each exception that a function raises, also about a SystemExit.
    """
    backoff: Backoff | Callable[[Any, int], float | None] | None
    """How long an item waits before it is tried again: a `Backoff`, or a function of the exception
    and of the number of its attempt that returns seconds, or None for what `Backoff()` does. None,
    the default, is `Backoff()`. If the exception is an HTTP response 429 or 503 with Retry-After,
    that time takes precedence.
    """
    group: Callable[[_Item], Hashable] | None
    """A function that returns the group of an item. `per_group` needs it; `limit="auto"` takes
    items of different groups for different hosts. None, the default: there are no groups.
    """
    engine: Any
    """Where items run, if not in this process: "processes" on all cores ("processes:N" on N),
    "dask", "ray", the address of a cluster (`tcp://HOST:PORT`, `ray://HOST:PORT`), or a
    `distributed.Client`. All options hold for all workers together; with `limit="auto"` each worker
    finds its own. Items whose worker dies run again: at least once, not exactly once. An item that
    keeps killing its workers fails with `ungil.errors.WorkerDied`. None by default.
    """
    progress: bool | Callable[[Progress], object] | None
    """How to show progress: True for a bar on stderr, if that is a terminal; or a function, which
    another thread calls with a `Progress` once a second and at the end. What it raises is raised
    where the outcomes are taken. None by default.
    """
    journal: str | PathLike[str] | None
    """A file that records finished items. Items that succeeded in an earlier run with
    that file do not run again: their outcome is `resumed`, with the value as JSON keeps it (None if
    it cannot). None by default."""
    key: Callable[[_Item], object] | None
    """A function that returns an item's key in the journal, for items that JSON cannot hold. None,
    the default: the item is its own key.
    """


class RunnerOptions(CommonOptions, total=False):
    """The options of `UngilRunner`: these, and those of `CommonOptions`. Each can be left out.

    A host is an item. One whose `timeout` is over has a TimeoutError as its result, beside the
    results of the subtasks that it had started. With `retries` the task runs again where it has
    failed, its subtasks included: the results are those of the last run, and processors see a host
    begin once and complete once.
    """

    backoff: Mapping[str, float] | None
    """How long a host waits before its task runs again: the arguments of `ungil.fanout.Backoff` as
    a mapping, `{first: 0.1, factor: 2, most: 30, jitter: 0.5}`, of which each can be left out."""
    group: str | Callable[[Host], Hashable] | None
    """What a host's group is: the name of one of its attributes or of a key of its data, which it
    may inherit (`"site"`), or a function of the host. Hosts without it are one group. None, the
    default, is the first of the host's inventory groups, or the first that `per_group` names, if
    there is `per_group`."""
