"""Predictions on a screen: a table of rules, or of the threads under one."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TextIO

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from ungil.cli.simulate.answer import Answer, Figures, Range, Scheduling, ThreadFigures
from ungil.console import print_page
from ungil.formatting import at_most_three_digits, digits, duration, plural, printable, share, tally
from ungil.report.columns import Column, Row, column_table
from ungil.report.names import shortened

ROWS = 20
NAME_WIDTH = 28
RULES_WIDTH = 16
"""What the names of rules get at least, a third of the screen otherwise; then they are folded."""
FAR = 1.25
"""If the simulation misses the use of the GIL or the blocking calls by so much, it says so."""


@dataclass(frozen=True)
class Told:
    """A row of the table of rules."""

    figures: Figures
    spread: Range | None = None
    """Of the median wait, if it is a prediction."""
    has_gil: bool = True
    """Without a GIL, nobody holds it, and nobody hands it over."""


@dataclass(frozen=True)
class Compared:
    """A row of the table of threads."""

    before: ThreadFigures
    after: ThreadFigures
    spread_s: Range
    """Of what it waits."""

    @property
    def cost(self) -> float:
        """What brings a thread to the top: what it loses or takes, as recorded or predicted."""
        return max(self.before["waited_s"], self.after["waited_s"]) + self.after["held_s"]

    @property
    def range(self) -> str:
        """What it waits at least and at most."""
        return f"{duration(self.spread_s['low'])}-{duration(self.spread_s['high'])}"


def print_answers(answers: Sequence[Answer], others: int, file: TextIO) -> None:
    """Show `answers`, of one GIL, on `file`; `others` are the GILs that were not asked about."""
    print_page(file, lambda console: _render(answers, others, console))


def _render(answers: Sequence[Answer], others: int, console: Console) -> None:
    first = answers[0]
    parts: list[RenderableType] = [_title(first, others), Text()]
    parts.append(_rules_table(answers, console.width))
    if len(answers) == 1:
        parts += [Text(), _threads_table(first, console.width)]
    notes = notes_of(answers)
    if notes:
        parts.append(Text())
    parts += [Text(printable(note), style="yellow") for note in notes]
    parts += [Text(), Text(_worth(first), style="dim")]
    console.print(Group(*parts))


def notes_of(answers: Sequence[Answer]) -> list[str]:
    """Each note once; one that is not about all rows says about which."""
    notes: list[str] = []
    for note in dict.fromkeys(note for answer in answers for note in answer["notes"]):
        about = [_rules_name(it) for it in answers if note in it["notes"]]
        others = [_rules_name(it) for it in answers if note not in it["notes"]]
        is_most = len(others) < len(about)
        rows = "; ".join(others if is_most else about)
        notes.append(f"{'all rules but ' * is_most}{rows}: {note}" if others else note)
    return notes


def _title(answer: Answer, others: int) -> Text:
    command = printable(shlex.join(answer["argv"])) or f"process {answer['pid']}"
    threads = plural(len(answer["recorded"]["threads"]), "thread")
    facts = [f"pid {answer['pid']}", f"{duration(answer['recorded']['duration_s'])}", threads]
    if answer["gil"]:
        facts.append(f"GIL {answer['gil']}")
    if others:
        facts.append(f"1 of {others + 1:,} GILs (--process, --gil)")
    under = _named(answer["recorded_under"])
    return Text.assemble(
        (command, "bold"), (f"  {', '.join(facts)}, recorded under {under}", "dim")
    )


def _named(rules: Scheduling) -> str:
    policy, quantum_ms = rules["policy"], rules["quantum_ms"]
    if policy is None:
        return "no GIL"
    return policy if quantum_ms is None else f"{policy} {at_most_three_digits(quantum_ms)} ms"


def _rules_table(answers: Sequence[Answer], width: int) -> Table:
    # Otherwise all runs last as long as the recording.
    is_once = any(answer["rules"]["once"] for answer in answers)
    columns: list[Column[Told]] = [
        Column("waits", "p50", lambda it: _time(it.figures["waits"]["p50_us"]), 99),
        Column("waits", "range", lambda it: _range(it.spread), 90),
        Column("waits", "p99", lambda it: _time(it.figures["waits"]["p99_us"]), 95),
        Column(
            "after blocking", "p50", lambda it: _time(it.figures["returns"]["p50_us"]), 80, True
        ),
        Column("after blocking", "p99", lambda it: _time(it.figures["returns"]["p99_us"]), 70),
        Column("after blocking", "calls/s", lambda it: digits(_calls(it.figures)), 75),
        Column("CPU", "a second", lambda it: f"{digits(it.figures['cpu_per_s'])} s", 60, True),
        Column("GIL", "held", _held, 50, True),
        Column("", "handoffs/s", lambda it: _handoffs(it.figures) if it.has_gil else "", 30, True),
        Column("", "fairness", lambda it: _fairness(it.figures), 40),
        Column("", "lasts", lambda it: duration(it.figures["duration_s"]), 97 if is_once else 20),
    ]
    rows = [Row("recorded", Told(answers[0]["recorded"]), "bold")]
    rows += [
        Row(
            _rules_name(it),
            Told(it["predicted"], it["ranges"]["wait_p50_us"], it["rules"]["policy"] is not None),
        )
        for it in answers
    ]
    return column_table("rules", rows, columns, width, widest_name=max(width // 3, RULES_WIDTH))


def _rules_name(answer: Answer) -> str:
    rules = answer["rules"]
    words = [_named(rules)]
    if rules["cores"]:
        words.append(plural(rules["cores"], "core"))
    if rules["without"]:
        words.append(f"without {plural(len(rules['without']), 'thread')}")
    if rules["changes"]:
        words.append(f"{plural(len(rules['changes']), 'thread')} changed")
    if rules["levels"]:
        words.append("with levels")
    if rules["once"]:
        words.append("once")
    return ", ".join(words)


def _held(told: Told) -> str:
    return share(told.figures["held_share"], 1.0) if told.has_gil else ""


def _handoffs(figures: Figures) -> str:
    return digits(_per_second(figures["handoffs"], figures))


def _calls(figures: Figures) -> float:
    """From how many blocking calls a second threads come back: how much gets done."""
    return _per_second(figures["returns"]["count"], figures)


def _per_second(count: int, figures: Figures) -> float:
    seconds = figures["duration_s"]
    return count / seconds if seconds else 0.0


def _fairness(figures: Figures) -> str:
    jain = figures["jain"]
    return "" if jain is None else f"{jain:.2f}"


def _time(us: float) -> str:
    return duration(us / 1e6)


def _range(spread: Range | None) -> str:
    return "" if spread is None else f"{_time(spread['low'])}-{_time(spread['high'])}"


def _threads_table(answer: Answer, width: int) -> Table:
    recorded = {thread["tid"]: thread for thread in answer["recorded"]["threads"]}
    pairs = zip(answer["predicted"]["threads"], answer["ranges"]["threads"], strict=True)
    threads = [
        Compared(recorded[thread["tid"]], thread, ranges["waited_s"]) for thread, ranges in pairs
    ]
    threads.sort(key=lambda it: it.cost, reverse=True)
    columns: list[Column[Compared]] = [
        Column("waited", "recorded", lambda it: duration(it.before["waited_s"]), 98),
        Column("waited", "predicted", lambda it: duration(it.after["waited_s"]), 99),
        Column("waited", "range", lambda it: it.range, 70),
        *_before_and_after("wait p50", lambda it: _time(it["waits"]["p50_us"]), 90),
        *_before_and_after("after blocking", lambda it: _time(it["returns"]["p50_us"]), 80),
        *_before_and_after("held", lambda it: duration(it["held_s"]), 60),
    ]
    name_width = min(NAME_WIDTH, max(width // 3, 8))
    rows = [Row(shortened(printable(it.after["name"]), name_width), it) for it in threads[:ROWS]]
    table = column_table("thread", rows, columns, width)
    if len(threads) > ROWS:
        table.add_row(Text(f"{tally(len(threads) - ROWS)} more in the JSON", style="dim"))
    return table


def _before_and_after(
    group: str, cell: Callable[[ThreadFigures], str], keep: int
) -> list[Column[Compared]]:
    """Two columns, of which none goes without the other's telling less."""
    return [
        Column(group, "recorded", lambda it: cell(it.before), keep, begins_group=True),
        Column(group, "predicted", lambda it: cell(it.after), keep + 1),
    ]


def _is_far(one: float, other: float) -> bool:
    return max(one, other) > FAR * min(one, other)


def _worth(answer: Answer) -> str:
    """How well the simulation tells what was recorded."""
    recorded, reproduced = answer["recorded"]["waits"], answer["reproduced"]["waits"]
    under = _named(answer["recorded_under"])
    if not recorded["count"]:
        return "No thread waited for this GIL in the recording: other rules have nothing to gain."
    uses, used = (answer[which]["held_share"] for which in ("reproduced", "recorded"))
    also = ""
    if _is_far(uses, used):
        also = f" It uses the GIL for {share(uses, 1)} of the time (recorded {share(used, 1)})."
    calls, called = (_calls(answer[which]) for which in ("reproduced", "recorded"))
    if _is_far(calls, called):
        also += f" It has {digits(calls)} blocking calls a second (recorded {digits(called)})."
    return (
        f"For {under}, as recorded, the simulation gives waits of p50 "
        f"{_time(reproduced['p50_us'])} (recorded {_time(recorded['p50_us'])}) and p99 "
        f"{_time(reproduced['p99_us'])} (recorded {_time(recorded['p99_us'])}). The ranges include "
        f"that error.{also}"
    )
