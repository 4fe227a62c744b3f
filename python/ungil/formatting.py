"""Numbers, times, sizes and refusals as people read them, wherever ungil prints any.

Every number has three digits and the unit that fits. Nothing here knows what is printed, or where.
"""

from __future__ import annotations

import os
from math import isnan

TYPE_CHECKING = False  # a fan-out without typing starts sooner
if TYPE_CHECKING:
    from datetime import date, datetime

KIBIBYTE = 1 << 10
MEBIBYTE = 1 << 20


def digits(number: float, significant: int = 3) -> str:
    """`significant` digits, or all of them before the point: `5.10`, `83.0`, `999`, `12,345`."""
    for places in range(significant - 1, 0, -1):
        # What would be rounded up to one more digit before the point has one less behind it.
        if abs(number) < 10 ** (significant - places) - 0.5 * 10**-places:
            return f"{number:.{places}f}"
    return f"{number:,.0f}"


def at_most_three_digits(number: float) -> str:
    """Three digits without zeros at the end, or all of those before the point: `5.1`, `12,345`."""
    return f"{number:,.0f}" if number >= 1000 else f"{number:.3g}"


def tally(number: int) -> str:
    """A count in at most five characters: `812`, `9,999`, `12.3k`, `4.56M`."""
    if number < 10_000:
        return f"{number:,}"
    for unit, factor in (("k", 1e3), ("M", 1e6)):
        if number < factor * 999.5:
            return digits(number / factor) + unit
    return digits(number / 1e9) + "G"


def plural(number: int, noun: str) -> str:
    """`1 thread`, `2 threads`, `2 processes`."""
    if number == 1:
        return f"1 {noun}"
    return f"{number:,} {noun}{'es' if noun.endswith('s') else 's'}"


def share(part: float, whole: float) -> str:
    """`part` of `whole` in percent: `0%`, `<1%`, `37%`, `100%`."""
    if whole <= 0 or part <= 0:
        return "0%"
    percent = 100 * part / whole
    return "<1%" if percent <= 0.5 else f"{percent:.0f}%"


def rate(number: float, seconds: float) -> str:
    """How many a second."""
    return digits(number / seconds) if seconds > 0 else "0"


def size(number: int) -> str:
    """A number of bytes: `812 bytes`, `1.5 MiB`, `340 GiB`."""
    if number < KIBIBYTE:
        return plural(number, "byte")
    power = min((number.bit_length() - 1) // 10, 4)
    scaled = number / KIBIBYTE**power
    return f"{scaled:.{0 if scaled >= 100 else 1}f} {'KMGT'[power - 1]}iB"


def duration(seconds: float) -> str:
    """`0.0000042` is `4.20µs`, `0.0051` is `5.10ms`, `83` is `83.0s`; no number is no text."""
    if isnan(seconds):
        return ""
    if seconds <= 0:
        return "0"
    # Times are whole nanoseconds, or means of them. Of the product alone, 93,450 ns would be more.
    nanoseconds = round(seconds * 1e9, 3)
    for unit, factor in (("ns", 1), ("µs", 1e3), ("ms", 1e6)):
        # What would be rounded up to 1000 belongs to the next unit.
        if nanoseconds / factor < 999.5:
            return digits(nanoseconds / factor) + unit
    return digits(seconds) + "s"


def clock_duration(seconds: float) -> str:
    """A time as a clock would show it: `0.3 s`, `42 s`, `4:12`, `1:04:12`."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, seconds_left = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds_left:02}" if hours else f"{minutes}:{seconds_left:02}"


def rough_duration(seconds: float) -> str:
    """A time that is only known about: `42 s`, `12 min`."""
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


def moment(at: datetime, known_day: date | None = None) -> str:
    """`2026-01-31 12:03:41`, or `12:03:41` if that is of the day that the reader knows already."""
    return f"{at:%H:%M:%S}" if at.date() == known_day else f"{at:%Y-%m-%d %H:%M:%S}"


def printable(text: str) -> str:
    """`text` without anything that a terminal would obey: names come from other programs."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def killed_by(number: int) -> str:
    """What a signal has done: "killed by SIGKILL"; by its number if it has no name."""
    import signal  # not every start of a program needs it

    try:
        return f"killed by {signal.Signals(number).name}"
    except ValueError:
        return f"killed by signal {number}"


def end_of(status: int | None) -> str:
    """How a process ended, whose `exitcode` is `status`: "was killed by SIGKILL"."""
    if status is not None and status < 0:
        return f"was {killed_by(-status)}"
    return f"ended with status {status}"


def reason(error: OSError) -> str:
    """Why the system refused, as a person would say it: "permission denied"."""
    return native_reason(os.strerror(error.errno) if error.errno else str(error))


def native_reason(text: str) -> str:
    """The same of what Rust's std::io::Error writes: "Permission denied (os error 13)"."""
    import re  # not every start of a program needs it

    text = re.sub(r" \(os error \d+\)$", "", text)
    if text == "Bad file descriptor":
        return "the stream is closed"
    return text[:1].lower() + text[1:]
