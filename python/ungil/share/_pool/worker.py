"""What a worker process of a pool does."""

from __future__ import annotations

import os
import pickle
import signal
import time
from collections.abc import Callable
from multiprocessing import parent_process, util
from time import monotonic
from typing import Any

from ungil.share._pool import calls, place
from ungil.share._pool.line import CLOSING, LEAVERS, RESTING, STATE, Desk, Line

# After so many tasks without a rest there may be more at once: it naps before it rests, so that
# nobody has to wake it for each.
_STREAK = 32
_NAPS = 3
_NAP_S = 0.0001
# How often a worker looks whether its pool's process is still there.
_LOOK_S = 1.0
# Priority of what a process does at its end after all that multiprocessing does for its queues.
_LAST = -100

_in_task = [False]


def serve(
    line: Line,
    desk: Desk,
    worker: int,
    parent: int | None,
    initializer: Callable[..., object] | None,
    initargs: tuple[Any, ...],
    most_tasks: int | None,
) -> None:
    """Run tasks until there are to be no more.

    `parent` is the process that has started this one, which may be gone by now; `None`: whichever
    that is, as a fork server may be.
    """
    parent = parent or os.getppid()
    signal.signal(signal.SIGINT, _interrupted)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    place.take(line, desk, worker)
    if initializer is not None:
        try:
            initializer(*initargs)
        except BaseException as error:
            import logging

            logging.getLogger("concurrent.futures").critical(
                "Exception in initializer:", exc_info=True
            )
            why = f"the initializer of a worker failed: {type(error).__name__}: {error}"
            # Last of all, when what it logged has left it: the pool breaks at once.
            util.Finalize(None, _tell, (line, why), exitpriority=_LAST)
            return
    _Worker(line, desk, worker, parent).run(most_tasks)


def _tell(line: Line, why: str) -> None:
    line.results.append(calls.result(0, calls.NO_START, why))
    line.bell.release()


class _Worker:
    """A worker, with the functions that it has loaded."""

    def __init__(self, line: Line, desk: Desk, number: int, parent: int) -> None:
        self._line = line
        self._now = desk.now
        self._number = number
        self._parent = parent
        self._known: dict[int, Callable[..., Any]] = {}

    def run(self, most_tasks: int | None) -> None:
        now, take = self._now, self._line.tasks.popleft
        address_of, do = calls.address_of, self._do
        turn = streak = done = 0
        looked_s = monotonic()
        while most_tasks is None or done < most_tasks:
            turn -= 1
            # From here on the pool knows that a task which is nowhere else may be in this hand.
            now[0] = turn
            try:
                item = take()
            except IndexError:
                now[0] = RESTING
                if not self._rest(streak):
                    return
                streak = 0
                continue
            limit, number = address_of(item)
            now[0] = number
            do(item, number, limit)
            del item
            done += 1
            streak += 1
            if monotonic() - looked_s > _LOOK_S:
                looked_s = monotonic()
                self._leave_if_alone()
        now[0] = RESTING

    def _do(self, item: calls.Item, number: int, limit: float) -> None:
        if limit:
            self._tell(calls.result(number, calls.BEGUN, (self._number, limit)))
        try:
            function, args, kwargs = calls.call_of(item)
            if type(function) is int:
                function = self._known.get(function) or self._load(function)
            _in_task[0] = True
            value = function(*args, **kwargs)
            _in_task[0] = False
            told = calls.result(number, calls.VALUE, value)
        except BaseException as error:
            _in_task[0] = False
            told = _failed(number, error)
            value = None
        try:
            self._tell(told)
        except (TypeError, ValueError):
            # An object of another heap is no value of this one: its handle is.
            self._tell(calls.pickled_result(number, calls.VALUE, value))
        if limit and not self._now.cas(0, number, RESTING):
            # The limit was reached: this process is about to be killed, whatever it does.
            signal.pause()

    def _load(self, number: int) -> Callable[..., Any]:
        function = pickle.loads(self._line.functions[number])
        self._known[number] = function
        return function

    def _tell(self, told: calls.Item) -> None:
        line = self._line
        try:
            line.results.append(told)
        except MemoryError as error:
            self._tell_that_full(calls.about(told)[0], error)
        if not line.bell.value:
            line.bell.release()

    def _tell_that_full(self, number: int, error: MemoryError) -> None:
        """Say that there is no room for a result, as soon as there is room for that."""
        told = _failed(number, error)
        while True:
            try:
                return self._line.results.append(told)
            except MemoryError:
                self._line.bell.release()
                time.sleep(_NAP_S)

    def _rest(self, streak: int) -> bool:
        """Wait until there may be a task; False if there is to be none any more."""
        line = self._line
        if streak >= _STREAK:
            for _ in range(_NAPS):
                time.sleep(_NAP_S)
                if line.tasks:
                    return True
        while not line.tasks:
            if line.state[STATE] == CLOSING:
                return False
            if line.state[LEAVERS] > 0 and line.state.incr(LEAVERS, -1) >= 0:
                return False
            if line.work.acquire(True, _LOOK_S):
                return True
            self._leave_if_alone()
        return True

    def _leave_if_alone(self) -> None:
        """End here and now if the pool's process is gone: nobody wants what else is in the line."""
        if os.getppid() != self._parent or _is_left():
            os._exit(0)


def _is_left() -> bool:
    """Whether the process of the pool is gone. Its fork server outlives it."""
    pool = parent_process()
    return pool is not None and not pool.is_alive()


def _failed(number: int, error: BaseException) -> calls.Item:
    raised_at = error.__traceback__
    try:
        told = calls.result(number, calls.ERROR, calls.failure(error))
        # Many can be pickled and not unpickled: those that want more than one argument.
        calls.value_of(told)
    except BaseException as why:
        from ungil.errors import NotCarried  # most workers never need it

        lost = NotCarried(f"{_text(error)} (which cannot be pickled: {_text(why)})")
        return calls.result(number, calls.ERROR, calls.failure(lost.with_traceback(raised_at)))
    return told


def _text(error: BaseException) -> str:
    try:
        said = str(error)
    except Exception:
        said = "?"
    return f"{type(error).__qualname__}: {said}"


def _interrupted(_signal: int, _frame: object) -> None:
    """Ctrl-C at the terminal ends the task that runs, and is nothing to a worker without one."""
    if _in_task[0]:
        _in_task[0] = False
        raise KeyboardInterrupt
