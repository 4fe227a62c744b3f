"""The worker processes of a pool: who starts them, who notices that one has died, who ends them."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from multiprocessing import connection
from typing import Any

from ungil.share._pool import calls
from ungil.share._pool.core import Core
from ungil.share._pool.deaths import Deaths
from ungil.share._pool.forking import start_forked
from ungil.share._pool.future import Future
from ungil.share._pool.limits import Limits
from ungil.share._pool.line import CLOSING, DOOMED, LEAVERS, RESTING, STATE, task_on
from ungil.share._pool.making import new_desk
from ungil.share._pool.process import (
    Worker,
    answer,
    lives,
    own_failure,
    undisturbed,
)
from ungil.share._pool.worker import serve

# Workers at once with tasks that wait for tasks of their own.
_MOST_ASKING = 64


class Staff:
    """The workers of a pool, and the two threads that look after it."""

    def __init__(
        self,
        core: Core,
        context: Any,
        size: int,
        *,
        initializer: Callable[..., object] | None,
        initargs: tuple[Any, ...],
        most_tasks: int | None,
    ) -> None:
        self.size = size
        self.wanted = size
        """How many there are to be: more, while tasks wait for tasks of their own."""
        self._asking: dict[int, int] = {}
        self.context = context
        self.workers: dict[int, Worker] = {}
        self.processes: dict[int, Any] = {}
        """Those that live, by process id."""
        self.is_gentle = False
        """Whether the workers of a broken pool are asked to end, not killed."""
        self.warden: threading.Thread | None = None
        self._collector: threading.Thread | None = None
        self._core = core
        self._line = core.line
        self._work = core.line.work
        self._arguments = (initializer, initargs, most_tasks)
        # A fork is only safe while there are no threads, so all start before those of the pool.
        method = context.get_start_method(allow_none=False)
        self._at_once = method == "fork"
        self._parent = None if method == "forkserver" else os.getpid()
        self._last = 0
        self._is_full = False
        self._limits = Limits()
        self._deaths = Deaths(core, self)
        self._no_start: str | None = None
        self._wake_reader, self._wake_writer = os.pipe()
        os.set_blocking(self._wake_reader, False)
        os.set_blocking(self._wake_writer, False)

    # For other threads.

    def ring(self) -> None:
        """With the pool's lock: a task was put into the line."""
        if not self._is_full:
            self._grow()
        # Also if it is full: what started the workers may have failed after that.
        if self.warden is None:
            self._start_warden()
        work = self._work
        if work.value < self.wanted:
            work.release()

    def _start_warden(self) -> None:
        warden = threading.Thread(target=self._look_after, name="ungil-pool-workers")
        self.warden = warden
        try:
            # Ctrl-C may end this wait until the thread runs, which is the warden all the same.
            warden.start()
        except RuntimeError:
            self.warden = None
            raise

    def wake(self) -> None:
        """Have the thread look whether there is something to do."""
        # It may be awake already, or have ended. With the lock no other file has its number.
        with self._core.lock, contextlib.suppress(OSError):
            os.write(self._wake_writer, b"\0")

    def close(self) -> None:
        """With the pool's lock: let the workers end when there are no more tasks."""
        if self.warden is None:
            self._dispose()
            if self._last:
                # Workers there are though: what started them has failed after that.
                self._tell_all_to_end()
        else:
            self.wake()

    def join(self, timeout: float | None = None) -> bool:
        """Wait until all has ended; False if it took longer than `timeout` seconds.

        Raises RuntimeError in the threads of the pool, which call callbacks, too.
        """
        if threading.current_thread() in (self.warden, self._collector):
            raise RuntimeError("cannot join current thread")
        if self.warden is None:
            return self._join_workers(timeout)
        self.warden.join(timeout)
        return not self.warden.is_alive()

    def _join_workers(self, timeout: float | None) -> bool:
        """The same where no thread looks after them."""
        end = None if timeout is None else time.monotonic() + timeout
        self._end_if_broken()
        for worker in [*self.workers.values()]:
            worker.process.join(None if end is None else max(0.0, end - time.monotonic()))
            if lives(worker.process):
                return False
        self.workers, self.processes = {}, {}
        return True

    def interrupt(self) -> None:
        """Raise KeyboardInterrupt in the tasks that run."""
        for process in [*self.processes.values()]:
            # The number of one that has ended may be another's.
            if lives(process):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process.pid, signal.SIGINT)

    def in_hand(self) -> set[int | None]:
        """What the desks say."""
        return {task_on(worker.desk) for worker in [*self.workers.values()]}

    def told(self, kind: int, number: int, value: Any) -> None:
        """Take in what a worker says beside results."""
        if kind == calls.BEGUN:
            worker, limit = value
            self._limits.begin(worker, number, limit)
        elif kind == calls.NO_START:
            self._no_start = value
        else:
            self._asked(*value)
        self.wake()

    # Tasks of tasks.

    def _asked(
        self, by: int, number: int, called: bytes, name: str, limit: float, retries: int
    ) -> None:
        """A worker has submitted a task of a task."""
        core, worker = self._core, self.workers.get(by)
        if worker is None:
            # It has died since. Its task was to be run all the same, but nobody waits for it.
            with contextlib.suppress(BrokenProcessPool, MemoryError):
                core.send_call(called, name, limit, retries)
            return
        try:
            with core.lock:
                if by not in self._asking and len(self._asking) >= _MOST_ASKING:
                    raise RuntimeError(
                        f"{_MOST_ASKING} workers wait for tasks of their own tasks: nest tasks "
                        "less deeply"
                    )
                future = core.send_call(called, name, limit, retries)
                self._asking[by] = self._asking.get(by, 0) + 1
                self._want()
        except Exception as error:
            answer(worker, calls.result(number, calls.ERROR, error))
            return
        future.add_done_callback(partial(self._answered, worker, number))

    def _answered(self, worker: Worker, number: int, future: Future[Any]) -> None:
        with self._core.lock:
            left = self._asking[worker.number] - 1
            if left:
                self._asking[worker.number] = left
            else:
                del self._asking[worker.number]
                self._want()
        error = future.exception()
        try:
            if error is None:
                item = calls.result(number, calls.VALUE, future.result())
            else:
                item = calls.result(number, calls.ERROR, calls.failure(error))
        except Exception as why:
            item = calls.result(number, calls.ERROR, why)
        answer(worker, item)

    def _want(self) -> None:
        """With the pool's lock: each worker with a task that waits for others has a substitute."""
        self.wanted = self.size + len(self._asking)
        self._is_full = len(self.workers) >= self.wanted
        leavers = max(0, len(self.workers) - self.wanted)
        self._line.state[LEAVERS] = leavers
        if leavers:
            self._work.release(leavers)

    def kill(self) -> None:
        """Kill all workers."""
        for worker in [*self.workers.values()]:
            worker.process.kill()

    def _end_if_broken(self) -> None:
        if self._core.broken is None:
            return
        if not self.is_gentle:
            self.kill()
            return
        for worker in [*self.workers.values()]:
            worker.process.terminate()

    # Processes.

    def _grow(self) -> None:
        """With the pool's lock: start the workers that are wanted."""
        try:
            while (missing := self._missing()) > 0:
                if not self._at_once:
                    from multiprocessing import resource_tracker  # No fork needs it.

                    resource_tracker.ensure_running()  # As it starts, it would unblock SIGINT.
                self._start(missing)
        except MemoryError:
            # There is no room for another desk. With some workers it goes on, as below.
            if not self.workers:
                raise
            self._is_full = True
            return
        except OSError as error:
            # With some workers it goes on, and tries again when one has died.
            if not self.workers:
                self._no_start = f"no worker could be started: {error}"
                self.wake()
            self._is_full = True
            return
        self._is_full = len(self.workers) >= self.wanted

    def _missing(self) -> int:
        """How many workers are to be started at once."""
        missing = self.wanted - len(self.workers)
        return missing if self._at_once else min(missing, int(self._is_short()))

    def _is_short(self) -> bool:
        free = sum(1 for it in self.workers.values() if self._is_free(task_on(it.desk)))
        return len(self._line.tasks) > free

    def _is_free(self, now: int | None) -> bool:
        """Whether a worker that says so may take the next task; who just takes one may not."""
        return now is None or (now >= RESTING and now not in self._core.pending)

    def _start(self, count: int) -> None:
        # After a fork each page that is written to is copied first: so what can be made, is made.
        made = [self._new_worker() for _ in range(count)]
        try:
            with undisturbed():
                if self._at_once:
                    start_forked([worker.process for worker in made])
                else:
                    for worker in made:
                        worker.process.start()
        finally:
            for worker in made:
                if worker.process.pid is not None:
                    self.workers[worker.number] = worker
                    self.processes[worker.process.pid] = worker.process
            if self.warden is not None:
                self.wake()  # It waits for the ends of those that were there before.

    def _new_worker(self) -> Worker:
        desk = new_desk(self._core.heap)
        self._last += 1
        process = self.context.Process(
            target=serve,
            name=f"ungil-pool-{self._last}",
            args=(self._line, desk, self._last, self._parent, *self._arguments),
        )
        return Worker(self._last, process, desk)

    def _look_after(self) -> None:
        """In a thread, until the pool ends."""
        core = self._core
        collector = threading.Thread(target=self._collect, name="ungil-pool-results")
        self._collector = collector
        try:
            # Started here, as a start waits until the thread runs, and so does who submits.
            try:
                collector.start()
            except RuntimeError as error:
                self._no_start = f"no thread could be started: {error}"
                self.wake()
            self._look_after_workers()
        except BaseException as error:
            # Without it nobody would ever get a result, nor learn why.
            core.break_off(own_failure(error))
        try:
            self._dismiss()
        finally:
            core.end()
            if collector.ident is not None:
                collector.join()
            with core.lock:
                self._dispose()

    def _collect(self) -> None:
        """In a thread, until the pool ends."""
        try:
            self._core.collect_until_over()
        except BaseException as error:
            self._core.break_off(own_failure(error))

    def _look_after_workers(self) -> None:
        """Until there is to be no worker any more."""
        core = self._core
        while True:
            # Others may start workers meanwhile.
            sentinels = {worker.process.sentinel: worker for worker in [*self.workers.values()]}
            ready = connection.wait([self._wake_reader, *sentinels], self._limits.left_s())
            for source in ready:
                if source == self._wake_reader:
                    self._drain()
                else:
                    self._bury(sentinels[source])  # type: ignore[index]  # pyright: ignore
            self._end_overdue()
            if self._no_start is not None:
                core.break_off(self._no_start)
            with core.lock:
                is_over = core.broken is not None or (core.closing and not core.pending)
                if is_over:
                    return
                try:
                    self._grow()
                except MemoryError as error:
                    # Without a task there is time until the next one, which tries again.
                    if core.pending:
                        self._no_start = f"no worker could be started: {error}"
                        self.wake()

    def _drain(self) -> None:
        try:
            while os.read(self._wake_reader, 4096):
                pass
        except BlockingIOError:
            pass

    def _dismiss(self) -> None:
        """Let all workers end; those of a broken pool are made to."""
        self._end_if_broken()
        self._tell_all_to_end()
        for worker in self.workers.values():
            worker.process.join()
        self.workers, self.processes = {}, {}

    def _tell_all_to_end(self) -> None:
        """Have workers end that find no task; at once if the heap is too damaged to say so."""
        try:
            self._line.state[STATE] = CLOSING
            self._work.release(max(1, len(self.workers)))
        except Exception:
            self.kill()

    def _dispose(self) -> None:
        pipe, self._wake_reader, self._wake_writer = (self._wake_reader, self._wake_writer), -1, -1
        for end in pipe:
            if end >= 0:
                os.close(end)

    # Deaths.

    def _bury(self, worker: Worker) -> None:
        worker.process.join()
        core = self._core
        with core.lock:
            del self.workers[worker.number]
            self.processes.pop(worker.process.pid, None)
            self._is_full = False
        core.collect_all()
        self._limits.forget(worker.number)
        self._deaths.settle(worker, self._no_start)
        # It may have been woken for a task, and not have come to it.
        self._line.work.release()

    # Time limits.

    def _end_overdue(self) -> None:
        for _, number, by, limit in self._limits.take_over():
            worker = self.workers.get(by)
            # A worker that has ended the task says so by the same step, and one of both is first.
            if worker is not None and worker.desk.now.cas(0, number, DOOMED + number):
                with self._core.lock:
                    if (future := self._core.pending.get(number)) is not None:
                        future.overdue_s = limit
                worker.process.kill()
