"""Mode `lean`: coroutines on a loop of ungil's own, without asyncio.

They may await the functions of `ungil.fanout`, and whatever awaits only those.
"""

import atexit
from _weakref import ref  # weakref itself takes longer to import than a thousand items to run

from ungil._native import Dispatcher, Lean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_open: "set[ref[Loop]]" = set()


class Loop(Lean):
    """The loop of one fan-out."""

    def __init__(
        self, function: "Callable[[Any], Any]", dispatcher: Dispatcher, timeout: float | None
    ) -> None:
        _open.add(ref(self, _open.discard))

    def __del__(self) -> None:
        # Whoever leaves a fan-out in the middle does not wait for the rest, but their `finally`
        # blocks run, also those that have to await something.
        self.close()


@atexit.register
def _close_all() -> None:
    # Later, the modules that those blocks use are gone.
    for reference in tuple(_open):
        if (loop := reference()) is not None:
            loop.close()
