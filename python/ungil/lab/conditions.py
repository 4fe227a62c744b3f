"""Under what a workload runs: how its GIL is scheduled, and on how many cores."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache

from ungil.environment import CHILDREN, POLICY, PREFIX, PRELOAD, PRIORITY, STARTUP
from ungil.interpreters import Interpreter
from ungil.lab.experiment import CellFailed, Missing

# Two threads that wait, for it is the second one that makes ungil schedule.
_WAITS = """\
import sys, threading
thread = threading.Thread(target=sys.stdin.read)
thread.start()
sys.stdout.write("ready\\n")
sys.stdout.flush()
thread.join()
"""


@dataclass(frozen=True)
class Conditions:
    """Under what a workload runs."""

    policy: str | None = None
    """A policy of ungil's; None leaves the GIL to CPython, without the hook."""
    cores: int | None = None
    """So many of those that ungil may use, the first ones; None is all."""
    levels: tuple[str, ...] = ()
    """Of threads by their names, as `ungil run --priority` takes them."""

    def on(self, cores: int) -> Conditions:
        """The same on so many cores."""
        return replace(self, cores=cores)

    def check(self, interpreter: Interpreter) -> None:
        """Missing if `interpreter` cannot run like this here, CellFailed if it should but does not.

        A library that the loader cannot preload is a warning of the loader's, no more, so whether
        the policy is obeyed is found out once for each interpreter.
        """
        if self.cores is not None and self.cores > len(os.sched_getaffinity(0)):
            raise Missing(f"this machine lets us use fewer than {self.cores} cores")
        if self.policy is not None:
            if interpreter.not_scheduled is not None:
                raise Missing(interpreter.not_scheduled)
            found = _policy_of(interpreter.path, self.policy)
            if found != self.policy:
                raise CellFailed(f"it runs under {found!r} although {self.policy!r} was asked for")

    def environment(self) -> dict[str, str]:
        """Variables for a workload: ours without what would change how a Python runs."""
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith((PREFIX, "PYTHON"))
        }
        # What a workload imports beside it belongs to this package, where ungil may be installed.
        kept["PYTHONDONTWRITEBYTECODE"] = "1"
        if self.policy is None:
            return kept
        from ungil._native import preload_value

        try:
            preload = preload_value(os.environ.get(PRELOAD))
        except ValueError as error:
            raise Missing(str(error)) from error
        if self.levels:
            kept |= {PRIORITY: "\n".join(self.levels), "PYTHONPATH": STARTUP}
        return {**kept, PRELOAD: preload, POLICY: self.policy, CHILDREN: "0"}

    @contextmanager
    def placed(self) -> Generator[None]:
        """What the calling thread starts meanwhile runs on our cores only."""
        ours = os.sched_getaffinity(0)
        if self.cores is None or self.cores >= len(ours):
            yield
            return
        os.sched_setaffinity(0, sorted(ours)[: self.cores])
        try:
            yield
        finally:
            os.sched_setaffinity(0, ours)


STOCK = Conditions()


@cache
def _policy_of(python: str, policy: str) -> str:
    """Under which policy a program of two threads runs that was started under `policy`."""
    from ungil._native import process_policy

    with subprocess.Popen(
        [python, "-c", _WAITS],
        env=Conditions(policy).environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        assert process.stdout is not None
        if not process.stdout.readline():
            return "none, for it does not start with the hook"
        try:
            return process_policy(process.pid)[0]
        except RuntimeError as error:
            return str(error)
