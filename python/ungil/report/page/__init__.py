"""The page of a trace: one file that a browser shows without a network.

`page.html` beside this is the page without data; `make page` builds it from `web/`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ungil._native import write_page

SHELL = Path(__file__).with_name("page.html")


def write(
    trace: str,
    page: str,
    blame_after_ms: float,
    part: tuple[int, int] | None = None,
    progress: Callable[[int], object] | None = None,
    *,
    advise: bool = False,
    simulate: bool = True,
    most_bytes: int | None = None,
) -> str:
    """Write the page of a trace file, or of a part of it, and return its report as JSON.

    A part is two moments in nanoseconds of CLOCK_MONOTONIC. `progress` is called now and then with
    the number of records read so far. With `advise`, page and report say what to do about it, and
    unless they may `simulate` only as far as that needs no simulation. A page has 20 MB at most, or
    `most_bytes` if that is less. Raises ValueError, in one sentence, for a file that is no trace,
    OSError if the trace cannot be read or, with `filename`, the page not written.
    """
    shell = SHELL.read_text(encoding="utf-8")
    return write_page(
        trace,
        page,
        shell,
        blame_after_ms,
        part,
        progress,
        advise=advise,
        simulate=simulate,
        most_bytes=most_bytes,
    )
