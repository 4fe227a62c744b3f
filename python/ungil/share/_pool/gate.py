"""A pool's lock as the conditions of its futures have it."""

from __future__ import annotations

import os
import threading
from typing import Any

# One for all pools.
_gate: Any = threading.RLock()


class Gated:
    """The lock of a pool, behind one gate for all pools.

    `futures.wait` and `as_completed` hold the locks of all pools of their futures at once, in any
    order, so that two threads could wait for each other for ever. Only one thread at a time is
    through the gate. Who takes no second lock, as who settles results, does not come through it.
    """

    def __init__(self, lock: Any) -> None:
        self._lock = lock

    def acquire(self) -> bool:
        """Acquire it; a thread that has it already need not wait at the gate."""
        if self._lock._is_owned():
            return self._lock.acquire()
        _gate.acquire()
        try:
            return self._lock.acquire()
        except BaseException:
            _gate.release()
            raise

    def release(self) -> None:
        """Release what `acquire` acquired."""
        self._lock.release()
        if not self._lock._is_owned():
            _gate.release()

    def locked(self) -> bool:
        """Whether a thread has it; the conditions of CPython 3.14 ask for this."""
        return self._lock.locked()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()

    # What threading.Condition asks of a lock.

    def _is_owned(self) -> bool:
        return self._lock._is_owned()

    def _release_save(self) -> tuple[Any, Any]:
        saved = self._lock._release_save()
        return saved, _gate._release_save() if _gate._is_owned() else None

    def _acquire_restore(self, saved: tuple[Any, Any]) -> None:
        lock, gate = saved
        if gate is not None:
            _gate._acquire_restore(gate)
        self._lock._acquire_restore(lock)


# A thread of the parent may have been through it.
os.register_at_fork(after_in_child=_gate._at_fork_reinit)
