"""How the programs that fan out are run and measured, whole processes."""

import json
import os
import resource
import signal
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from interleaving import Measured

from ungil.lab import whole
from ungil.lab.experiment import Missing
from ungil.lab.workload import FOLDER as SHARED

FOLDER = Path(__file__).parent / "programs"
# Where what is built goes.
BUILT = Path(__file__).parents[1] / "target" / "bench"
# What takes longer by its own arithmetic is only run with --all.
LONGEST_S = 12.0
# A descriptor for each connection, and some for everything else.
SPARE_DESCRIPTORS = 100


@dataclass(frozen=True)
class Tools:
    """What runs the programs."""

    python: str
    goroutines: Path | None
    devices: Path | None
    gornir: Path | None
    go: str
    """Go's version, or why there is none."""

    @classmethod
    def found(cls, python: str) -> "Tools":
        """Those of this machine; what is ours in Go is built."""
        named = os.environ.get("UNGIL_GORNIR")
        gornir = Path(named) if named else None
        if gornir is not None and not os.access(gornir, os.X_OK):
            sys.exit(f"UNGIL_GORNIR is no program: {gornir}")
        BUILT.mkdir(parents=True, exist_ok=True)
        try:
            goroutines, devices = (whole.build(name, BUILT) for name in ("goroutines", "devices"))
        except Missing:
            return cls(python, None, None, gornir, "not installed")
        run = subprocess.run(["go", "version"], capture_output=True, text=True, check=True)
        version = run.stdout.split()[2]
        return cls(python, goroutines, devices, gornir, version)


def allow_descriptors(items: int) -> None:
    """As many as the machine lets us have: the peers do not look after that themselves."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    if most != resource.RLIM_INFINITY and most < items + SPARE_DESCRIPTORS:
        sys.exit(f"{items} connections need {items + SPARE_DESCRIPTORS} descriptors, not {most}")


@dataclass(frozen=True)
class Load:
    """The work, as in fanout_work.py of the lab's workloads."""

    items: int
    rtt_s: float
    tcp: bool = False
    """Real connections, instead of sleeping."""
    times: int = 1
    """In one process."""


@dataclass(frozen=True)
class Case:
    """One way to do it."""

    name: str
    program: str
    """Of bench/programs or the lab's workloads, without `fanout_`; or `goroutines` or `gornir`."""
    way: str = ""
    limit: int = 0
    """How many at once; 0 is no limit, or the way's own choice."""
    rtt_s: float | None = None
    """Instead of the load's."""

    def least_s(self, load: Load) -> float:
        """What it takes by arithmetic alone."""
        rtt_s = load.rtt_s if self.rtt_s is None else self.rtt_s
        waves = -(-load.items // self.limit) if self.limit else 1
        return self.times(load) * waves * rtt_s

    def times(self, load: Load) -> int:
        """How often it does the work."""
        return 1 if self.program in ("goroutines", "gornir") else load.times

    def words(self, tools: Tools, load: Load, port: int) -> list[str]:
        """Its command."""
        rtt_s = load.rtt_s if self.rtt_s is None else self.rtt_s
        work = [str(load.items), str(rtt_s), str(port)]
        if self.program == "goroutines":
            if tools.goroutines is None:
                raise Missing("Go is not installed here")
            return [str(tools.goroutines), *work, str(self.limit)]
        if self.program == "gornir":
            if tools.gornir is None:
                raise Missing("UNGIL_GORNIR does not name a built copy of gornir")
            return [str(tools.gornir), *work, self.way]
        program = FOLDER / f"fanout_{self.program}.py"
        if not program.exists():
            program = SHARED / program.name
        return [tools.python, str(program), self.way, *work, str(self.limit), str(self.times(load))]


def measure(case: Case, tools: Tools, load: Load) -> Measured:
    """What a whole process took, or why it `broke`."""
    try:
        with _devices(tools, load) as devices:
            measured = _used(case, load, case.words(tools, load, devices.port))
    except Missing as why:
        return {"broke": str(why)}
    return {**measured, "devices_cpu_s": devices.cpu_s}


def _used(case: Case, load: Load, words: list[str]) -> Measured:
    """Run a command by fanout_used.py, which reads what it used."""
    times, patience_s = case.times(load), case.least_s(load) + whole.PATIENCE_S
    agent = [sys.executable, "-I", "-S", str(SHARED / "fanout_used.py"), *words]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("UNGIL_")}
    kept["PYTHONPATH"] = str(SHARED)
    with subprocess.Popen(
        agent,
        env=kept,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            output, errors = process.communicate(timeout=patience_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return {"broke": f"no end after {patience_s:.0f} s"}
    said = errors.strip().splitlines()
    if process.returncode != 0:
        return {"broke": said[-1] if said else f"status {process.returncode}"}
    used = json.loads(output)
    inner = [[float(word) for word in line.split()] for line in used["said"][-times:]]
    if [done for done, _wall_s, _cpu_s in inner] != [load.items] * times:
        last = said[-1] if said else "no message"
        return {"broke": f"{inner[-1][0]:.0f} of {load.items} items came back: {last}"}
    return {
        "wall_s": used["wall_s"],
        "cpu_s": used["user_s"] + used["system_s"],
        "rss_mb": used["peak_bytes"] / 1e6,
        "inner": [[inner_wall_s, inner_cpu_s] for _done, inner_wall_s, inner_cpu_s in inner],
    }


@dataclass
class Devices:
    """Fake devices, of one process."""

    port: int = 0
    cpu_s: float = 0.0
    """What they took, known when they have ended."""


@contextmanager
def _devices(tools: Tools, load: Load) -> Iterator[Devices]:
    """Fake devices, if the work needs some.

    New ones for each process, so that their CPU time is counted as this benchmark's own when it is
    over, and no connection meets the remains of an earlier one.
    """
    devices = Devices()
    if not load.tcp:
        yield devices
        return
    words = [str(tools.devices)] if tools.devices else [tools.python, _python_devices()]
    with subprocess.Popen(
        [*words, str(load.rtt_s)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        devices.port = int(process.stdout.readline())
        try:
            yield devices
        finally:
            process.stdin.close()
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        devices.cpu_s = usage.ru_utime + usage.ru_stime


def _python_devices() -> str:
    return str(FOLDER / "fanout_devices.py")


def wall(measured: Measured) -> float:
    """Seconds of a whole process."""
    return measured["wall_s"]


def cpu(measured: Measured) -> float:
    """CPU seconds of a whole process."""
    return measured["cpu_s"]


def memory(measured: Measured) -> float:
    """Peak megabytes of a whole process."""
    return measured["rss_mb"]


def inner_wall(measured: Measured) -> float:
    """Seconds of the work alone, in a process that has done it before."""
    return statistics.median(wall_s for wall_s, _ in measured["inner"][1:])


def inner_cpu(measured: Measured) -> float:
    """CPU seconds of the same."""
    return statistics.median(cpu_s for _, cpu_s in measured["inner"][1:])


def devices_cpu(measured: Measured) -> float:
    """CPU seconds of the fake devices."""
    return measured["devices_cpu_s"]
