"""What to do about a trace, in a few lines of the report, or all of it with its evidence."""

from __future__ import annotations

from rich.console import Console, Group, RenderableType
from rich.text import Text

from ungil.formatting import at_most_three_digits, digits, plural, printable
from ungil.report.model import Advice, Evidence, Finding, Gain, Report
from ungil.report.numbered import Code, Numbered
from ungil.report.repeats import the_same, with_repeats
from ungil.report.when import part_of

TOLD = 3
"""Pieces of advice that a report shows."""
MOST = 20
"""Pieces that are told with all that they rest on, and as many that gain too little."""
SAID_AGAIN = frozenset({"convoy", "hog", "unfair", "none"})
"""Findings whose own advice is a policy or processes: what is predicted says more."""
LEFT_OUT = (
    "run ungil advise FILE first: it simulates what helps against waits for the GIL, which takes "
    "longer"
)
"""Where the trace was too large to do so unasked."""
SURE = {"high": "green", "medium": "yellow", "low": "red"}
SECONDS = {"s": 1.0, "ms": 1e-3, "µs": 1e-6}
UNITS = {"s": " s", "ms": " ms", "s/s": " s/s"}
LEAST_S = 0.01
"""A shorter time is shown in a smaller unit: three digits of a second might show none of it."""


def advice_section(report: Report, most: int = TOLD) -> list[RenderableType]:
    """The best pieces of advice, each with what to type; nothing if the report has none."""
    advised = report.get("advised")
    told = with_repeats(advised["advice"]) if advised else []
    told = [(it, repeats) for it, repeats in told if it["cause"] != "unknown"]
    left_out = report.get("remedies_left_out", False)
    if not told and not left_out:
        return []
    parts = [[*_summary(advice), *_same(repeats)] for advice, repeats in told[:most]]
    rows = _numbered(parts)
    if left_out:
        # What is told without it may be the lesser part.
        rows.insert(0, Numbered(Text(), [Text(LEFT_OUT, style="yellow")], _digits(parts)))
    more = len(told) - most
    heading = Text("What to do", style="bold")
    if more > 0:
        # That command knows no parts.
        where = ": ungil advise" if part_of(report) is None else "; ungil advise covers it all"
        heading.append(f" (and {more} more{where})", style="dim")
    return [Text(), heading, *rows]


def is_repeated(finding: Finding, report: Report) -> bool:
    """Whether advice about the same GIL says what the finding's own advice does."""
    advised = report.get("advised")
    if advised is None or finding["kind"] not in SAID_AGAIN:
        return False
    place = (finding.get("pid"), finding.get("gil"))
    subjects = (it["subject"] for it in advised["advice"] if it["kind"] != "not-the-gil")
    return any((it["pid"], it["gil"]) == place for it in subjects)


def render_advice(report: Report, console: Console) -> None:
    """Draw the advice of `report` on `console`, with what each piece rests on."""
    advised = report.get("advised")
    if advised is None:
        return
    told, rejected = with_repeats(advised["advice"]), with_repeats(advised["rejected"])
    parts: list[list[Text | Code]] = []
    for advice, repeats in told[:MOST]:
        rows = [*_summary(advice), *_same(repeats), _sure(advice)]
        parts.append([*rows, *map(_evidence, advice["evidence"]), Text()])
    for numbered in _numbered(parts):
        console.print(numbered, crop=False)
    for advice, repeats in rejected[:MOST]:
        text = Text(f"no use: {printable(advice['text'])}{_with_range(advice)}", style="dim")
        console.print(Group(text, *_same(repeats)))
    left = len(told[MOST:]) + len(rejected[MOST:])
    if left:
        console.print(Text(f"and {left} more, which --json has", style="dim"))
    gils = advised.get("gils_left_out", 0)
    if gils:
        others = plural(gils, "other GIL")
        text = f"nothing was simulated for {others}, at which threads wait less"
        console.print(Text(text, style="dim"))


def _same(repeats: list[Advice]) -> list[Text]:
    """For whom else it is advised, in a line; none if for nobody."""
    same = the_same(it["subject"]["pid"] for it in repeats)
    return [Text(same, style="dim")] if same else []


def _numbered(pieces: list[list[Text | Code]]) -> list[RenderableType]:
    digits = _digits(pieces)
    return [
        Numbered(Text(f"{number}.", style="bold"), parts, digits)
        for number, parts in enumerate(pieces, 1)
    ]


def _digits(pieces: list[list[Text | Code]]) -> int:
    """The room for their numbers."""
    return len(f"{len(pieces)}.")


def _summary(advice: Advice) -> list[Text | Code]:
    text = Text(printable(advice["text"]))
    text.append(_with_range(advice), style="dim")
    typed = advice["action"]["shell"] or advice["action"]["code"] or ""
    return [text, *(Code(printable(line)) for line in typed.splitlines())]


def _with_range(advice: Advice) -> str:
    """` (56.2 to 145 µs)`: the least and the most that are predicted."""
    # Nobody waits for a GIL that there is not: the sentence says 0, and a range of 0 says no more.
    if advice["gain"] is None or advice["gain"]["high"] <= 0:
        return ""
    # Nor is there a sentence with what the range is of.
    if advice["kind"] == "free-threaded" and advice["gain"]["measure"] != "duration":
        return ""
    return f" ({_range(advice['gain'])})"


def _range(gain: Gain) -> str:
    """The range, each end as a sentence says a length; a unit that both have is said once."""
    seconds = 1e-3 if gain["unit"] == "ms" else 1.0
    after = " per second" if gain["unit"] == "s/s" else ""
    low, high = (gain[end] * seconds for end in ("low", "high"))
    of_high = _unit(high)
    of_low = _unit(low) if low > 0 else of_high
    said = at_most_three_digits(low / SECONDS[of_low])
    said += f" {of_low}" if of_low != of_high else ""
    return f"{said} to {at_most_three_digits(high / SECONDS[of_high])} {of_high}{after}"


def _unit(seconds: float) -> str:
    """The largest unit of which it is one at least."""
    return next((unit for unit, length in SECONDS.items() if seconds >= length), "µs")


def _sure(advice: Advice) -> Text:
    confidence = advice["confidence"]
    style = SURE.get(confidence["level"], "")
    return Text.assemble(
        (f"{confidence['level']} confidence: ", style), (printable(confidence["because"]), "dim")
    )


def _evidence(evidence: Evidence) -> Text:
    value, unit = evidence["value"], evidence["unit"]
    match unit:
        case "share":
            shown = f"{value:.0%}"
        case "count":
            shown = f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"
        case "s" if 0 < value < LEAST_S:
            shown = f"{digits(value * 1e3)} ms" if value >= 1e-3 else f"{digits(value * 1e6)} µs"
        case _:
            shown = f"{digits(value)}{UNITS[unit]}"
    return Text(f"- {printable(evidence['what'])}: {shown}", style="dim")
