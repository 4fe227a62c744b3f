"""The table of threads: the worst first, as many columns as fit, the rows that do not fit summed.

The worst are those that lost or took most: threads are sorted by time waited plus time held, so
that victims and culprits both come first.
"""

from __future__ import annotations

from dataclasses import replace
from math import nan

from rich.table import Table

from ungil.formatting import duration, share, tally
from ungil.report.columns import Column, Row, column_table
from ungil.report.model import ContextSwitches, Distribution, Gil, Others, Thread
from ungil.report.names import Names

NARROW_NAME, WIDE_NAME = 16, 32
"""How wide names are at most: below 120 columns, and from there on."""
TELLING_NAME = 24
"""And below 120 columns where that tells more of them apart; never more than a third of all."""


def thread_table(gil: Gil, names: Names, seconds: float, rows: int, width: int) -> Table:
    """The threads of `gil`, recorded for `seconds`, in at most `rows` rows and `width` columns."""
    lines = _rows(gil, names, rows)
    usual = min(WIDE_NAME if width >= 120 else NARROW_NAME, max(width // 3, 8))
    widest = max(usual, min(TELLING_NAME, width // 3))
    shown = names.fitted([line.name for line in lines], usual, widest)
    lines = [replace(line, name=shown[line.name]) for line in lines]
    return column_table("thread", lines, _columns(seconds), width, lambda t: _style(t, seconds))


def _style(thread: Thread, seconds: float) -> dict[str, str]:
    """What deserves a second look: by the head of the column."""
    waited = thread["waited_s"] / seconds if seconds > 0 else 0.0
    held = thread["held_s"] / seconds if seconds > 0 else 0.0
    return {
        "waited": "bold red" if waited >= 0.5 else "yellow" if waited >= 0.1 else "",
        "held": "bold" if held >= 0.5 else "",
    }


def _columns(seconds: float) -> list[Column[Thread]]:
    """All columns, from left to right."""

    def part(value: float) -> str:
        # Several threads together can wait for longer than the recording took.
        percent = share(value, seconds) if value < seconds * 1.005 else ""
        return f"{duration(value)} {percent:>4}"

    return [
        Column("", "held", lambda t: part(t["held_s"]), 98),
        Column("", "waited", lambda t: part(t["waited_s"]), 99),
        Column("", "cpu", lambda t: duration(nan if t["cpu_s"] is None else t["cpu_s"]), 40),
        Column("waits", "count", lambda t: tally(t["waits"]["count"]), 35, begins_group=True),
        Column("waits", "p50", lambda t: duration(t["waits"]["p50_us"] / 1e6), 80),
        Column("waits", "p99", lambda t: duration(t["waits"]["p99_us"] / 1e6), 85),
        Column("waits", "max", lambda t: duration(t["waits"]["max_us"] / 1e6), 99),
        Column("gaps", "mean", lambda t: duration(t["gaps"]["mean_ms"] / 1e3), 50, True),
        Column("gaps", "max", lambda t: duration(t["gaps"]["max_ms"] / 1e3), 60),
        Column("holds", "count", lambda t: tally(t["holds"]["count"]), 30, begins_group=True),
        Column("holds", "p50", lambda t: duration(t["holds"]["p50_us"] / 1e6), 45),
        Column("holds", "p99", lambda t: duration(t["holds"]["p99_us"] / 1e6), 46),
        Column("holds", "max", lambda t: duration(t["holds"]["max_us"] / 1e6), 65),
        Column("released", "freely", lambda t: tally(t["voluntary"]), 47, begins_group=True),
        Column("released", "forced", lambda t: tally(t["forced"]), 70),
        Column("switches", "vol.", lambda t: tally(_switches(t)["voluntary"]), 25, True),
        Column("switches", "invol.", lambda t: tally(_switches(t)["involuntary"]), 26),
        Column("", "tid", lambda t: str(t["tid"] or ""), 10, begins_group=True),
    ]


def _rows(gil: Gil, names: Names, limit: int) -> list[Row[Thread]]:
    """The worst threads, then one row for all that are left."""
    threads = sorted(gil["threads"], key=lambda t: t["waited_s"] + t["held_s"], reverse=True)
    others = gil.get("others") or Others(threads=0, held_s=0.0, waited_s=0.0)
    fits = len(threads) + bool(others["threads"]) <= limit
    shown = threads if fits else threads[: max(limit - 1, 1)]
    rows = [Row(names.of_thread(thread), thread) for thread in shown]
    rest = threads[len(shown) :]
    count = len(rest) + others["threads"]
    if count or not rows:
        text = f"{count:,} {'more' if rows else 'threads'}"
        rows.append(Row(text, _sum(rest, others), "dim"))
    return rows


def _sum(threads: list[Thread], others: Others) -> Thread:
    """Many threads as one: times and counts added, the largest maximum, no percentiles."""
    return Thread(
        tid=0,
        name="",
        held_s=sum(t["held_s"] for t in threads) + others["held_s"],
        waited_s=sum(t["waited_s"] for t in threads) + others["waited_s"],
        cpu_s=sum(t["cpu_s"] or 0.0 for t in threads),
        holds=_merge([t["holds"] for t in threads]),
        waits=_merge([t["waits"] for t in threads]),
        gaps={"mean_ms": nan, "max_ms": max((t["gaps"]["max_ms"] for t in threads), default=nan)},
        voluntary=sum(t["voluntary"] for t in threads),
        forced=sum(t["forced"] for t in threads),
        context_switches={
            "voluntary": sum(_switches(t)["voluntary"] for t in threads),
            "involuntary": sum(_switches(t)["involuntary"] for t in threads),
        },
    )


def _merge(parts: list[Distribution]) -> Distribution:
    return Distribution(
        count=sum(part["count"] for part in parts),
        mean_us=nan,
        p50_us=nan,
        p99_us=nan,
        max_us=max((part["max_us"] for part in parts), default=nan),
    )


def _switches(thread: Thread) -> ContextSwitches:
    return thread.get("context_switches") or ContextSwitches(voluntary=0, involuntary=0)
