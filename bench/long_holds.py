"""What it costs ungil to look at long holds: CPU time of one sample of the holder's stack.

    python bench/long_holds.py [--rounds N] [--python PATH] [--json FILE] [--quick]

A thread keeps the GIL 20 times for 400 ms in a native function that sleeps, so that nearly all CPU
time is ungil's own. Each round traces it as usual and with a blame time that no hold reaches; the
difference is divided by the number of samples that the report tells of.
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

PROGRAM = Path(__file__).parent / "programs/kept.py"
HELD_S = 20 * 0.4
SETTINGS = {"10 functions, 3 threads": (10, 0), "100 functions": (100, 0), "200 threads": (10, 197)}
MOST_SHARE = 0.10


@dataclass(frozen=True)
class Variant:
    """A way to trace the program."""

    name: str
    blame_after_ms: int


SAMPLED, UNSAMPLED = Variant("sampled", 20), Variant("not sampled", 1_000_000)


def main() -> None:
    """Measures and prints."""
    options = parse(parser(__doc__, rounds=7))
    report(options, ["ungil"], _sections(options), _targets)


def _sections(options: argparse.Namespace) -> Iterator[tuple[Runs, Table]]:
    """A setting for each shape of the program."""
    for setting, shape in SETTINGS.items():

        def measure(variant: Variant, shape: tuple[int, int] = shape) -> Measured:
            return _traced([options.python, str(PROGRAM), *map(str, shape)], variant)

        runs = interleave(setting, [SAMPLED, UNSAMPLED], measure, options)
        yield runs, _table(runs)


def _traced(words: list[str], variant: Variant) -> Measured:
    """CPU time of ungil and the program together, and how many samples there were."""
    with tempfile.TemporaryDirectory() as folder:
        told = Path(folder) / "report.json"
        command = [sys.executable, "-m", "ungil", "trace", "--quiet", "--json", str(told)]
        command += ["-o", f"{folder}/t.pftrace", "--blame-after", str(variant.blame_after_ms), "--"]
        process = subprocess.Popen([*command, *words])
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0
        (gil,) = json.loads(told.read_text(encoding="utf-8"))["processes"][0]["gils"]
    samples = sum(hold["samples"] for hold in gil["long_holds"])
    return {"cpu_s": usage.ru_utime + usage.ru_stime, "samples": samples}


def _cost(runs: Runs) -> list[float]:
    """CPU seconds of the samples in each round."""
    pairs = [(it[SAMPLED.name], it[UNSAMPLED.name]) for it in runs.rounds]
    return [one["cpu_s"] - other["cpu_s"] for one, other in pairs]


def _table(runs: Runs) -> Table:
    """What a sample costs, and how many there are."""
    table = columns("", runs.setting, "samples", "us a sample", "share of a core while it holds")
    samples = runs.each(SAMPLED, lambda it: it["samples"])
    each = [1e6 * cost / max(count, 1) for cost, count in zip(_cost(runs), samples, strict=True)]
    shares = [cost / HELD_S for cost in _cost(runs)]
    table.add_row("", f"{statistics.median(samples):.0f}", spread(each), spread(shares))
    return table


def _targets(all_runs: list[Runs]) -> Iterator[Target]:
    """That looking is cheap."""
    worst = max(statistics.median(_cost(runs)) / HELD_S for runs in all_runs)
    claim = f"samples take less than {MOST_SHARE} of a core while a thread keeps the GIL"
    yield Target(claim, worst < MOST_SHARE, f"{worst:.3f}")


if __name__ == "__main__":
    main()
