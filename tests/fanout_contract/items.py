"""What the items of the contract do."""

from __future__ import annotations

import threading
from typing import Any

from fanout_contract.modes import Event, Mode


def one_group(_item: object) -> int:
    """All items are of one group."""
    return 0


class Crowd:
    """Counts who is inside at once, by group.

    The first who come stay until so many are inside `together`: so many do run at once. All stay
    a moment longer, in which others come if nothing keeps them.
    """

    def __init__(self, mode: Mode, together: int) -> None:
        self.inside: dict[Any, int] = {}
        self.most: dict[Any, int] = {}
        self._mode = mode
        self._lock = threading.Lock()
        self._together = together
        self._full = mode.event()

    async def visit(self, group: Any) -> None:
        """Comes and goes."""
        self._count(group, 1)
        await self._full.wait()
        await self._mode.sleep(0.002)
        self._count(group, -1)

    def _count(self, group: Any, change: int) -> None:
        with self._lock:
            for who in (group, "all"):
                self.inside[who] = self.inside.get(who, 0) + change
                self.most[who] = max(self.most.get(who, 0), self.inside[who])
            if self.inside["all"] >= self._together:
                self._full.set()


class Flaky:
    """Fails so many times for each item, which is its number and that of its failures."""

    def __init__(self, mode: Mode) -> None:
        self.calls: dict[int, int] = {}
        self._mode = mode

    async def attempt(self, item: tuple[int, int]) -> int:
        """Gives the number of the attempt that succeeded."""
        number, failures = item
        call = self.calls[number] = self.calls.get(number, 0) + 1
        await self._mode.sleep(0)
        if call <= failures:
            raise ConnectionError(f"failure {call}")
        return call


class Waiting:
    """An item 0 that ends at once, and others that wait until they are released or ended.

    With five at once: those that began beside the first, the one that took its place, no other.
    """

    def __init__(self, mode: Mode) -> None:
        self.began: list[int] = []
        self.cleaned_up: list[int] = []
        self.released: Event = mode.event()
        self._mode = mode

    async def fn(self, number: int) -> int:
        """Cleaning up may wait, too."""
        self.began.append(number)
        if number == 0:
            return number
        try:
            await self.released.wait()
        finally:
            await self._mode.sleep(0.001)
            self.cleaned_up.append(number)
        return number

    def check(self, last: int = 5) -> None:
        """All up to `last` have begun, and ended; no other begins any more."""
        assert sorted(self.began) == list(range(last + 1))
        assert sorted(self.cleaned_up) == list(range(1, last + 1))
        self._mode.settle()
        assert len(self.began) == last + 1
