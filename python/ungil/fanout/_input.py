"""The input of items that run in threads, where a thread of its own reads it.

An input may wait: for a page of an API, for a line, for a database. Meanwhile the threads of the
items go on, and whoever waits for outcomes takes them. One thread reads all of it, so what a
generator opens is used by no other thread.
"""

import threading
from collections.abc import Callable
from contextvars import copy_context

from ungil._native import Dispatcher


class Reader(threading.Thread):
    """Reads ahead as many items as run, so that a thread that has ended one finds the next.

    `has_come` is called in this thread after each of them, and at the end of the input.
    """

    def __init__(self, dispatcher: Dispatcher, has_come: Callable[[], None]) -> None:
        # Daemonic, as an input that waits must not keep the program from its end.
        super().__init__(name="fanout-input", daemon=True)
        self._context = copy_context()
        self._dispatcher = dispatcher
        self._has_come = has_come
        self._room = threading.Event()
        self._closing = False

    def run(self) -> None:
        self._context.run(self._read)

    def _read(self) -> None:
        while self._has_room() and self._dispatcher.read():
            self._has_come()
        self._has_come()

    def _has_room(self) -> bool:
        """Waits until the stock has room. False if nothing more is to be read."""
        dispatcher = self._dispatcher
        while True:
            # Whoever makes room, or closes, says so after that.
            self._room.clear()
            if self._closing:
                return False
            if (dispatcher.in_stock or 0) < max(1, dispatcher.running):
                return True
            self._room.wait()

    def taken(self) -> None:
        """Something may have been taken from the stock: goes on when half of it is left."""
        dispatcher = self._dispatcher
        if not self._room.is_set() and 2 * (dispatcher.in_stock or 0) <= dispatcher.running:
            self._room.set()

    def close(self) -> None:
        """Reads nothing more. An item that is being read is not waited for."""
        self._closing = True
        self._room.set()
