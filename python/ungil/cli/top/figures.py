"""What the threads of a process did with its GILs lately, joined with what they do now."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ungil.cli.live.moment import Frame, Moment, State, Thread


@dataclass(frozen=True)
class Row:
    """A thread lately. Parts are of the time since the last look; rates are by the second."""

    pid: int
    tid: int | None
    name: str
    main: bool
    held: float
    waited: float
    freely: float
    """Releases that nobody had asked for."""
    forced: float
    """Releases that a waiter had asked for."""
    worst_wait_s: float
    """The longest wait that ended in the last minute, or goes on."""
    cpu: float | None
    """`None` if that is not known yet."""
    state: State = "off"
    for_s: float | None = None
    at_least: bool = False
    line: Frame | None = None
    """Where it is."""


@dataclass(frozen=True)
class Blamed:
    """Whom threads waited for. Parts are of the time since the last look, summed over waiters."""

    pid: int
    tid: int | None
    """`None` stands for nobody: the GIL was on its way to the next holder."""
    name: str
    waited: float
    victims: tuple[tuple[str, float], ...]
    """Who waited, the longest first."""
    line: Frame | None = None
    """Where the culprit is now."""


@dataclass(frozen=True)
class Figures:
    """A process lately and now."""

    pid: int
    command: tuple[str, ...]
    python: str
    interval_s: float
    policy: str
    quantum_s: float | None
    held: float
    contended: float
    """The part of the time in which a thread held and another one waited."""
    waited: float
    """What all threads waited, in seconds by the second."""
    longest_wait_s: float
    """Since the last look."""
    handoffs: float
    """How often the GIL went to another thread, by the second."""
    lost_events: int
    moment: Moment
    rows: tuple[Row, ...]
    blamed: tuple[Blamed, ...]

    @property
    def holder(self) -> Thread | None:
        """Who holds the main GIL, or else any."""
        return next((it for it in self.moment.threads if it.state == "holds"), None)


NOBODY = "(on its way)"
OTHERS = "(others)"
UNKNOWN = "(unknown)"


def figures(
    pid: int,
    command: tuple[str, ...],
    policy: tuple[str, float | None],
    look: Mapping[str, Any],
    moment: Moment,
    cpu: Mapping[int, float],
) -> Figures:
    """Those of process `pid` by a look (`Live.look`), what it does now, and its threads' CPU."""
    process = next((it for it in reversed(look["lately"]["processes"]) if it["pid"] == pid), None)
    account = next((it for it in reversed(look["now"]) if it["pid"] == pid), None)
    interval_s: float = process["duration_s"] if process else 0.0
    span_s = interval_s or 1.0
    gils: list[Mapping[str, Any]] = process["gils"] if process else []
    interval_ns = account["switch_interval_ns"] if account else None
    lines = {it.tid: it.stack[0] for it in moment.threads if it.stack}
    # A thread that has held the GIL since before anybody looked has no account of it yet.
    unseen = next((it for it in moment.threads if it.state == "holds" and it.at_least), None)
    worst_s = {it["tid"]: it["ms"] / 1e3 for it in look["worst_waits"] if it["pid"] == pid}
    lately: defaultdict[int, list[Mapping[str, Any]]] = defaultdict(list)
    for gil in gils:
        for thread in gil["threads"]:
            lately[thread["tid"]].append(thread)
    rows = [
        _row(pid, it, lately.pop(it.tid or 0, []), span_s, worst_s, cpu, it is unseen)
        for it in moment.threads
    ]
    rows += [_ended(pid, tid, told, span_s) for tid, told in lately.items()]
    held_s = sum(it["held_s"] for it in gils)
    contended_s = sum(it["contended_s"] for it in gils)
    if unseen is not None:
        held_s = span_s
        contended_s = max((it["waited_s"] for gil in gils for it in gil["threads"]), default=0.0)
    return Figures(
        pid=pid,
        command=command,
        python=account["python"] if account else "",
        interval_s=interval_s,
        policy=policy[0],
        quantum_s=policy[1] or (interval_ns / 1e9 if interval_ns else None),
        held=min(1.0, held_s / span_s),
        contended=min(1.0, contended_s / span_s),
        waited=sum(it.waited for it in rows),
        longest_wait_s=max(
            (it["waits"]["max_us"] / 1e6 for gil in gils for it in gil["threads"]), default=0.0
        ),
        handoffs=sum(it["handoffs"] for it in gils) / span_s,
        lost_events=look["lately"]["lost_events"],
        moment=moment,
        rows=tuple(rows),
        blamed=tuple(_blamed(pid, gils, span_s, lines, unseen)),
    )


def _row(
    pid: int,
    thread: Thread,
    told: Iterable[Mapping[str, Any]],
    span_s: float,
    worst_s: Mapping[int, float],
    cpu: Mapping[int, float],
    held_all: bool,
) -> Row:
    told = list(told)
    tid = thread.tid or 0
    return Row(
        pid=pid,
        tid=thread.tid,
        name=thread.name,
        main=thread.main,
        held=1.0 if held_all else _sum(told, "held_s", span_s, 1.0),
        waited=_sum(told, "waited_s", span_s, 1.0),
        freely=_sum(told, "voluntary", span_s),
        forced=_sum(told, "forced", span_s),
        worst_wait_s=worst_s.get(tid, 0.0),
        cpu=cpu.get(tid),
        state=thread.state,
        for_s=thread.for_s,
        at_least=thread.at_least,
        line=thread.stack[0] if thread.stack else None,
    )


def _ended(pid: int, tid: int, told: list[Mapping[str, Any]], span_s: float) -> Row:
    """A thread that did something since the last look, and is there no more."""
    return Row(
        pid=pid,
        tid=tid,
        name=told[0]["name"],
        main=told[0]["main"],
        held=_sum(told, "held_s", span_s, 1.0),
        waited=_sum(told, "waited_s", span_s, 1.0),
        freely=_sum(told, "voluntary", span_s),
        forced=_sum(told, "forced", span_s),
        worst_wait_s=max(it["waits"]["max_us"] for it in told) / 1e6,
        cpu=None,
    )


def _sum(
    told: Iterable[Mapping[str, Any]], key: str, span_s: float, most: float = float("inf")
) -> float:
    return min(most, sum(it[key] for it in told) / span_s)


def _blamed(
    pid: int,
    gils: Iterable[Mapping[str, Any]],
    span_s: float,
    lines: Mapping[int | None, Frame],
    unseen: Thread | None,
) -> list[Blamed]:
    """Culprits, those whom others waited for longest first."""
    waited: defaultdict[tuple[int | None, str], defaultdict[str, float]]
    waited = defaultdict(lambda: defaultdict(float))
    for gil in gils:
        for charge in gil["blame"]:
            culprit, name = charge["culprit"], charge["culprit_name"]
            if culprit is None and unseen is not None:
                culprit, name = unseen.tid, unseen.name
            elif not isinstance(culprit, int):
                name = {None: NOBODY, "others": OTHERS}.get(culprit, UNKNOWN)
                culprit = None
            waited[culprit, name][charge["victim_name"] or OTHERS] += charge["waited_s"] / span_s
    blamed = [
        Blamed(
            pid=pid,
            tid=tid,
            name=name,
            waited=sum(victims.values()),
            victims=tuple(sorted(victims.items(), key=lambda it: -it[1])),
            line=lines.get(tid) if tid is not None else None,
        )
        for (tid, name), victims in waited.items()
    ]
    return sorted(blamed, key=lambda it: -it.waited)
