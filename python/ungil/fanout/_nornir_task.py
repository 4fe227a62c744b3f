"""What tasks get from the nornir runner as their `task`: nornir's own, and asynchronous subtasks.

What `Task.start` does for other tasks, `begin`, `failure` and `end` do for an `async def`: results,
failures, log lines and calls of processors are the same, in the same order. No method goes around
all of it, as it would be one more coroutine for each host.
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
    """A task that is not an `async def`, on an event loop: all hosts would wait for it."""


class HostTask(Task):
    """The task of one host. The type to annotate with: `async def backup(task: HostTask)`."""

    # Of an `async def`: the thread of its event loop, which it may not block.
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

    def begin(self, host: "Host") -> None:
        """The first part of what `start` does, for an `async def`."""
        self.host = host
        self._loop_thread = get_ident()
        if self.parent_task is None:
            self.processors.task_instance_started(self, host)
        else:
            self.processors.subtask_instance_started(self, host)
        logger.debug("Host %r: running task %r", host.name, self.name)

    def failure(self, error: Exception) -> Result:
        """The result of a task that raised an exception, made while it is handled."""
        trace = traceback.format_exc()
        logger.error(
            "Host %r: task %r failed with traceback:\n%s", self.host.name, self.name, trace
        )
        text = str(error) if isinstance(error, NornirSubTaskError) else trace
        return Result(self.host, text, exception=error, failed=True)

    def end(self, value: Any) -> MultiResult:
        """The last part of what `start` does: the results of a task and of its subtasks."""
        host = self.host
        results = self._ended(value if isinstance(value, Result) else Result(host, value))
        if self.parent_task is None:
            self.processors.task_instance_completed(self, host, results)
        else:
            self.processors.subtask_instance_completed(self, host, results)
        return results

    def run(self, task: "Callable[..., Any]", **kwargs: Any) -> MultiResult:
        """Runs a subtask for the same host, as nornir does.

        Raises AsyncTaskOnSyncRunnerError for one that is an `async def`, and
        SyncTaskOnAsyncRunnerError on an event loop.
        """
        name = kwargs.get("name") or name_of(task)
        if is_async(task):
            raise AsyncTaskOnSyncRunnerError(
                f"the subtask {name} is an async def: `await task.arun({name})`, in a task that "
                "is an async def, too"
            )
        if self._loop_thread == get_ident():
            raise _would_block(name)
        subtask = self._subtask(task, kwargs)
        return self._ran(subtask, subtask.start(self.host))

    async def arun(self, task: "Callable[..., Any]", **kwargs: Any) -> MultiResult:
        """Runs a subtask for the same host, while other hosts go on; otherwise like `run`.

        A subtask that is not an `async def` runs in a thread; there are as many threads as hosts
        that run at once. Raises SyncTaskOnAsyncRunnerError for it in mode "lean", which has none.
        """
        if not is_async(task):
            return await self._run_in_thread(task, kwargs)
        subtask = self._subtask(task, kwargs)
        subtask.begin(self.host)
        try:
            value = await task(subtask, **subtask.params)
        except Exception as error:
            value = subtask.failure(error)
        return self._ran(subtask, subtask.end(value))

    async def _run_in_thread(
        self, task: "Callable[..., Any]", kwargs: dict[str, Any]
    ) -> MultiResult:
        import asyncio

        if asyncio._get_running_loop() is None:
            name = kwargs.get("name") or name_of(task)
            raise SyncTaskOnAsyncRunnerError(
                f'the subtask {name} is not an async def, and mode="lean" has no threads to run '
                'it: mode="auto" and "asyncio" have'
            )
        return await asyncio.to_thread(self.run, task, **kwargs)

    def give_up(self, host: "Host", error: BaseException) -> MultiResult:
        """The results of a task that was ended, with those of the subtasks that it had started."""
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
        f"the subtask {name} is not an async def, and all hosts would wait for it: "
        f"`await task.arun({name})` runs it in a thread"
    )
