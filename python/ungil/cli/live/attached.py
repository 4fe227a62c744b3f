"""Running processes, attached to for as long as somebody looks at them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from ungil._native import Live, Stacks
from ungil.cli.attaching import refusal
from ungil.cli.live.moment import Moment, moment
from ungil.errors import HookError
from ungil.recorder import LONG_HOLD_MS


class Attached:
    """Processes that were attached to, in a `with` block; at its end they are left as they were."""

    def __init__(self, *, follow_children: bool = False) -> None:
        """Attach to nothing yet. HookError if there is no room for what a process tells."""
        try:
            self._live = Live(blame_after_ms=LONG_HOLD_MS, follow_children=follow_children)
        except (OSError, RuntimeError) as error:
            raise HookError(str(error)) from error
        self._readers: dict[int, Stacks] = {}
        self._look: dict[str, Any] = {}

    def __enter__(self) -> Attached:
        return self

    def __exit__(self, *_: object) -> None:
        self.leave()

    def attach(self, pid: int) -> None:
        """See process `pid` from now on. UsageError says why that cannot be."""
        try:
            self._live.attach(pid)
        except (OSError, RuntimeError) as error:
            raise refusal(pid, error) from error

    def look(self) -> dict[str, Any]:
        """What `Live.look` returns."""
        self._look = json.loads(self._live.look())
        return self._look

    def now(self, pid: int) -> dict[str, Any] | None:
        """The account of process `pid` in the last look; `None` if it was not there."""
        # One that has called exec has a new one.
        accounts = [it for it in self._look.get("now", ()) if it["pid"] == pid]
        return accounts[-1] if accounts else None

    def everyone(self, pid: int) -> dict[str, Any] | None:
        """The stacks of process `pid` now; `None` if they cannot be read, this time or ever."""
        try:
            if pid not in self._readers:
                self._readers[pid] = Stacks(pid)
            return json.loads(self._readers[pid].read())
        except (OSError, RuntimeError):
            self._readers.pop(pid, None)
            return None

    def moments(self, pids: Iterable[int]) -> dict[int, Moment]:
        """What these processes do, as the last look saw it, with stacks of now."""
        return {pid: moment(pid, self.now(pid), self.everyone(pid)) for pid in pids}

    def leave(self) -> None:
        """Have the processes make their calls as if nobody had looked."""
        self._live.stop()
