"""The processes that `ungil top` shows, from attaching to leaving."""

from __future__ import annotations

import threading
import time
from contextlib import suppress

from ungil._native import (
    attach_policy,
    detach_policy,
    look_at_recorded,
    process_policy,
    set_process_policy,
)
from ungil.cli.attaching import in_turn, refusal, refuse_if_recorded
from ungil.cli.live.attached import Attached
from ungil.cli.proc import cpu_seconds, family, process
from ungil.cli.top.figures import Figures, figures
from ungil.errors import UsageError


class Watched:
    """A process, and its descendants if wanted, in a `with` block.

    At its end they are left as they were, and have the policies again that they had.
    """

    def __init__(self, pid: int, *, children: bool = False) -> None:
        """Attach. UsageError says why that cannot be."""
        self.pid = pid
        self._attached = Attached(follow_children=children)
        self._pids: list[int] = [pid]
        # Whoever leaves waits for a look, or a change, that another thread is about.
        self._lock = threading.Lock()
        self._has_left = False
        self._cpu: dict[tuple[int, int], tuple[float, float]] = {}
        # What each process obeyed before; None is nothing at all.
        self._before: dict[int, tuple[str, int] | None] = {}
        try:
            with in_turn(pid):
                refuse_if_recorded(pid, "ungil top")
                self._attached.attach(pid)
            for child in list(family(pid))[1:] if children else []:
                # One that is no Python, or has ended, is none to look at.
                with suppress(UsageError), in_turn(child):
                    if look_at_recorded(child) is None:
                        self._attached.attach(child)
        except BaseException:
            self._attached.leave()
            raise

    def __enter__(self) -> Watched:
        return self

    def __exit__(self, *_: object) -> None:
        self.leave()

    def figures(self) -> list[Figures]:
        """Of each process that is there, since the last call; the first process first."""
        with self._lock:
            return [] if self._has_left else self._figures()

    def _figures(self) -> list[Figures]:
        look = self._attached.look()
        pids = sorted({it["pid"] for it in look["now"]}, key=lambda it: (it != self.pid, it))
        self._pids = pids
        found: list[Figures] = []
        for pid, moment in self._attached.moments(pids).items():
            known = process(pid)
            if known is None:
                continue
            tids = [it.tid for it in moment.threads if it.tid is not None]
            cpu = {tid: part for tid in tids if (part := self._cpu_part(pid, tid)) is not None}
            found.append(figures(pid, known.command, _policy(pid), look, moment, cpu))
        return found

    def _cpu_part(self, pid: int, tid: int) -> float | None:
        """The part of the time since the last call that a thread ran."""
        now_s, ran_s = time.monotonic(), cpu_seconds(pid, tid)
        if ran_s is None:
            return None
        before = self._cpu.get((pid, tid))
        self._cpu[pid, tid] = (now_s, ran_s)
        if before is None or now_s <= before[0]:
            return None
        return max(0.0, ran_s - before[1]) / (now_s - before[0])

    def obey(self, policy: str) -> None:
        """Have all processes follow a policy. UsageError says why one cannot."""
        with self._lock:
            for pid in [] if self._has_left else self._pids:
                before = _obeyed(pid)
                try:
                    if before is None:
                        with in_turn(pid):
                            attach_policy(pid, policy)
                    else:
                        set_process_policy(pid, policy, 0)
                except (OSError, RuntimeError) as error:
                    raise refusal(pid, error) from error
                self._before.setdefault(pid, before)

    def leave(self) -> None:
        """Give every process its policy back, and leave it as it was."""
        with self._lock:
            self._has_left = True
            while self._before:
                pid, before = self._before.popitem()
                # It may have ended.
                with suppress(OSError, RuntimeError):
                    if before is None:
                        detach_policy(pid)
                    else:
                        set_process_policy(pid, *before)
            self._attached.leave()


def _obeyed(pid: int) -> tuple[str, int] | None:
    """The policy of a process and its quantum; `None` if the hook does not schedule it."""
    try:
        return process_policy(pid)
    except (OSError, RuntimeError):
        return None


def _policy(pid: int) -> tuple[str, float | None]:
    obeyed = _obeyed(pid)
    return ("stock", None) if obeyed is None else (obeyed[0], obeyed[1] / 1e9)
