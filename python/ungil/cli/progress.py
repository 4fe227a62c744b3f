"""How far long work has come, on stderr, and only if that is a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager


@contextmanager
def progress(what: str, total: int) -> Generator[Callable[[], None]]:
    """A function to call, from any thread, whenever one more of `total` is done."""
    if not sys.stderr.isatty():
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task(what, total=total)
        yield lambda: shown.advance(task)


@contextmanager
def working(what: str) -> Generator[None]:
    """Shows that something goes on of which nobody knows how long it will take."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(what):
        yield
