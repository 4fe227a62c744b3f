"""Recording the GIL of a workload, as `ungil trace` does."""

from __future__ import annotations

import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from ungil.errors import HookError
from ungil.interpreters import Interpreter
from ungil.lab.conditions import STOCK, Conditions
from ungil.lab.experiment import CellFailed, Missing
from ungil.recorder import new_recorder, recorded
from ungil.report.model import Process, Report, parse


class Recording:
    """A recorder, and the variables with which a workload has to be started for it."""

    def __init__(self, interpreter: Interpreter, conditions: Conditions, folder: Path) -> None:
        self.trace = folder / "lab.pftrace"
        """The trace file after `stop`, as long as the context lasts."""
        self._python = interpreter.path
        try:
            self._recorder = new_recorder(str(self.trace), follow_children=False)
            self.variables = recorded(self._recorder, conditions.environment())
        except HookError as error:
            raise Missing(str(error)) from error

    def start(self) -> None:
        """Record from now on; what a workload has done already waits in its rings."""
        self._recorder.start(self._python)

    def stop(self) -> tuple[Process, Report]:
        """The report, and the process in it; CellFailed if the workload was not recorded."""
        report = parse(self._recorder.stop())
        for process in report["processes"]:
            if process["gils"]:
                return process, report
            if why := process.get("not_recorded"):
                raise CellFailed(why)
        raise CellFailed("the recorder has seen no GIL")


@contextmanager
def recording(interpreter: Interpreter, conditions: Conditions = STOCK) -> Generator[Recording]:
    """What is needed to record a workload. Missing if the interpreter cannot be recorded."""
    if interpreter.free_threaded:
        raise Missing("a free-threaded interpreter has no GIL to record")
    if interpreter.not_recorded is not None:
        raise Missing(interpreter.not_recorded)
    with tempfile.TemporaryDirectory(prefix="ungil-lab-") as folder:
        yield Recording(interpreter, conditions, Path(folder))
