"""Predictions on a screen: a table of rules, or of the threads under one."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from typing import TextIO

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from ungil.cli.simulate.answer import Answer, Figures, Range, Scheduling, ThreadFigures
from ungil.console import page_console
from ungil.formatting import at_most_three_digits, digits, duration, plural, printable, share, tally

ROWS = 20
NAME_WIDTH = 28


def print_answers(answers: Sequence[Answer], others: int, file: TextIO) -> None:
    """Show `answers`, of one GIL, on `file`; `others` are the GILs that were not asked about."""
    console = page_console(file)
    with console.capture() as capture:
        _render(answers, others, console)
    encoding = file.encoding or "utf-8"
    text = re.sub(r" +$", "", capture.get(), flags=re.MULTILINE)
    file.write(text.encode(encoding, "replace").decode(encoding))
    file.flush()


def _render(answers: Sequence[Answer], others: int, console: Console) -> None:
    first = answers[0]
    parts: list[RenderableType] = [_title(first, others), Text()]
    parts.append(_rules_table(answers))
    if len(answers) == 1:
        parts += [Text(), _threads_table(first)]
    notes = dict.fromkeys(note for answer in answers for note in answer["notes"])
    if notes:
        parts.append(Text())
    parts += [Text(printable(note), style="yellow") for note in notes]
    parts += [Text(), Text(_worth(first), style="dim")]
    console.print(Group(*parts))


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


def _rules_table(answers: Sequence[Answer]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    table.add_column("\nrules", no_wrap=True)
    heads = ("waits\np50", "\nrange", "\np99", "after blocking\np50", "\np99")
    for head in (*heads, "CPU\na second", "GIL\nheld", "\nhandoffs/s", "\nfairness", "\nlasts"):
        table.add_column(head, justify="right", no_wrap=True)
    recorded = answers[0]["recorded"]
    table.add_row("recorded", *_cells(recorded, None), style="bold")
    for answer in answers:
        cells = _cells(answer["predicted"], answer["ranges"]["wait_p50_us"])
        table.add_row(_rules_name(answer), *cells)
    return table


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


def _cells(figures: Figures, spread: Range | None) -> list[str]:
    waits, returns, jain = figures["waits"], figures["returns"], figures["jain"]
    seconds = figures["duration_s"]
    return [
        _time(waits["p50_us"]),
        "" if spread is None else _range(spread),
        _time(waits["p99_us"]),
        _time(returns["p50_us"]),
        _time(returns["p99_us"]),
        f"{digits(figures['cpu_per_s'])} s",
        share(figures["held_share"], 1.0),
        digits(figures["handoffs"] / seconds) if seconds else "",
        "" if jain is None else f"{jain:.2f}",
        duration(seconds),
    ]


def _time(us: float) -> str:
    return duration(us / 1e6)


def _range(spread: Range) -> str:
    return f"{_time(spread['low'])}-{_time(spread['high'])}"


def _threads_table(answer: Answer) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    table.add_column("\nthread", no_wrap=True, max_width=NAME_WIDTH)
    heads = ("waited\nrecorded", "\npredicted", "\nrange", "wait p50\nrecorded", "\npredicted")
    for head in (
        *heads,
        "after blocking\nrecorded",
        "\npredicted",
        "held\nrecorded",
        "\npredicted",
    ):
        table.add_column(head, justify="right", no_wrap=True)
    recorded = {thread["tid"]: thread for thread in answer["recorded"]["threads"]}
    pairs = list(zip(answer["predicted"]["threads"], answer["ranges"]["threads"], strict=True))

    def cost(thread: ThreadFigures) -> float:
        return max(thread["waited_s"], recorded[thread["tid"]]["waited_s"]) + thread["held_s"]

    pairs.sort(key=lambda pair: cost(pair[0]), reverse=True)
    for thread, ranges in pairs[:ROWS]:
        before = recorded[thread["tid"]]
        spread = ranges["waited_s"]
        table.add_row(
            Text(printable(thread["name"])),
            duration(before["waited_s"]),
            duration(thread["waited_s"]),
            f"{duration(spread['low'])}-{duration(spread['high'])}",
            _time(before["waits"]["p50_us"]),
            _time(thread["waits"]["p50_us"]),
            _time(before["returns"]["p50_us"]),
            _time(thread["returns"]["p50_us"]),
            duration(before["held_s"]),
            duration(thread["held_s"]),
        )
    if len(pairs) > ROWS:
        table.add_row(Text(f"{tally(len(pairs) - ROWS)} more in the JSON", style="dim"))
    return table


def _worth(answer: Answer) -> str:
    """How well the simulation tells what was recorded."""
    recorded, reproduced = answer["recorded"]["waits"], answer["reproduced"]["waits"]
    under = _named(answer["recorded_under"])
    return (
        f"For {under}, as recorded, the simulation gives waits of p50 "
        f"{_time(reproduced['p50_us'])} (recorded {_time(recorded['p50_us'])}) and p99 "
        f"{_time(reproduced['p99_us'])} (recorded {_time(recorded['p99_us'])}). The ranges include "
        "that error."
    )
