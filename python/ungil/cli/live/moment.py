"""What the threads of a process do at one moment: its GIL's own account, joined with their stacks.

The account comes from the calls that the hook sees. A thread that has held the GIL since before
the hook was there has made none yet: the interpreter's own memory says that the GIL is that
thread's, and that no other was seen to have it says since when, at least.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

State = Literal["holds", "waits", "off"]
"""Whether a thread holds a GIL, waits for it, or does neither."""


@dataclass(frozen=True)
class Frame:
    """One line of a Python stack."""

    function: str
    file: str
    line: int
    """0 if it is not known."""

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        return f"{self.function} ({place})"


@dataclass(frozen=True)
class Thread:
    """A thread at one moment."""

    tid: int | None
    """The kernel's number; `None` if it is not known."""
    ident: int
    """`threading.get_ident()`."""
    name: str
    main: bool
    state: State = "off"
    gil: int = 0
    """Which GIL it holds or waits for."""
    for_s: float | None = None
    """For how long it has held or waited; `None` if it does neither, or nobody can tell."""
    at_least: bool = False
    """Whether that began before anybody looked, or may have."""
    stack: tuple[Frame, ...] = ()
    """Innermost frame first; empty if it could not be read."""


@dataclass(frozen=True)
class Moment:
    """What a process did with its GILs at one moment."""

    threads: tuple[Thread, ...]
    """Holders first, then those that wait, the longest wait first, then all others."""
    seen_s: float | None
    """For how long its calls had been seen; `None` if they were not."""
    steady: bool = True
    """Whether account and stacks are of one moment: the holder was the same before and after."""

    def holder(self, gil: int = 0) -> Thread | None:
        """Who holds that GIL."""
        return next((it for it in self.threads if it.state == "holds" and it.gil == gil), None)

    def waiters(self, gil: int = 0) -> list[Thread]:
        """Who waits for it, the longest wait first."""
        return [it for it in self.threads if it.state == "waits" and it.gil == gil]

    @property
    def gils(self) -> list[int]:
        """The GILs that somebody holds or waits for."""
        return sorted({it.gil for it in self.threads if it.state != "off"})


@dataclass
class _Found:
    """What both sources say of one thread."""

    account: Mapping[str, Any] = field(default_factory=dict[str, Any])
    stack: Mapping[str, Any] = field(default_factory=dict[str, Any])


def moment(pid: int, now: Mapping[str, Any] | None, everyone: Mapping[str, Any] | None) -> Moment:
    """Join what `_native` tells of process `pid`: a PROCESS of `Live.look`, and `Stacks.read`."""
    accounts = list(now["threads"]) if now else []
    stacks = list(everyone["threads"]) if everyone else []
    holders = _seen_holders(accounts)
    unseen = None if holders.get(0) else _unseen_holder(accounts, stacks)
    threads: list[Thread] = []
    for found in _joined(accounts, stacks):
        thread = _thread(pid, found)
        ident = thread.ident
        if now and found.account and found.account is holders.get(found.account["gil"]):
            since_ns = found.account["holding_since_ns"]
            thread = _doing(thread, "holds", found.account["gil"], now["at_ns"] - since_ns)
        elif unseen is not None and ident == unseen:
            for_ns = now["at_ns"] - now["seen_since_ns"] if now else None
            thread = _doing(thread, "holds", 0, for_ns, at_least=True)
        elif now and found.account and found.account["waiting_since_ns"] is not None:
            for_ns = now["at_ns"] - found.account["waiting_since_ns"]
            at_least = found.account["is_first_wait"]
            thread = _doing(thread, "waits", found.account["gil"], for_ns, at_least=at_least)
        threads.append(thread)
    rank = {"holds": 0, "waits": 1, "off": 2}
    threads.sort(key=lambda it: (rank[it.state], -(it.for_s or 0), not it.main, it.name))
    seen_s = (now["at_ns"] - now["seen_since_ns"]) / 1e9 if now else None
    return Moment(tuple(threads), seen_s)


def _seen_holders(accounts: Iterable[Mapping[str, Any]]) -> dict[int, Mapping[str, Any]]:
    """Who was seen to take each GIL; of two the first, as the slots are read one by one."""
    holders: dict[int, Mapping[str, Any]] = {}
    for account in accounts:
        if account["holding_since_ns"] is not None:
            known = holders.get(account["gil"])
            if known is None or account["holding_since_ns"] < known["holding_since_ns"]:
                holders[account["gil"]] = account
    return holders


def _unseen_holder(
    accounts: Iterable[Mapping[str, Any]], stacks: Iterable[Mapping[str, Any]]
) -> int | None:
    """The ident of the thread that has had the main GIL since before anybody looked, if one has.

    Had it let go, or had another thread got the GIL, one of them would have an account of that.
    """
    if any(it["releases"] or it["holding_since_ns"] is not None for it in accounts):
        return None
    return next((it["ident"] for it in stacks if it["owns_gil"]), None)


def _joined(
    accounts: Iterable[Mapping[str, Any]], stacks: Iterable[Mapping[str, Any]]
) -> Iterable[_Found]:
    """Every thread once, by its ident."""
    found: dict[int, _Found] = {}
    for stack in stacks:
        found.setdefault(stack["ident"], _Found()).stack = stack
    for account in accounts:
        found.setdefault(account["ident"], _Found()).account = account
    return found.values()


def _thread(pid: int, found: _Found) -> Thread:
    account, stack = found.account, found.stack
    tid = account.get("tid") or stack.get("tid")
    main = tid == pid or stack.get("name") == "MainThread"
    name = stack.get("name") or ("MainThread" if main else f"thread-{tid or '?'}")
    frames = tuple(Frame(it["function"], it["file"], it["line"]) for it in stack.get("frames", ()))
    ident = account.get("ident") or stack["ident"]
    return Thread(tid=tid, ident=ident, name=name, main=main, stack=frames)


def _doing(
    thread: Thread, state: State, gil: int, for_ns: int | None, *, at_least: bool = False
) -> Thread:
    # Times of two processors' counters may cross by some nanoseconds.
    for_s = None if for_ns is None else max(0.0, for_ns / 1e9)
    return replace(thread, state=state, gil=gil, for_s=for_s, at_least=at_least)
