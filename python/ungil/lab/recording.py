"""Recording the GIL of a workload, as `ungil trace` does."""

from __future__ import annotations

import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from ungil.lab.conditions import STOCK, Conditions
from ungil.lab.experiment import CellFailed, Missing
from ungil.lab.interpreters import Interpreter
from ungil.report.model import Process, Report, parse

# What `ungil trace` calls a long hold.
BLAME_AFTER_MS = 20.0


class Recording:
    """A recorder, and the variables with which a workload has to be started for it."""

    def __init__(self, interpreter: Interpreter, conditions: Conditions, folder: Path) -> None:
        from ungil._native import Recorder

        self.trace = folder / "lab.pftrace"
        """The trace file after `stop`, as long as the context lasts."""
        self._python = interpreter.path
        self._recorder = Recorder(
            str(self.trace), overwrite=False, blame_after_ms=BLAME_AFTER_MS, follow_children=False
        )
        ours = conditions.environment()
        names = [name for name in ours if name == "LD_PRELOAD" or name.startswith("UNGIL_")]
        try:
            self.variables = self._recorder.environment({name: ours[name] for name in names})
        except ValueError as error:
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
