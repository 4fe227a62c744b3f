"""Blocks of `atomic()` in tasks: one that an await leaves is undone."""

import sys
from collections.abc import Callable
from typing import Any

from ungil import _native


def _watch(number: int) -> Callable[[], object] | None:
    """See to it that the transaction is undone if the task that runs gives way to its loop.

    What else runs in turns in a thread (trio's tasks, greenlets, coroutines of `lean`) is noticed
    when it uses the heap.
    """
    events: Any = sys.modules.get("asyncio.events")
    loop = events and events._get_running_loop()
    return loop and loop.call_soon(_native.leave_transaction, number).cancel


_native.set_watch(_watch)
