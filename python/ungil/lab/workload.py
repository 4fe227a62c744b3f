"""Running a workload: a program of `workloads/`, which prints JSON, a line at a time."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from ungil.interpreters import Interpreter
from ungil.lab.conditions import STOCK, Conditions
from ungil.lab.experiment import CellFailed, Measured

FOLDER = Path(__file__).parent / "workloads"
# Far more than a workload takes on the slowest machine: what takes longer hangs.
PATIENCE_S = 600.0


class RunningWorkload:
    """A workload that runs."""

    def __init__(self, process: subprocess.Popen[bytes], errors: IO[bytes], end_s: float) -> None:
        """Of a process just started, which has until `end_s` on the monotonic clock."""
        assert process.stdout is not None
        self.pid = process.pid
        self._process = process
        self._errors = errors
        self._end_s = end_s
        self._output = process.stdout.fileno()
        self._unread = b""

    def says(self) -> Measured:
        """The next line of JSON; CellFailed if there is none."""
        while b"\n" not in self._unread:
            left_s = self._end_s - time.monotonic()
            if left_s <= 0 or not select.select([self._output], [], [], left_s)[0]:
                raise CellFailed("the workload did not end in time and was killed")
            part = os.read(self._output, 1 << 16)
            if not part:
                raise CellFailed(self._why_it_ended())
            self._unread += part
        line, _, self._unread = self._unread.partition(b"\n")
        try:
            return json.loads(line)
        except ValueError as error:
            raise CellFailed(f"the workload printed {line[:80]!r}") from error

    def interrupt(self) -> None:
        """Send it what Ctrl-C sends."""
        self._process.send_signal(signal.SIGINT)

    def result(self) -> Measured:
        """The line of JSON that it ends with; CellFailed if it ends badly."""
        last = self.says()
        try:
            status = self._process.wait(max(0.0, self._end_s - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise CellFailed("the workload did not end in time and was killed") from None
        if status != 0:
            raise CellFailed(self._why_it_ended())
        return last

    def _why_it_ended(self) -> str:
        """In a sentence, with the last thing it said on stderr."""
        status = self._process.wait()
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        how = f"signal {-status}" if status < 0 else f"status {status}"
        return f"the workload ended with {how}" + (f": {lines[-1]}" if lines else "")


@contextmanager
def running(
    words: Sequence[object],
    conditions: Conditions = STOCK,
    *,
    extra: Mapping[str, str] | None = None,
    patience_s: float = PATIENCE_S,
) -> Generator[RunningWorkload]:
    """Run a command; whatever is left of it at the end is killed. CellFailed if it cannot start.

    `extra` are variables besides those of `conditions`.
    """
    with tempfile.TemporaryFile() as errors, conditions.placed():
        try:
            # A session of its own: Ctrl-C is for ungil, which then ends all of it.
            process = subprocess.Popen(
                [str(word) for word in words],
                env={**conditions.environment(), **(extra or {})},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
            )
        except OSError as error:
            raise CellFailed(f"cannot start {words[0]}: {error}") from error
        with process:
            try:
                yield RunningWorkload(process, errors, time.monotonic() + patience_s)
            finally:
                if process.poll() is None:
                    with suppress(ProcessLookupError):
                        os.killpg(process.pid, signal.SIGKILL)


def words_of(interpreter: Interpreter, workload: str, *arguments: object) -> list[object]:
    """The command line of a workload."""
    return [interpreter.path, FOLDER / f"{workload}.py", *arguments]


def run(
    interpreter: Interpreter,
    workload: str,
    *arguments: object,
    conditions: Conditions = STOCK,
    extra: Mapping[str, str] | None = None,
    patience_s: float = PATIENCE_S,
) -> dict[str, Any]:
    """What a workload says that prints one line. Raises Missing, CellFailed."""
    conditions.check(interpreter)
    words = words_of(interpreter, workload, *arguments)
    with running(words, conditions, extra=extra, patience_s=patience_s) as program:
        return program.result()
