"""Times are those of CLOCK_MONOTONIC, also where the hook reads the processor's counter instead.

That a hold is told exactly is in test_trace_exactness.py; here is what could go wrong with a clock
that only the recorder can read: it may be stopped, and the program may have a time of its own.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from pythons import Python, pythons
from suite import PATIENCE_S, PROGRAMS
from tracing import Running, compile_library, trace

PYTHONS = pythons("2.7", "3.8", "3.11", "3.13")
SOURCE = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")


def counter_is_the_kernels() -> bool:
    """Whether the kernel makes its clock from a counter that neither stops nor changes its pace."""
    if not SOURCE.exists() or SOURCE.read_text(encoding="ascii").strip() != "tsc":
        return False
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    flags = next(line for line in lines if line.startswith("flags")).split()
    return {"constant_tsc", "nonstop_tsc"} <= set(flags)


# Tests of what only the counter can do are left out where there is none to read.
COUNTER = ["counter"] if counter_is_the_kernels() else []


@pytest.mark.parametrize("python", PYTHONS, ids=str)
def test_the_counter_is_read_where_the_kernel_reads_it(tmp_path: Path, python: Python) -> None:
    environment = {it: os.environ[it] for it in os.environ if it != "UNGIL_CLOCK"}
    recording = trace(tmp_path, python.path, "-c", "pass", env=environment)
    assert (recording.process["clock_error_us"] > 0) == counter_is_the_kernels()


def test_the_kernels_clock_can_be_asked_for_also_inside_of_another_recording(
    tmp_path: Path,
) -> None:
    report = tmp_path / "inner.json"
    inner = [sys.executable, "-m", "ungil", "trace", "-fq", "-o", str(tmp_path / "inner.pftrace")]
    inner += ["--json", str(report), "-c", "pass"]
    trace(tmp_path, "env", "UNGIL_CLOCK=monotonic", *inner)
    (process,) = json.loads(report.read_text(encoding="utf-8"))["processes"]
    assert process["clock_error_us"] == 0


def test_an_unknown_clock_is_a_mistake(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "ungil", "trace", "touch", "ran"]
    environment = {**os.environ, "UNGIL_CLOCK": "sundial"}
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "ungil: UNGIL_CLOCK is 'sundial'; set it to 'monotonic' to take all times from "
        "the kernel's clock, or unset it\n"
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("clock", ["", "monotonic"])
def test_a_recorder_that_was_stopped_tells_the_times_of_what_happened_meanwhile(
    tmp_path: Path, clock: str
) -> None:
    program, library = PROGRAMS / "known_holds.py", compile_library(tmp_path)
    known = [sys.executable, str(program), str(library), "100", "10000"]
    words = ["sh", "-c", 'echo ready; read line; exec "$@"', "sh", *known]
    environment = {**os.environ, "UNGIL_CLOCK": clock}
    with Running(tmp_path, words, stdin=subprocess.PIPE, env=environment) as running:
        assert running.read_line() == "ready"
        children = Path(f"/proc/{running.popen.pid}/task/{running.popen.pid}/children")
        # The other one is ungil's own.
        (child,) = [
            int(pid)
            for pid in children.read_text(encoding="ascii").split()
            if Path(f"/proc/{pid}/comm").read_text(encoding="ascii") == "sh\n"
        ]
        os.kill(running.popen.pid, signal.SIGSTOP)
        until_state(running.popen.pid, "T")
        assert running.popen.stdin is not None
        running.popen.stdin.write("go\n")
        running.popen.stdin.flush()
        # Nobody takes note of its end as long as its parent is stopped.
        until_state(child, "Z")
        os.kill(running.popen.pid, signal.SIGCONT)
        recording = running.finish()
    told = recording.told
    (track,) = [it for it in recording.tracks if it.tid == told["tids"]["holder"]]
    # Where it was stopped for long, the kernel may have changed its pace as far as NTP may.
    error_ns = recording.process["clock_error_us"] * 1000
    assert error_ns < 5_000_000
    assert len(told["holds"]) == 100
    for before, began, ended, after in told["holds"]:
        around = [
            it
            for it in track.of("hold")
            if it.start_ns <= began + error_ns and ended <= it.end_ns + error_ns
        ]
        assert len(around) == 1
        assert before <= around[0].start_ns + error_ns
        assert around[0].end_ns <= after + error_ns


def until_state(pid: int, state: str) -> None:
    """Until the kernel says that of a process."""
    deadline = time.monotonic() + PATIENCE_S
    while (
        Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()[0] != state
    ):
        assert time.monotonic() < deadline, f"{pid} was never {state}"
        time.sleep(0.01)


@pytest.mark.parametrize("clock", COUNTER)
@pytest.mark.parametrize("python", pythons("3.11", "3.13"), ids=str)
def test_a_process_in_another_time_namespace_is_told_in_the_recorders_time(
    tmp_path: Path, python: Python, clock: str
) -> None:
    del clock
    code = (
        "import ctypes, threading, time\n"
        "it = threading.Thread(target=ctypes.PyDLL(None).usleep, args=(100_000,))\n"
        "it.start(); it.join(); print(time.monotonic_ns())"
    )
    outside = [python.path, str(PROGRAMS / "other_time.py"), python.path, "-c", code]
    recording = trace(tmp_path, *outside)
    inside_ns, told = recording.stdout.split("\n")
    told = json.loads(told)
    assert told["status"] == 0
    assert int(inside_ns) > told["ended"] + 80_000 * 1_000_000_000, "it had another time"
    outer, *inner = sorted(recording.processes, key=lambda process: process["started_s"])
    assert outer["pid"] not in {process["pid"] for process in inner}
    pids = {process["pid"] for process in inner}
    slices = [it for track in recording.tracks if track.pid in pids for it in track.slices]
    assert max(it.length_ns for it in slices) >= 100_000_000
    error_ns = max(process["clock_error_us"] for process in recording.processes) * 1000
    # The image before exec, which has a GIL too, is seen to be over only with the process.
    for it in [it for it in slices if not it.unfinished]:
        assert told["began"] <= it.start_ns + error_ns
        assert it.end_ns <= told["ended"] + error_ns
    assert recording.report["duration_s"] < 3_600


@pytest.mark.parametrize("clock", ["", "monotonic"])
def test_a_recorded_programs_own_counters_are_in_nanoseconds(tmp_path: Path, clock: str) -> None:
    program = tmp_path / "own.py"
    program.write_text(
        "import ctypes, json, threading\n"
        "from ungil import gil\n"
        "keep = ctypes.PyDLL(None)\n"
        "with gil.measure() as cost:\n"
        "    keep.usleep(200_000)\n"
        "with gil.measure() as several:\n"
        "    for _ in range(20):\n"
        "        keep.usleep(10_000)\n"
        "        ctypes.CDLL(None).usleep(0)\n"
        "    inside = gil.stats()[threading.get_ident()].held_ns\n"
        "costs = [(it.held_ns, it.wall_ns, it.holds) for it in (cost, several)]\n"
        "print(json.dumps([*costs, inside]))\n",
        encoding="utf-8",
    )
    environment = {**os.environ, "UNGIL_CLOCK": clock}
    recording = trace(tmp_path, sys.executable, program, env=environment)
    one, several, inside_ns = recording.told
    # A tick is measured before the program starts, to one part in 40,000; NTP may change it by one
    # in 2,000; and the two clocks are not read at once.
    held_ns, wall_ns, holds = one
    allowed_ns = 0 if clock else wall_ns / 1_500 + 1_000_000
    assert holds == 0
    assert abs(held_ns - wall_ns) <= allowed_ns
    held_ns, wall_ns, holds = several
    assert holds == 20
    assert 200_000_000 - allowed_ns <= held_ns <= wall_ns + allowed_ns
    assert inside_ns >= one[0] + 200_000_000 - allowed_ns
    (thread,) = [it for it in recording.gil["threads"] if it["main"]]
    assert thread["held_s"] * 1e9 >= inside_ns - allowed_ns
