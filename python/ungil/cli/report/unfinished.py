"""Finding a trace that never got its name, because its recorder was killed or is still at work."""

from __future__ import annotations

from pathlib import Path

from ungil._native import unfinished_traces
from ungil.cli.streams import say


def readable(file: str) -> str:
    """`file`, or if that is missing the latest of the unfinished traces that were to be called so.

    Their names are hidden ones, so a sentence on stderr says what is read, and what is not.
    """
    unfinished = unfinished_traces(file)
    # Those that are being recorded will have a name in the end.
    dead = [path for path, is_recorded in unfinished if not is_recorded]
    if not unfinished or Path(file).exists():
        found = file
    else:
        found = unfinished[0][0]
        say(f"there is no {file!r}; this is the unfinished {found!r}")
    others = ", ".join(repr(path) for path in dead if path != found)
    if others:
        say(f"killed recorders also left: {others}")
    return found
