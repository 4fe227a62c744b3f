"""Runs a program of the gallery as it is, beside what measures it, and reads what it did.

What measures is a process of its own, or the program itself where only that can know (a timer of a
window). It prints three lines: that the measured time begins, that it ends, and the result
(`cases/programs/says.py`). How much the program computed stands in a file that both map
(`cases/programs/computing.py`); the processor time of its processes is the kernel's.
"""

import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from socket import create_server
from typing import IO, Any

import psutil
from interleaving import Measured
from peers import INTERVALS, POLICIES, STOCK, Variant
from sampling import Failed

# As a user types it: `ungil run COMMAND`.
UNGIL = Variant("ungil run", policy="interactive")
INTERVAL = INTERVALS[-1]
VARIANTS = [STOCK, INTERVAL, UNGIL]

CASES = Path(__file__).parent / "cases"
PROGRAMS = CASES / "programs"
LOADS = CASES / "loads"
# Of `computing.py`.
NUMBERS = 8_192
STOCK_INTERVAL_NS = 5_000_000
# For a program to end when it is asked to.
PATIENCE_S = 5.0


@dataclass(frozen=True)
class Case:
    """A real program, and what is measured of it."""

    name: str
    title: str
    """What the program is, for the table."""
    packages: tuple[str, ...]
    """Whose versions matter."""
    measured: str
    """What a delay is, and who measures it."""
    settings: tuple[str, ...]
    """The rows of the table."""
    measure: "Callable[[Place, str], Measured]"
    """One measurement of a setting."""
    beyond: tuple[str, ...] = ()
    """The settings in which no scheduler of the GIL can help much."""
    counts: Mapping[str, str] = field(default_factory=dict[str, str])
    """What else is counted: its name in what was measured, and in words."""
    note: str = ""
    """What a reader has to know besides."""


@dataclass(frozen=True)
class Place:
    """Under what, and for how long, a program runs."""

    variant: Variant
    python: str
    seconds: float
    computed: Path
    """The file in which it counts its work."""

    def command(self, words: Sequence[object]) -> list[str]:
        """The command line: the program's own, after `ungil run` where ungil schedules it."""
        scheduled = self.variant.policy is not None
        before = [sys.executable, "-m", "ungil", "run", "--"] if scheduled else []
        return [*before, self.python, *map(str, words)]

    def environment(self) -> dict[str, str]:
        """The program's environment. It is itself the same for all variants."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("UNGIL_")}
        path = [PROGRAMS, CASES.parent / "programs"]
        if self.variant.interval_s is not None:
            path.insert(0, CASES / "interval")
            kept["SWITCH_INTERVAL_S"] = str(self.variant.interval_s)
        return {
            **kept,
            "PYTHONPATH": os.pathsep.join(map(str, path)),
            "COMPUTED": str(self.computed),
        }


@dataclass(frozen=True)
class Reading:
    """What a program has used and done until now."""

    wall_s: float
    cpu_s: float
    calls: int

    def since(self, before: "Reading") -> dict[str, float]:
        """The differences."""
        return {name: value - getattr(before, name) for name, value in vars(self).items()}


class Running:
    """A process that was started, and what it has to say."""

    def __init__(self, process: "subprocess.Popen[str]", errors: IO[str]) -> None:
        """Of a process whose standard error goes to a file."""
        self._process, self._errors = process, errors

    @property
    def pid(self) -> int:
        """The number of its process."""
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        """Whether it is over."""
        return self._process.poll() is not None

    def says(self) -> dict[str, Any]:
        """Its next line. What others print there (a banner) is passed over."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("{"):
                return json.loads(line)
        raise self.failed()

    def failed(self) -> Failed:
        """Why it has nothing more to say."""
        status = self._process.wait()
        self._errors.seek(0)
        said = self._errors.read().strip().splitlines()
        command = self._process.args
        assert isinstance(command, list)
        why = said[-1] if said else "no message"
        return Failed(f"`{shlex.join(command)}` ended with status {status}: {why}")


@contextmanager
def started(command: Sequence[str], environment: dict[str, str]) -> Iterator[Running]:
    """Run a command in a process group of its own, which ends with the block."""
    with (
        tempfile.TemporaryFile("w+") as errors,
        subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            process_group=0,
        ) as process,
    ):
        try:
            yield Running(process, errors)
        finally:
            _end(process)


def _end(process: "subprocess.Popen[str]") -> None:
    """Ask a process to end, and end all of its group."""
    process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(timeout=PATIENCE_S)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    # Workers whose parent has gone are ours now (`adopt_orphans`): their processor time counts.
    with suppress(ChildProcessError):
        while True:
            os.waitpid(-process.pid, 0)


@contextmanager
def program(place: Place, *words: object, **variables: str) -> Iterator[Running]:
    """Run the program of a case: the words after `python`, and variables that it needs."""
    with started(place.command(words), {**place.environment(), **variables}) as running:
        yield running


@contextmanager
def load(place: Place, name: str, *words: object) -> Iterator[Running]:
    """Run a load of `cases/loads`, on this interpreter and as it is."""
    command = [sys.executable, str(LOADS / f"{name}.py"), *map(str, words)]
    stock = Place(STOCK, sys.executable, place.seconds, place.computed)
    with started(command, stock.environment()) as running:
        yield running


def observed(place: Place, program: Running, measuring: Running) -> Measured:
    """The result of what measures, and what `program` did in the measured time."""
    try:
        _expect(measuring, "begins")
        before = _reading(place, program)
        _expect(measuring, "ends")
        after = _reading(place, program)
        _check(place)
        return {**measuring.says(), **after.since(before)}
    except (Failed, psutil.NoSuchProcess):
        # What measures fails where the program has: the program knows why.
        if program.has_ended:
            raise program.failed() from None
        raise


def _expect(measuring: Running, now: str) -> None:
    """It says that the measured time begins, or ends."""
    said = measuring.says()
    if said != {"now": now}:
        raise Failed(f"said {said}, and not that the measured time {now}")


def _reading(place: Place, program: Running) -> Reading:
    """Of a program and all of its processes."""
    first = psutil.Process(program.pid)
    times = [process.cpu_times() for process in [first, *first.children(recursive=True)]]
    used_s = sum(time_.user + time_.system for time_ in times)
    return Reading(time.perf_counter(), used_s, sum(_numbers(place)[2:]))


def _numbers(place: Place) -> list[int]:
    """What a program has counted."""
    return list(memoryview(place.computed.read_bytes()).cast("Q"))


def _check(place: Place) -> None:
    """That it ran as the variant says: a library that cannot be preloaded is a mere warning."""
    interval_ns, policy, *_ = _numbers(place)
    variant = place.variant
    expected_ns = STOCK_INTERVAL_NS if variant.interval_s is None else variant.interval_s * 1e9
    if interval_ns != round(expected_ns) or POLICIES[policy] != (variant.policy or "stock"):
        raise Failed(
            f"{variant.name}: ran with an interval of {interval_ns} ns under {POLICIES[policy]}"
        )


def measure(case: Case, setting: str, variant: Variant, python: str, seconds: float) -> Measured:
    """One measurement."""
    with tempfile.TemporaryDirectory() as folder:
        computed = Path(folder) / "computed"
        computed.write_bytes(bytes(NUMBERS * 8))
        return case.measure(Place(variant, python, seconds, computed), setting)


def free_port() -> int:
    """A port of the loopback on which nobody listens."""
    with create_server(("127.0.0.1", 0)) as channel:
        return channel.getsockname()[1]
