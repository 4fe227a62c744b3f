"""What it costs a free-threaded program to be traced, and how exact its parks are.

    python bench/free_threaded.py --python python3.13t [--rounds N] [--json FILE] [--quick]

Four threads contend for one dict, one list, or one lock. Each round runs them bare, bare again and
traced; the second bare run says how far two equal runs are apart. Then a thread is kept waiting for
known times, and its parks in the trace are compared with what its own clock says.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from interleaving import Measured, Runs, Target, columns, interleave, parse, parser, report
from rich.table import Table
from surroundings import spread

PROGRAM = Path(__file__).parent / "programs/contending.py"
KEPT = Path(__file__).parent.parent / "tests/programs"
THREADS = 4
CHANGES = {"dict": 2_000_000, "list": 2_000_000, "lock": 1_000_000}
KINDS = ("object", "lock", "pause")
MOST_COST, MOST_OFF = 1.05, 0.02


@dataclass(frozen=True)
class Variant:
    """A way to run the program."""

    name: str


BARE, AGAIN, TRACED = Variant("bare"), Variant("bare again"), Variant("traced")
KEPT_WAITING = Variant("kept waiting")


def main() -> None:
    """Measures and prints."""
    options = parse(parser(__doc__, rounds=9))
    report(options, ["ungil"], _sections(options), _targets)


def _sections(options: argparse.Namespace) -> Iterator[tuple[Runs, Table]]:
    """A setting for each object that is contended for, and for each kind of known parks."""
    for kind, changes in CHANGES.items():
        few = changes // 10 if options.quick else changes
        words = [options.python, str(PROGRAM), kind, str(THREADS), str(few)]

        def measure(variant: Variant, words: list[str] = words) -> Measured:
            return _run(words, variant)

        runs = interleave(f"one {kind}", [BARE, AGAIN, TRACED], measure, options)
        yield runs, _costs(runs)
    with tempfile.TemporaryDirectory() as folder:
        _build(options.python, Path(folder))
        for kind in KINDS:
            words = [options.python, str(KEPT / "kept_waiting.py"), kind]

            def keep(_: Variant, words: list[str] = words) -> Measured:
                return _kept(words, folder)

            runs = interleave(f"kept by a known {kind}", [KEPT_WAITING], keep, options)
            yield runs, _exactness(runs)


def _run(words: list[str], variant: Variant) -> Measured:
    """How long the threads took, and how often they parked."""
    if variant is not TRACED:
        return {"parks": 0, **json.loads(_output(words, os.environ))}
    told, process = _traced(words, os.environ)
    threads = process["parks"]["threads"] if process["parks"] else []
    parks = sum(cause["parks"]["count"] for it in threads for cause in it["causes"])
    return {"parks": parks, **json.loads(told)}


def _kept(words: list[str], folder: str) -> Measured:
    """What the thread said of its waits, and what the trace says of its parks for that, in all."""
    told, process = _traced(words, {**os.environ, "PYTHONPATH": folder})
    rows = [it for it in process["parks"]["waits"] if it["name"] == "waiter"]
    longest = max(it["waited_s"] for it in rows)
    return {"told_ms": sum(json.loads(told)) / 1e6, "parked_ms": longest * 1e3}


def _traced(words: list[str], variables: dict[str, str] | os._Environ[str]) -> tuple[str, Measured]:
    """What a program printed under `ungil trace`, and its process in the report."""
    with tempfile.TemporaryDirectory() as folder:
        said, trace = Path(folder) / "report.json", Path(folder) / "t.pftrace"
        ungil = [sys.executable, "-m", "ungil", "trace", "--quiet", "--json", str(said)]
        told = _output([*ungil, "-o", str(trace), "--", *words], variables)
        (process,) = json.loads(said.read_text(encoding="utf-8"))["processes"]
    return told, process


def _output(words: list[str], variables: dict[str, str] | os._Environ[str]) -> str:
    """What a program prints."""
    return subprocess.run(
        words, check=True, env=variables, stdout=subprocess.PIPE, text=True
    ).stdout


def _build(python: str, folder: Path) -> None:
    """The extension module with which a thread is kept waiting."""
    ask = "import sysconfig; print(sysconfig.get_path('include'))"
    include = _output([python, "-c", ask], os.environ).strip()
    options = ["-O2", "-shared", "-fPIC", "-I", include, "-o", str(folder / "parking.so")]
    subprocess.run(["cc", *options, str(KEPT / "parking.c")], check=True)


def _ratios(runs: Runs, variant: Variant) -> list[float]:
    """Its wall time by that of the first bare run of the round."""
    return runs.ratios(variant, BARE, lambda it: it["wall_s"])


def _costs(runs: Runs) -> Table:
    """What tracing takes."""
    table = columns("", runs.setting, "wall s", "bare again / bare", "traced / bare", "parks/s")
    parks = [it[TRACED.name]["parks"] / it[TRACED.name]["wall_s"] for it in runs.rounds]
    walls = spread(runs.each(BARE, lambda it: it["wall_s"]))
    again, traced = (spread(_ratios(runs, variant)) for variant in (AGAIN, TRACED))
    table.add_row("", walls, again, traced, f"{statistics.median(parks):,.0f}")
    return table


def _off(runs: Runs) -> list[float]:
    """How far the parks are from what the thread says, as a part of that."""
    rounds = [it[KEPT_WAITING.name] for it in runs.rounds]
    return [it["parked_ms"] / it["told_ms"] - 1 for it in rounds]


def _exactness(runs: Runs) -> Table:
    """How exact parks are."""
    table = columns("", runs.setting, "the thread says, ms", "the trace says, ms", "off by")
    says, parked = (
        spread(runs.each(KEPT_WAITING, lambda it, name=name: it[name]))
        for name in ("told_ms", "parked_ms")
    )
    table.add_row("", says, parked, spread([100 * it for it in _off(runs)]) + " %")
    return table


def _targets(all_runs: list[Runs]) -> Iterator[Target]:
    """That tracing is cheap and exact."""
    contended = [runs for runs in all_runs if TRACED.name in runs.rounds[0]]
    kept = [runs for runs in all_runs if KEPT_WAITING.name in runs.rounds[0]]
    for runs in contended:
        cost = statistics.median(_ratios(runs, TRACED))
        claim = f"tracing four threads that contend for {runs.setting} costs at most {MOST_COST}"
        yield Target(claim, cost <= MOST_COST, f"{cost:.3f}")
    worst = max(abs(statistics.median(_off(runs))) for runs in kept)
    yield Target(f"parks are exact within {MOST_OFF:.0%}", worst <= MOST_OFF, f"{worst:.2%}")


if __name__ == "__main__":
    main()
