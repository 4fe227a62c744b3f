"""How far a run is, on stderr: a bar on a terminal, otherwise a line for each experiment."""

from __future__ import annotations

import sys
import time
from collections.abc import Generator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from ungil.formatting import rough_duration
from ungil.lab.experiment import Cell
from ungil.lab.results import Result
from ungil.lab.runs import Run, Watcher


class _Bar:
    """A bar that counts cells, with what runs and how long it will take."""

    def __init__(self, progress: Progress, task: TaskID) -> None:
        self._progress = progress
        self._task = task

    def begin(self, cell: Cell, left_s: float) -> None:
        about = f"{cell}, {rough_duration(left_s)} left"
        self._progress.update(self._task, description=about)
        # Drawn now and not from a thread, which would compute beside what is measured.
        self._progress.refresh()

    def end(self, cell: Cell, result: Result) -> None:
        self._progress.advance(self._task)


class _Lines:
    """A line when another experiment or interpreter begins."""

    def __init__(self) -> None:
        self._last = ""

    def begin(self, cell: Cell, left_s: float) -> None:
        where = f"{cell.experiment} on {cell.python}" if cell.python else cell.experiment
        if where != self._last:
            self._last = where
            print(f"{where}, {rough_duration(left_s)} left", file=sys.stderr, flush=True)

    def end(self, cell: Cell, result: Result) -> None:
        pass


@contextmanager
def watching(run: Run) -> Generator[Watcher]:
    """Say what will be done and how long that takes, then show it."""
    if run.replaced:
        _say(f"{run.replaced}; beginning anew")
    if run.resumed:
        _say(
            f"{run.resumed} of {len(run.cells)} cells were measured before ({run.path}); "
            "--fresh measures them again"
        )
    if run.lacking:
        _say(
            f"{run.lacking} could not be measured then, for the reasons below; --retry tries them "
            "again"
        )
    if not run.left:
        yield _Lines()
        return
    begun_s = time.monotonic()
    if sys.stderr.isatty():
        columns = (BarColumn(20), TextColumn("{task.completed}/{task.total} {task.description}"))
        console = Console(file=sys.stderr)
        with Progress(*columns, console=console, transient=True, auto_refresh=False) as progress:
            yield _Bar(progress, progress.add_task("", total=len(run.left)))
    else:
        yield _Lines()
    again = f", {run.repeated} times again because others were at work" if run.repeated else ""
    took = rough_duration(time.monotonic() - begun_s)
    _say(f"{len(run.left)} cells in {took}{again}, kept in {run.path}")


def _say(sentence: str) -> None:
    print(f"ungil lab: {sentence}", file=sys.stderr, flush=True)
