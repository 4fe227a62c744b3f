"""Reading traces that have no end or no name, because the recorder was killed or is still at work.

Or that are none.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from ungil._native import unfinished_traces
from ungil.cli.streams import say
from ungil.errors import UsageError
from ungil.formatting import reason


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


@contextmanager
def blamed(file: str) -> Generator[None]:
    """A failure inside is one to read `file`, and a mistake of the user, who named it."""
    try:
        yield
    except ValueError as error:
        raise UsageError(f"cannot read {file!r}: {error}") from error
    except OSError as error:
        raise UsageError(f"cannot read {file!r}: {reason(error)}") from error


def say_cut(note: str | None) -> None:
    """Say the note of a report about a trace that was cut off, if there is one."""
    if note is not None:
        say(note)
