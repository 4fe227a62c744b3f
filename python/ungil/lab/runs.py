"""A run: the cells of a plan, one after the other, each saved as soon as it is measured.

A cell that an earlier run has measured is not measured again. One that failed is, and one for which
the machine lacked something if the user says that it is there now. Where others take much of the
machine meanwhile, a full run measures a cell again, some times, and keeps the least disturbed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Protocol

from ungil.errors import UsageError
from ungil.lab.disturbance import reading
from ungil.lab.experiment import Cell, CellFailed, Missing
from ungil.lab.results import BadResults, Header, Result, Results, Status, load, now

# A share of the machine's cores: what was measured while others took more is not to be trusted.
MOST_OTHERS = 0.1
# Of a cell that others disturb; a machine that is never quiet is to be measured, too.
REPETITIONS = 2


class Watcher(Protocol):
    """Shows how far a run is."""

    def begin(self, cell: Cell, left_s: float) -> None:
        """A cell begins; with it, about `left_s` seconds are left."""

    def end(self, cell: Cell, result: Result) -> None:
        """It ended."""


class Run:
    """Results in a file, and the cells that are still to be measured."""

    def __init__(
        self,
        path: Path,
        header: Header,
        cells: Sequence[Cell],
        *,
        fresh: bool,
        retry: bool = False,
        named: bool,
    ) -> None:
        """Take what the file at `path` has of these cells.

        `fresh` begins anew; `retry` tries again what could not be measured for want of something.
        `named` says that the user chose the file, which is then not replaced
        unless it holds results like these. UsageError if it does not, or cannot be read or written.
        """
        self.path = path
        self.cells = cells
        self.replaced = ""
        """Why the results that were there are not continued, if that is so."""
        self.results = Results(header)
        if path.exists() and not fresh:
            self._continue(header, named)
        used = {cell.interpreter.name: cell.interpreter for cell in cells if cell.interpreter}
        self.results.use([asdict(interpreter) for interpreter in used.values()])
        keys = {_key(cell) for cell in cells}
        known = [result for result in self.results if result.key in keys]
        done = {result.key for result in known if result.status == "measured"}
        lacking = {result.key for result in known if result.status == "missing"}
        self.repeated = 0
        """How many measurements were repeated because others took too much of the machine."""
        known_now = done if retry else done | lacking
        self.left = [cell for cell in cells if _key(cell) not in known_now]
        self.resumed = len(done)
        """How many cells an earlier run has measured."""
        self.lacking = 0 if retry else len(lacking)
        """How many it could not measure, because something was not there."""
        self._save()

    @property
    def left_s(self) -> float:
        """About how long the cells that are left will take."""
        return sum(cell.seconds for cell in self.left)

    def finish(self, watcher: Watcher) -> Results:
        """Measure what is left; the results of this run's cells, in the order of the plan."""
        left_s = self.left_s
        for cell in self.left:
            watcher.begin(cell, left_s)
            result = self._measure(cell)
            self.results.add(result)
            self._save()
            left_s -= cell.seconds
            watcher.end(cell, result)
        return self.results.only([_key(cell) for cell in self.cells])

    def _measure(self, cell: Cell) -> Result:
        """What becomes of a cell; in a full run the least disturbed of some tries."""
        best = _measure_once(cell)
        for _ in range(0 if self.results.header.quick else REPETITIONS):
            if best.status != "measured" or best.others <= MOST_OTHERS:
                break
            self.repeated += 1
            again = _measure_once(cell)
            if again.status == "measured" and again.others < best.others:
                best = again
        return best

    def _continue(self, header: Header, named: bool) -> None:
        """Take the results of the file, if they are of this machine, ungil and size."""
        try:
            earlier = load(self.path)
            differs = _difference(header, earlier.header)
            problem = differs and f"{str(self.path)!r} holds results of {differs}"
        except BadResults as error:
            problem = str(error)
        except OSError as error:
            raise UsageError(f"cannot read {str(self.path)!r}: {error.strerror}") from error
        else:
            if not problem:
                self.results = earlier
                return
        if named:
            raise UsageError(f"{problem}; name another file, or replace it with --fresh")
        self.replaced = problem

    def _save(self) -> None:
        try:
            self.results.save(self.path)
        except OSError as error:
            why = (error.strerror or str(error)).lower()
            raise UsageError(
                f"cannot save results to {str(self.path)!r}: {why}; what was saved before is kept"
            ) from error


def _difference(header: Header, earlier: Header) -> str:
    """What sets earlier results apart from ours, "" if nothing does."""
    if earlier.ungil != header.ungil:
        return f"ungil {earlier.ungil}"
    if earlier.quick != header.quick:
        return "a quick run" if earlier.quick else "a full run"
    for what, value in header.machine.items():
        if earlier.machine.get(what) != value:
            return f"another machine ({what} {earlier.machine.get(what)}, here {value})"
    return ""


def _measure_once(cell: Cell) -> Result:
    """What becomes of a cell."""
    before, at = reading(), now()
    measured: dict[str, Any] = {}
    status: Status = "measured"
    why: str | None = None
    try:
        measured = cell.measure()
    except Missing as error:
        status, why = "missing", str(error)
    except CellFailed as error:
        status, why = "failed", str(error)
    after = reading()
    took_s = round(after.at_s - before.at_s, 3)
    others = round(after.others_since(before), 3)
    return Result(*_identity(cell), status, measured, why, took_s, others, at)


def _identity(cell: Cell) -> tuple[str, str, str, int, dict[str, Any]]:
    return (cell.experiment, cell.python, cell.variant, cell.round, dict(cell.settings))


def _key(cell: Cell) -> str:
    return Result(*_identity(cell), "missing", {}, None, 0.0, 0.0, "").key
