"""What tasks get from the nornir runner as their `task`: nornir's own, and asynchronous subtasks.

`HostTask.astart` and `arun` are to `async def` tasks what nornir's `start` and `run` are to others:
the same results, failures, log lines and calls of processors, in the same order.
"""

import logging
import traceback
from _thread import get_ident
from typing import TYPE_CHECKING, Any, Self, cast

from nornir.core.exceptions import NornirSubTaskError
from nornir.core.processor import Processors
from nornir.core.task import DEFAULT_SEVERITY_LEVEL, MultiResult, Result, Task

from ungil.fanout._mode import is_async

if TYPE_CHECKING:
    from collections.abc import Callable

    from nornir.core.inventory import Host

# nornir's own, so that what its users have configured for it holds here, too.
logger = logging.getLogger("nornir.core.task")


class AsyncTaskOnSyncRunnerError(TypeError):
    """An `async def` task where nothing would await it: it would never begin."""


class SyncTaskOnAsyncRunnerError(TypeError):
    """A task that is no `async def` on an event loop: all hosts would wait for it."""


class HostTask(Task):
    """The task of one host. The type to annotate with: `async def backup(task: HostTask)`."""

    # Where `astart` runs it on an event loop: the thread that it may not block.
    _loop_thread: int | None = None

    @classmethod
    def of(cls, task: Task) -> Self:
        """A task like this, with results of its own."""
        return cls(
            task.task,
            task.nornir,
            task.global_dry_run,
            task.processors,
            task.name,
            task.severity_level,
            task.parent_task,
            **task.params,
        )

    def copy(self) -> Self:
        """For another host."""
        return self.of(self)

    async def astart(self, host: "Host") -> MultiResult:
        """Runs an `async def` task for a host; gives its results and those of its subtasks."""
        self.host = host
        self._loop_thread = get_ident()
        processors = self.processors
        if processors:
            if self.parent_task is None:
                processors.task_instance_started(self, host)
            else:
                processors.subtask_instance_started(self, host)
        try:
            logger.debug("Host %r: running task %r", host.name, self.name)
            result = await self.task(self, **self.params)
            if not isinstance(result, Result):
                result = Result(host, result)
        except Exception as error:
            trace = traceback.format_exc()
            logger.error("Host %r: task %r failed with traceback:\n%s", host.name, self.name, trace)
            text = str(error) if isinstance(error, NornirSubTaskError) else trace
            result = Result(host, text, exception=error, failed=True)
        results = self._ended(result)
        if processors:
            if self.parent_task is None:
                processors.task_instance_completed(self, host, results)
            else:
                processors.subtask_instance_completed(self, host, results)
        return results

    def run(self, task: "Callable[..., Any]", **kwargs: Any) -> MultiResult:
        """Runs a subtask for the same host, as nornir does.

        Raises AsyncTaskOnSyncRunnerError for one that is an `async def`, and
        SyncTaskOnAsyncRunnerError on an event loop.
        """
        name = kwargs.get("name") or name_of(task)
        if is_async(task):
            raise AsyncTaskOnSyncRunnerError(
                f"the subtask {name} is an async def: `await task.arun({name})`, "
                "in a task that is an async def itself"
            )
        if self._loop_thread == get_ident():
            raise _would_block(name)
        subtask = self._subtask(task, kwargs)
        return self._ran(subtask, subtask.start(self.host))

    async def arun(self, task: "Callable[..., Any]", **kwargs: Any) -> MultiResult:
        """Runs an `async def` subtask for the same host; otherwise it is as `run`.

        Raises SyncTaskOnAsyncRunnerError for one that is no `async def`.
        """
        if not is_async(task):
            raise _would_block(kwargs.get("name") or name_of(task))
        subtask = self._subtask(task, kwargs)
        return self._ran(subtask, await subtask.astart(self.host))

    def give_up(self, host: "Host", error: BaseException) -> MultiResult:
        """The results of a task that was ended, with those of the subtasks it had come to."""
        own = self.copy()
        own.host = host
        own.results.extend(self.results)
        # A thread cannot be ended. Where one goes on, it shall tell nobody.
        self.processors = Processors()
        logger.error("Host %r: task %r was given up: %r", host.name, self.name, error)
        text = f"{type(error).__name__}: {error}"
        return own._ended(Result(host, text, exception=error, failed=True))

    def _subtask(self, task: "Callable[..., Any]", kwargs: dict[str, Any]) -> Self:
        kwargs.setdefault("severity_level", self.severity_level)
        return type(self)(
            task,
            self.nornir,
            global_dry_run=self.global_dry_run,
            processors=self.processors,
            parent_task=self,
            **kwargs,
        )

    def _ran(self, subtask: Task, results: MultiResult) -> MultiResult:
        # A list of results among results is what nornir has for a subtask that has subtasks.
        self.results.append(results[0] if len(results) == 1 else cast(Result, results))
        if results.failed:
            raise NornirSubTaskError(task=subtask, result=cast(Result, results))
        return results

    def _ended(self, result: Result) -> MultiResult:
        result.name = self.name  # pyright: ignore[reportAttributeAccessIssue]
        if result.severity_level == DEFAULT_SEVERITY_LEVEL:
            result.severity_level = logging.ERROR if result.failed else self.severity_level
        self.results.insert(0, result)
        return self.results


def name_of(task: "Callable[..., Any]") -> str:
    """What messages call a task."""
    return getattr(task, "__name__", None) or repr(task)


def _would_block(name: str) -> SyncTaskOnAsyncRunnerError:
    return SyncTaskOnAsyncRunnerError(
        f"the subtask {name} is no async def, and all hosts would wait for it: "
        f"`await asyncio.to_thread(task.run, {name})` runs it in a thread"
    )
