"""What becomes of the task of a worker that has died.

Which task a death is to blame for, the desk of the worker says: it writes a task's number there
before it touches it. A worker that dies between taking a task and writing that leaves a task that
is nowhere: not in the line, on nobody's desk, without a result. Looked for in this order, in which
tasks go, what is found nowhere is lost. It has not begun, and goes back to the head of the line.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from ungil.share._pool import calls
from ungil.share._pool.core import Core
from ungil.share._pool.died import WorkerDied
from ungil.share._pool.line import RESTING, task_on
from ungil.share._pool.process import Worker, end_of, lives

if TYPE_CHECKING:
    from ungil.share._pool.staff import Staff

# How long somebody who has just taken a task may need to say which, until it is looked again.
_LOOK_S = 0.001
# Workers that end before they have begun, one after the other: by themselves, or killed. Those may
# be many where somebody kills all the time, and without any limit nobody would learn of it.
_MOST_FAILED_STARTS = 3
_MOST_KILLED_STARTS = 200


class Deaths:
    """The deaths of a pool's workers, as one of its threads settles them."""

    def __init__(self, core: Core, staff: Staff) -> None:
        self._core = core
        self._staff = staff
        self._failed_starts = 0

    def settle(self, worker: Worker, why_no_start: str | None) -> None:
        """Fail the task of a worker that has died, or have it run again.

        The worker is none of the staff any more, and what it has told was collected.
        `why_no_start` is why no worker can start, if one has said so.
        """
        now = task_on(worker.desk)
        if now is None:
            self._not_begun(worker.process.exitcode, why_no_start)
            return
        self._failed_starts = 0
        if now > RESTING:
            self._blame(worker, now)
        elif now < RESTING:
            self._return_lost()

    def _not_begun(self, status: int | None, why: str | None) -> None:
        self._failed_starts += 1
        was_killed = status is not None and status < 0
        most = _MOST_KILLED_STARTS if was_killed else _MOST_FAILED_STARTS
        if self._failed_starts < most and why is None:
            return
        hint = (
            'a program that starts processes does so below `if __name__ == "__main__":`, as each of'
            " them imports it again"
            if not was_killed
            else "something kills them before they can start"
        )
        self._core.break_off(
            why
            or f"{self._failed_starts} workers ended before they could start, the last one"
            f" {end_of(status)}; {hint}"
        )

    def _blame(self, worker: Worker, number: int) -> None:
        """A worker has died with this task, unless it had ended the task just before."""
        core, pid, status = self._core, worker.process.pid, worker.process.exitcode
        with core.lock:
            future = core.pending.get(number)
            if future is None:
                return
            task = f"task {number}, {core.name_of(future)}"
            if future.overdue_s is not None:
                error: Exception = TimeoutError(
                    f"{task} took longer than {future.overdue_s:g} s: its worker {pid} was killed"
                )
            elif future.retries > 0:
                future.retries -= 1
                full = core.again(future)
                if full is None:
                    return
                error = full
            else:
                error = WorkerDied(
                    f"the worker {pid} {end_of(status)} while it ran {task}",
                    task=task,
                    pid=pid,
                    signal=-status if status is not None and status < 0 else None,
                )
        core.fail(number, error)

    def _return_lost(self) -> None:
        """Put what a worker had taken, and not begun, back to the head of the line."""
        core, line = self._core, self._core.line
        with core.lock:
            waiting = {calls.address_of(item)[1] for item in line.tasks.copy()}
            missing = core.pending.keys() - waiting
        if not missing:
            return
        # Who is just taking one says soon which; until then it might be one of these.
        for worker in [*self._staff.workers.values()]:
            before = task_on(worker.desk)
            while before is not None and before < RESTING and task_on(worker.desk) == before:
                if not lives(worker.process):
                    break
                time.sleep(_LOOK_S)
        held = self._staff.in_hand()
        core.collect_all()
        failed: list[tuple[int, MemoryError]] = []
        with core.lock:
            for number in sorted(missing - held, reverse=True):
                if (future := core.pending.get(number)) is not None:
                    full = core.again(future)
                    if full is not None:
                        failed.append((number, full))
        for number, error in failed:
            core.fail(number, error)
