"""The ways to schedule the GIL that are compared: CPython's own, other switch intervals, policies.

`sys.setswitchinterval` is the peer that everybody has. Its default is 5 ms, which is `stock`.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from sampling import Failed

from ungil import _native

FOLDER = Path(__file__).parent / "programs"
# In the order of their numbers in `ungil_policy_v1`.
POLICIES = ["stock", "interactive", "fair", "batch", "priority"]


@dataclass(frozen=True)
class Variant:
    """One way to schedule."""

    name: str
    interval_s: float | None = None
    """The switch interval, if it is not CPython's own."""
    policy: str | None = None
    """A policy of ungil's, if there is one."""
    slices: str | None = None
    """Its `UNGIL_SLICE`, if it has one."""
    standby: bool = False
    """Whether the hook is there and sleeps."""

    def environment(self) -> dict[str, str]:
        """Of a program that is to run this way."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("UNGIL_")}
        if self.standby:
            return {**kept, "LD_PRELOAD": str(_native.preload_value(None)), "UNGIL_STANDBY": "1"}
        if self.policy is None:
            return kept
        hook = {"LD_PRELOAD": str(_native.preload_value(None)), "UNGIL_POLICY": self.policy}
        slices = {} if self.slices is None else {"UNGIL_SLICE": self.slices}
        return {**kept, **hook, **slices, "UNGIL_CHILDREN": "0"}


STOCK = Variant("stock")
INTERVALS = [
    Variant("interval 0.5 ms", interval_s=5e-4),
    Variant("interval 50 us", interval_s=5e-5),
]
# The same a second time: as much as it differs is noise.
BARE_AGAIN = Variant("bare again")
STANDBY = Variant("standby", standby=True)
INTERACTIVE, FAIR, BATCH, PRIORITY = (Variant(name, policy=name) for name in POLICIES[1:])


class Program:
    """A program under test that runs and says, a line of JSON at a time, what it has to say."""

    def __init__(self, process: "subprocess.Popen[str]", lines: IO[str]) -> None:
        """Of a process that was just started."""
        self._process = process
        self._lines = lines

    @property
    def pid(self) -> int:
        """The number of its process."""
        return self._process.pid

    def says(self) -> dict[str, Any]:
        """The next line."""
        line = self._lines.readline()
        if not line:
            raise Failed(f"{self._process.args} ended with status {self._process.wait()}")
        return json.loads(line)

    def end(self) -> None:
        """Close its standard input, for which some wait."""
        assert self._process.stdin is not None
        self._process.stdin.close()


@contextmanager
def running(
    variant: Variant, python: str, program: str, arguments: Sequence[object]
) -> Iterator[Program]:
    """Run a program of bench/programs under `variant`, and kill it if it is not over at the end."""
    words = [python, str(FOLDER / f"{program}.py"), *map(str, arguments)]
    if variant.interval_s is not None:
        words += ["--interval", str(variant.interval_s)]
    with subprocess.Popen(
        words,
        env=variant.environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        try:
            yield Program(process, process.stdout)
            process.wait(timeout=10)
        finally:
            process.kill()


def result(variant: Variant, program: Program) -> dict[str, Any]:
    """The last line of `program`, which must have run as it was told to.

    A library that cannot be preloaded is a warning of the dynamic linker's, no more.
    """
    said = program.says()
    if POLICIES[said["policy"]] != (variant.policy or "stock"):
        raise Failed(f"{variant.name}: ran under {POLICIES[said['policy']]}")
    return said


def run(variant: Variant, python: str, program: str, arguments: Sequence[object]) -> dict[str, Any]:
    """Run a program of bench/programs that says only what came out."""
    with running(variant, python, program, arguments) as started:
        return result(variant, started)


def client(program: str, arguments: Sequence[object]) -> dict[str, Any]:
    """What a load generator of bench/programs measured. It runs on this interpreter, as it is."""
    with running(STOCK, sys.executable, program, arguments) as started:
        return started.says()
