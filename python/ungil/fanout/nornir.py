"""The nornir runner `ungil`: a task for ten thousand hosts, in coroutines or (green) threads.

    nr = InitNornir(runner={"plugin": "ungil", "options": {"timeout": 60, "retries": 1}})
    nr.run(backup)

A task that is an `async def` runs on an event loop, and awaits its subtasks: `await
task.arun(show, command="version")`, also ordinary functions, which run in threads. Every other
task runs as it is, in green threads if gevent has patched the program, else in threads.
"""

# nornir loads this module whenever it starts, whichever runner it uses. So what only ours needs is
# imported when it is made.

import gc
import logging
import sys
from contextlib import contextmanager
from copy import copy
from types import CoroutineType
from typing import TYPE_CHECKING, cast

from nornir.core.exceptions import NornirSubTaskError
from nornir.core.processor import Processors
from nornir.core.task import AggregatedResult, MultiResult, Task

from ungil.fanout._mode import is_async
from ungil.fanout._nornir_task import (
    AsyncTaskOnSyncRunnerError,
    HostTask,
    SyncTaskOnAsyncRunnerError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Hashable, Mapping
    from typing import Any, Literal, Unpack

    from nornir.core.inventory import Host

    from ungil._native import Outcome
    from ungil.fanout._options import Options, RunnerOptions
    from ungil.fanout._plan import Plan

__all__ = [
    "AsyncTaskOnSyncRunnerError",
    "HostTask",
    "RunnerOptions",
    "SyncTaskOnAsyncRunnerError",
    "UngilRunner",
]

# Beside nornir's own, so that it comes to where they go.
logger = logging.getLogger("nornir.plugins.runners.ungil")

# `num_workers` is a number for those who show it beside that of the hosts, whichever is smaller.
_AS_MANY_AS_HOSTS = 1_000_000


def __getattr__(name: str) -> object:
    if name == "RunnerOptions":
        from ungil.fanout._options import RunnerOptions

        return RunnerOptions
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class UngilRunner:
    """Runs the tasks of nornir with `ungil.fanout`.

    `num_workers` is how many hosts run at once at most; "auto" finds out. The other keyword
    arguments are `RunnerOptions`. All of them may come from a configuration file.

    Raises ValueError and TypeError for impossible options.
    """

    num_workers: int
    """How many hosts run at once at most; 1,000,000 for "auto"."""

    def __init__(
        self, num_workers: "int | Literal['auto']" = "auto", **options: "Unpack[RunnerOptions]"
    ) -> None:
        from ungil.fanout._backoff import Backoff
        from ungil.fanout._options import RunnerOptions
        from ungil.fanout._plan import Plan, refuse_others

        refuse_others(options, ("num_workers", *sorted(RunnerOptions.__optional_keys__)))
        if num_workers == "auto":
            self.num_workers = _AS_MANY_AS_HOSTS
        elif isinstance(num_workers, int) and num_workers >= 1:  # pyright: ignore[reportUnnecessaryIsInstance]
            self.num_workers = num_workers
        else:
            raise ValueError(
                f'num_workers={num_workers!r} is neither "auto" nor a positive whole number'
            )
        backoff, group = options.pop("backoff", None), options.pop("group", None)
        asked: Options[Host] = {
            **options,
            "limit": num_workers,
            "retry_if": _is_of_the_host,
            "backoff": Backoff(**(backoff or {})),
            "group": _grouping(group, options.get("per_group")),
        }
        self._plan = Plan(asked, opening="hosts")

    def run(self, task: Task, hosts: "list[Host]") -> AggregatedResult:
        """Called by nornir: runs the task for the hosts, and returns the results of each.

        Raises AsyncTaskOnSyncRunnerError or SyncTaskOnAsyncRunnerError for a task that cannot run
        in the requested mode. What a processor raised is raised after everything has run.
        """
        asyncio = sys.modules.get("asyncio.events")
        if asyncio is None or asyncio._get_running_loop() is None:
            return self._run(task, hosts)
        # In a notebook: its loop waits, as for everything in it that is not awaited.
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(1) as pool:
            return pool.submit(self._run, task, hosts).result()

    def _run(self, task: Task, hosts: "list[Host]") -> AggregatedResult:
        from ungil.fanout._call import Outcomes

        result = AggregatedResult(task.name)
        run = _Run(task, self._plan)
        with Outcomes(run.function, hosts, run.plan) as outcomes, _inventory_left_alone():
            for outcome in outcomes:
                result[outcome.item.name] = run.results(outcome)
        logger.info("Task %r has run in %s", task.name, outcomes.report)
        if run.errors:
            raise run.errors[0]
        return result


class TaskFailed(Exception):
    """What a fan-out is told of a host where the task has failed, from what it has raised."""

    def __init__(self, results: MultiResult) -> None:
        super().__init__(results.name)
        self.results = results


class _Run:
    """A task between nornir, whose failures are results, and the fan-out, whose are exceptions."""

    def __init__(self, task: Task, plan: "Plan") -> None:
        self.plan = plan
        self.errors: list[Exception] = []  # of processors: nornir's runners raise them, too
        self._task = HostTask.of(task)
        self._attempts: dict[str, int] = {}
        self._begun: dict[str, HostTask] = {}  # where there is something to give up
        if getattr(task.task, "__module__", None) == "nornir.core":
            # Nornir.close_connections, which is wanted after tasks of every kind.
            self.plan = copy(plan)
            self.plan.mode = "auto"
        mode = self.plan.mode
        if is_async(task.task):
            # Then "auto" is asyncio: it has threads for subtasks that are no `async def`.
            __import__("asyncio")
            if mode in ("threads", "green"):
                raise AsyncTaskOnSyncRunnerError(
                    f"the task {task.name} is an async def, which mode={mode!r} does not await: "
                    'mode="auto" and "asyncio" do'
                )
            self.function = self._astart
        else:
            if mode in ("lean", "asyncio"):
                raise SyncTaskOnAsyncRunnerError(
                    f"the task {task.name} is not an async def, and in mode={mode!r} all hosts "
                    "would "
                    'wait for it: mode="auto", "threads" and "green" run it'
                )
            self.function = self._start

    def _start(self, host: "Host") -> MultiResult:
        task = self._new(host)
        try:
            results = task.start(host)
            returned = results[0].result
            if type(returned) is CoroutineType:
                returned.close()
                raise AsyncTaskOnSyncRunnerError(
                    f"the task {self._task.name} returned a coroutine: make it an async def"
                )
        except Exception as error:
            self.errors.append(error)
            raise
        except BaseException:  # as SystemExit, which nornir makes no result of
            self._begun.setdefault(host.name, task)
            raise
        return _succeeded(results)

    async def _astart(self, host: "Host") -> MultiResult:
        task = self._new(host)
        try:
            task.begin(host)
            try:
                value = await task.task(task, **task.params)
            except Exception as error:
                value = task.failure(error)
            results = task.end(value)
        except Exception as error:
            self.errors.append(error)
            raise
        except BaseException:
            self._begun.setdefault(host.name, task)
            raise
        return _succeeded(results)

    def _new(self, host: "Host") -> HostTask:
        task = self._task.copy()
        if self.plan.retries and task.processors:
            attempt = self._attempts[host.name] = self._attempts.get(host.name, 0) + 1
            task.processors = _Attempt(task.processors, attempt, self.plan.retries)
        if self.plan.timeout is not None:
            self._begun[host.name] = task
        return task

    def results(self, outcome: "Outcome") -> MultiResult:
        """Those of a host."""
        error = outcome.exception
        if error is None:
            return outcome.unwrap()
        if isinstance(error, TaskFailed):
            return error.results
        if error in self.errors:
            return MultiResult(self._task.name)
        host = outcome.item
        task = self._begun.get(host.name) or self._task.copy()
        results = task.give_up(host, error)
        try:
            self._task.processors.task_instance_completed(task, host, results)
        except Exception as of_processor:
            self.errors.append(of_processor)
        return results


@contextmanager
def _inventory_left_alone() -> "Generator[None]":
    """The garbage collector looks only at what is made meanwhile.

    Else it goes through all hosts once more for so many tasks that are made for them, and takes a
    third of the time in which 10,000 of them run.
    """
    if gc.get_freeze_count():  # somebody else wants that, and for longer
        yield
        return
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def _is_of_the_host(error: Exception) -> bool:
    return isinstance(error, TaskFailed | TimeoutError)


def _succeeded(results: MultiResult) -> MultiResult:
    for result in results:
        if result.failed:
            raise TaskFailed(results) from _cause(results)
    return results


def _cause(results: MultiResult) -> BaseException | None:
    """What the task has raised, or else the subtask whose failure has been its own."""
    error = results[0].exception
    if isinstance(error, NornirSubTaskError):
        return _cause(cast("MultiResult", error.result))  # pyright: ignore[reportUnknownMemberType]
    return error


def _grouping(
    group: "str | Callable[[Host], Hashable] | None", per_group: "int | Mapping[Any, int] | None"
) -> "Callable[[Host], Hashable] | None":
    if per_group is None and group is None:
        return None
    if callable(group):
        return group
    if group is not None and group != "groups":
        return lambda host: host.get(group)
    named = None if per_group is None or isinstance(per_group, int) else per_group

    def of_inventory(host: "Host") -> str | None:
        names = [group.name for group in host.extended_groups()]
        return next((name for name in names if named is None or name in named), None)

    return of_inventory


class _Attempt(Processors):
    """The processors in one of several attempts: a host begins in the first, completes once."""

    def __init__(self, processors: Processors, number: int, retries: int) -> None:
        super().__init__(processors)
        self._is_first = number == 1
        self._is_last = number > retries

    def task_instance_started(self, task: Task, host: "Host") -> None:
        if self._is_first:
            super().task_instance_started(task, host)

    def task_instance_completed(self, task: Task, host: "Host", result: MultiResult) -> None:
        if self._is_last or not result.failed:
            super().task_instance_completed(task, host, result)
