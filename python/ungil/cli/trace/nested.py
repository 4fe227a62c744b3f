"""A recording inside of another one: each program is recorded by the innermost."""

from __future__ import annotations

import os
from pathlib import Path

from ungil.cli.program import Program
from ungil.cli.streams import say
from ungil.environment import SESSION


def warn_if_recorded(program: Program) -> None:
    """Say on stderr that another ungil, which records this one, will not see `program`."""
    folder = os.environ.get(SESSION)
    # The folder is gone when its recorder is.
    if folder and Path(folder).is_dir():
        say(
            f"another ungil records this one, and will not see {program.name!r} and what that "
            "starts: only this one records them"
        )
