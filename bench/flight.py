"""What the flight recorder costs while nothing happens, and what its snapshots hold.

    python bench/flight.py [--seconds N] [--stalls N] [--every S] [--last TIME] [--json FILE]

The first setting records a program with few events and one with 100,000 a second, with two
conditions that are never met, for N seconds each: CPU time of `ungil trace` alone as a share of a
core, and its memory before the program's first events, at the end, and at most, with one snapshot
written at the end. The second one lets a program under load keep the GIL 100 times for 50 ms, one
every S seconds, and looks into the snapshots (an hour: --every 36 --last 30s).
"""

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from interleaving import Measured, Runs, Target, columns, interleave, parse, parser, report
from rich.table import Table
from surroundings import spread

from ungil import _native
from ungil.durations import parse_duration

PROGRAMS = Path(__file__).parent / "programs"
RATE = 100_000
NEVER = ["--on", "wait>10min", "--on", "hold>10min"]
# What an interpreter takes to start, and the recorder to begin.
BEGIN_S = 2.0
MOST_SHARE = 0.02
MOST_MIB = 64.0
STALL_NS = 50_000_000
COST, STALLS = "cost", "stalls"


@dataclass(frozen=True)
class Load:
    """A program with so many events a second."""

    name: str
    rate: int


IDLE, BUSY = Load("few events", 100), Load(f"{RATE:,} events/s", RATE)
STALLING = Load("stalls", 0)


def main() -> None:
    """Measures and prints."""
    made = parser(__doc__, rounds=1)
    made.add_argument("--seconds", type=float, default=120.0, help="of each load [120]")
    made.add_argument("--stalls", type=int, default=100, help="[100]")
    made.add_argument("--every", type=float, default=3.0, help="seconds between them [3]")
    made.add_argument("--last", default="4s", help="what is kept in the second setting [4s]")
    options = parse(made)
    if options.quick:
        options.rounds, options.seconds, options.stalls = 1, 10.0, 5
    report(options, ["ungil"], _sections(options), _targets)


def _sections(options: argparse.Namespace) -> Iterator[tuple[Runs, Table]]:
    runs = interleave(COST, [IDLE, BUSY], lambda load: _cost(load, options), options)
    yield runs, _costs(runs)
    runs = interleave(STALLS, [STALLING], lambda _: _stalls(options), options)
    yield runs, _held(runs)


def _flight(folder: str, options: list[str], words: list[str]) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "ungil", "trace", *options, "--", *words]
    return subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def _cost(load: Load, options: argparse.Namespace) -> Measured:
    """CPU time and memory of the recorder alone."""
    words = [options.python, str(PROGRAMS / "paced.py")]
    words += [str(load.rate), str(BEGIN_S + options.seconds + 2)]
    with tempfile.TemporaryDirectory() as folder:
        process = _flight(folder, ["--last", "30s", *NEVER], words)
        time.sleep(BEGIN_S)
        begun, cpu_s, first_mib = time.monotonic(), _cpu_s(process.pid), _memory(process.pid)[0]
        time.sleep(options.seconds)
        cpu_s, wall_s = _cpu_s(process.pid) - cpu_s, time.monotonic() - begun
        kept_mib = _memory(process.pid)[0]
        os.kill(process.pid, signal.SIGUSR2)
        assert process.stderr is not None
        assert "as asked" in process.stderr.readline()
        most_mib = _memory(process.pid)[1]
        printed, _ = process.communicate()
    return {
        "share": cpu_s / wall_s,
        "rate": float(printed),
        "first_mib": first_mib,
        "kept_mib": kept_mib,
        "most_mib": most_mib,
    }


def _cpu_s(pid: int) -> float:
    """Of all threads of a process, without its children."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((it / "schedstat").read_text(encoding="ascii").split()[0]) for it in tasks) / 1e9


def _memory(pid: int) -> tuple[float, float]:
    """MiB in memory, now and at most."""
    lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    known = {name: text for name, _, text in (line.partition(":") for line in lines)}
    now, most = (int(known[name].split()[0]) / 1024 for name in ("VmRSS", "VmHWM"))
    return now, most


def _stalls(options: argparse.Namespace) -> Measured:
    """What snapshots hold of each stall."""
    words = [options.python, str(PROGRAMS / "stalling.py")]
    words += [str(options.stalls), str(options.every)]
    flags = ["--last", options.last, "--on", "wait>30ms", "--max-files", "100000", "-o", "s"]
    last_s = parse_duration(options.last, "--last") / 1e9
    with tempfile.TemporaryDirectory() as folder:
        started_ns = time.monotonic_ns()
        process = _flight(folder, flags, words)
        printed, said = process.communicate()
        stalls: list[list[int]] = [json.loads(line) for line in printed.splitlines()]
        files = sorted(Path(folder).glob("*.pftrace"), key=lambda it: it.stat().st_mtime_ns)
        found = [_look(str(file)) for file in files]
        sizes = [file.stat().st_size / 2**20 for file in files]
    complete = line = before = 0
    for began, ended in stalls:
        its = [it for it in found if it["start_ns"] <= began and ended <= it["end_ns"]]
        # The first one is that which the stall has made.
        holds = [hold for it in its[:1] for hold in it["holds"] if _is(hold, began, ended)]
        complete += any(hold["name"] == "stalling" for hold in holds)
        line += any("stall (" in frame for hold in holds for frame in hold["stack"][:1])
        kept_s = (began - its[0]["start_ns"]) / 1e9 if its else 0.0
        since_start_s = (began - started_ns) / 1e9 - BEGIN_S
        before += kept_s >= min(last_s - 1.0, since_start_s)
    return {
        "stalls": len(stalls),
        "snapshots": len(files),
        "said": sum("stalling held the GIL at stall (" in it for it in said.splitlines()),
        "holder": complete,
        "line": line,
        "before": before,
        "mib": statistics.median(sizes) if sizes else 0.0,
    }


def _look(path: str) -> Measured:
    """When a snapshot begins and ends, and its long holds with times of the same clock."""
    start_ns, end_ns, _ = _native.trace_span(path)
    told = json.loads(_native.read_trace(path, 20.0))
    gils = [gil for process in told["processes"] for gil in process["gils"]]
    holds = [hold for gil in gils for hold in gil["long_holds"]]
    for hold in holds:
        hold["start_ns"] = start_ns + round(hold["start_s"] * 1e9)
        hold["end_ns"] = hold["start_ns"] + round(hold["duration_ms"] * 1e6)
    return {"start_ns": start_ns, "end_ns": end_ns, "holds": holds}


def _is(hold: Measured, began: int, ended: int) -> bool:
    """Whether that hold is the stall: it spans its fifty milliseconds."""
    common_ns = min(hold["end_ns"], ended) - max(hold["start_ns"], began)
    return common_ns >= 0.9 * STALL_NS


def _costs(runs: Runs) -> Table:
    names = ("events/s", "% of a core", "MiB at first", "MiB at the end", "MiB at most")
    table = columns("the recorder alone", "", *names)
    for load in (IDLE, BUSY):
        shares = [100 * it for it in runs.each(load, lambda it: it["share"])]
        rate = runs.median(load, lambda it: it["rate"])
        figures = [
            f"{runs.median(load, lambda it, name=name: it[name]):.1f}"
            for name in ("first_mib", "kept_mib", "most_mib")
        ]
        table.add_row(load.name, f"{rate:,.0f}", spread(shares), *figures)
    return table


def _held(runs: Runs) -> Table:
    names = ("stalls", "snapshots", "said", "holder", "line", "before", "MiB a file")
    table = columns("stalls of 50 ms, and how many are in a snapshot with ...", "", *names)
    for round_ in runs.rounds:
        it = round_[STALLING.name]
        counts = [str(it[name]) for name in ("stalls", "snapshots", "said", "holder", "line")]
        table.add_row("", *counts, str(it["before"]), f"{it['mib']:.2f}")
    return table


def _targets(all_runs: list[Runs]) -> Iterator[Target]:
    """That it may stay on for days, and misses nothing."""
    cost, stalls = all_runs
    share = cost.median(BUSY, lambda it: it["share"])
    rate = cost.median(BUSY, lambda it: it["rate"])
    claim = f"{rate:,.0f} events a second take at most {MOST_SHARE:.0%} of a core"
    yield Target(claim, share <= MOST_SHARE, f"{share:.2%}")
    most = max(cost.each(BUSY, lambda it: it["most_mib"]))
    yield Target(f"at most {MOST_MIB:.0f} MiB of memory", most <= MOST_MIB, f"{most:.1f} MiB")
    for round_ in stalls.rounds:
        it = round_[STALLING.name]
        least = min(it["holder"], it["line"], it["before"])
        claim = f"{it['stalls']} stalls are in a snapshot with the time before, holder and line"
        yield Target(claim, least == it["stalls"], str(least))


if __name__ == "__main__":
    main()
