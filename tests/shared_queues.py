"""Queues of tests, and what becomes of processes that use them."""

from __future__ import annotations

import os
import signal
from typing import Any

from ungil import share


def made(heap: share.Heap, maxsize: int = 0) -> share.Queue[Any]:
    shared = heap.share(share.Queue[Any](maxsize))
    assert isinstance(shared, share.Queue)
    return shared


def killed(child: int) -> None:
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
