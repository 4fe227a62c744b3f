"""Which traces are before and which are after."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ungil.cli.report.unfinished import readable
from ungil.errors import UsageError

BETWEEN = "--"
SUFFIX = ".pftrace"


def sides(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """The traces of both sides. A folder stands for all traces in it.

    Raises UsageError where it is not clear which are which.
    """
    if BETWEEN in words:
        at = words.index(BETWEEN)
        before, after = words[:at], words[at + 1 :]
        if BETWEEN in after:
            raise UsageError("there are two sides: -- may appear once, between them")
    elif len(words) == 2:
        before, after = words[:1], words[1:]
    elif len(words) < 2:
        raise UsageError("ungil compares two sides: ungil diff BEFORE AFTER")
    else:
        raise UsageError(
            f"{len(words)} traces: put -- where the second side begins, as in"
            " ungil diff BEFORE... -- AFTER..."
        )
    if not before or not after:
        raise UsageError(f"there is no trace {'before' if not before else 'after'} --")
    return _traces(before), _traces(after)


def _traces(words: Sequence[str]) -> list[str]:
    traces: list[str] = []
    for word in words:
        folder = Path(word)
        if not folder.is_dir():
            traces.append(readable(word))
            continue
        found = sorted(str(path) for path in folder.glob(f"*{SUFFIX}") if path.is_file())
        if not found:
            raise UsageError(f"there is no trace (*{SUFFIX}) in the folder {word!r}")
        traces += found
    return traces
