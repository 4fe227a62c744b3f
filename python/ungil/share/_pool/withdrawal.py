"""Taking many tasks out of the line of a pool: one by one would read the whole line for each."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Sequence
from itertools import repeat, starmap
from typing import TYPE_CHECKING, Any

from ungil.share._pool.calls import address_of

if TYPE_CHECKING:
    from ungil.share._pool.calls import Item
    from ungil.share._pool.core import Core
    from ungil.share._pool.future import Future


def withdraw(core: Core, those: Sequence[Future[Any]]) -> None:
    """Cancel those of some tasks that no worker has taken. A forked child cancels nothing."""
    if core.is_foreign:
        return
    numbers = {future.number for future in those if not future.done_yet()}
    if not numbers:
        return
    cancelled: list[Future[Any]] = []
    popped: deque[Item] = deque()
    others: list[Item] = []
    error: Exception | None = None
    try:
        with core.lock:
            try:
                # Workers take at the other end meanwhile. Without a step of Python in between, at
                # which Ctrl-C would lose one.
                with contextlib.suppress(IndexError):
                    popped.extend(
                        starmap(core.line.tasks.pop, repeat((), _from_first(core, numbers)))
                    )
            finally:
                for item in popped:
                    number = address_of(item)[1]
                    future = core.pending.get(number)
                    if future is not None and number in numbers:
                        future.cancel_now()
                        cancelled.append(future)
                        core.forget(number)
                    elif future is not None:
                        others.append(item)
                others.reverse()
                error = _put_back(core, others)
    finally:
        core.tell(cancelled)
        if error is not None:
            for item in others:
                core.fail(address_of(item)[1], error)


def _from_first(core: Core, numbers: set[int]) -> int:
    """How many tasks there are in the line from the first one of these on."""
    line = [address_of(item)[1] for item in core.line.tasks.copy()]
    return next((len(line) - at for at, number in enumerate(line) if number in numbers), 0)


def _put_back(core: Core, items: list[Item]) -> Exception | None:
    """With the lock: put tasks at the end of the line again, or return why that failed."""
    if not items:
        return None
    try:
        core.line.tasks.extend(items)
    except Exception as error:  # The heap is full, or damaged.
        return error
    # Workers may have seen an empty line.
    core.line.work.release(min(len(items), core.staff.wanted))
    return None
