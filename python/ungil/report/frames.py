"""How frames are told: by their function, and by as much of their file as tells which it is."""

from __future__ import annotations

import re
from pathlib import PurePath

from ungil.formatting import printable


def short_frame(frame: str) -> str:
    """`parse (/long/way/app/parser.py:12)` as `parse (app/parser.py:12)`, with nothing unprintable.

    A frame without a file and a line stays as it is.
    """
    frame = printable(frame)
    match = re.fullmatch(r"(.*?) \((/.+):(\d+)\)", frame)
    if match is None:
        return frame
    function, file, line = match.groups()
    return f"{function} ({'/'.join(PurePath(file).parts[-2:]).lstrip('/')}:{line})"
