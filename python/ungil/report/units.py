"""Numbers as people read them: three digits, the unit that fits, a share of a whole."""

from __future__ import annotations

from math import isnan


def duration(seconds: float) -> str:
    """`0.0000042` is `4.20µs`, `0.0051` is `5.10ms`, `83` is `83.0s`; no number is no text."""
    if isnan(seconds):
        return ""
    if seconds <= 0:
        return "0"
    for unit, factor in (("ns", 1e9), ("µs", 1e6), ("ms", 1e3)):
        # What would be rounded up to 1000 belongs to the next unit.
        if seconds * factor < 999.5:
            return digits(seconds * factor) + unit
    return digits(seconds) + "s"


def digits(number: float) -> str:
    """Three digits, or all of them before the point: `5.10`, `83.0`, `999`, `12,345`."""
    if number < 9.995:
        return f"{number:.2f}"
    if number < 99.95:
        return f"{number:.1f}"
    return f"{number:,.0f}"


def share(part: float, whole: float) -> str:
    """`part` of `whole` in percent: `0%`, `<1%`, `37%`, `100%`."""
    if whole <= 0 or part <= 0:
        return "0%"
    percent = 100 * part / whole
    return "<1%" if percent < 0.5 else f"{percent:.0f}%"


def tally(number: int) -> str:
    """A count in at most five characters: `812`, `9,999`, `12.3k`, `4.56M`."""
    if number < 10_000:
        return f"{number:,}"
    for unit, factor in (("k", 1e3), ("M", 1e6)):
        if number < factor * 999.5:
            return digits(number / factor) + unit
    return digits(number / 1e9) + "G"


def rate(number: float, seconds: float) -> str:
    """How many a second."""
    return digits(number / seconds) if seconds > 0 else "0"


def plural(number: int, noun: str) -> str:
    """`1 thread`, `2 threads`, `2 processes`."""
    if number == 1:
        return f"1 {noun}"
    return f"{number:,} {noun}{'es' if noun.endswith('s') else 's'}"


def plain(text: str) -> str:
    """`text` without anything that a terminal would obey: names come from traced programs."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
