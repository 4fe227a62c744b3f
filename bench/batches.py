"""How long a batch would take, as advice predicts it, beside how long it takes.

    python bench/batches.py [--rounds N] [--python PATH] [--json FILE] [--quick]

Eight batches (`programs/batch.py`): a pool of four threads, of which the main thread collects the
results. Each is recorded; `ungil advise` predicts it with the work in processes, and `ungil
simulate --once` with a switch interval of 50 us. Then it runs so. What is compared is the part of
the time with threads that it takes. Two batches compute without the GIL, and have nothing to gain.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from interleaving import Measured, Runs, Target, columns, interleave, parse, parser, report
from rich.table import Table
from surroundings import spread

PROGRAM = Path(__file__).parent / "programs/batch.py"
KINDS = ("primes", "json", "regex", "csv", "xml", "ast", "lzma", "pbkdf2")
INTERVAL_US = 50
CLOSE = 1.25


@dataclass(frozen=True)
class Variant:
    """A way to run a batch, by the words behind its kind."""

    name: str
    words: tuple[str, ...] = ()


RECORDED = Variant("recorded")
THREADS = Variant("threads", ("threads",))
PROCESSES = Variant("processes", ("processes",))
SHORT = Variant("50 us", ("threads", str(INTERVAL_US)))


def main() -> None:
    """Measures and prints."""
    options = parse(parser(__doc__, rounds=5))
    report(options, ["ungil"], _sections(options), _targets)


def _sections(options: argparse.Namespace) -> Iterator[tuple[Runs, Table]]:
    """A setting for each kind."""
    for kind in KINDS:

        def measure(variant: Variant, kind: str = kind) -> Measured:
            words = [options.python, str(PROGRAM), kind]
            if variant is RECORDED:
                return _predicted(words)
            began = time.monotonic()
            subprocess.run([*words, *variant.words], check=True, stdout=subprocess.DEVNULL)
            return {"took_s": time.monotonic() - began}

        runs = interleave(kind, [RECORDED, THREADS, PROCESSES, SHORT], measure, options)
        yield runs, _table(runs)


def _predicted(words: list[str]) -> Measured:
    """What ungil says of a new trace: the parts of the time, and what it advises first."""
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/batch.pftrace"
        _ungil("trace", "--quiet", "-o", path, "--", *words)
        told = json.loads(_ungil("advise", path, "--json"))
        once = json.loads(_ungil("simulate", path, "--once", "--interval", "0.05", "--json"))
    found: dict[str, Any] = {}
    for advice in told["advice"] + told["rejected"]:
        gain = advice["gain"]
        if gain is not None and gain["measure"] == "duration":
            found.setdefault(advice["kind"], gain)
    gain = found.get("to-a-process")
    figures = once["predictions"][0]
    return {
        "first": told["advice"][0]["cause"] or told["advice"][0]["kind"],
        PROCESSES.name: gain and [gain[it] / gain["before"] for it in ("after", "low", "high")],
        SHORT.name: [figures["predicted"]["duration_s"] / figures["recorded"]["duration_s"]],
    }


def _ungil(*words: str) -> str:
    """What a command of ungil prints."""
    command = [sys.executable, "-m", "ungil", *words]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def _real(runs: Runs, variant: Variant) -> list[float]:
    """Which part of the time with threads a batch takes, in each round."""
    return runs.ratios(variant, THREADS, lambda it: it["took_s"])


def _told(runs: Runs, variant: Variant) -> list[float]:
    """What was predicted of that, and its range if there is one: medians of rounds with any."""
    each = [round_[RECORDED.name][variant.name] for round_ in runs.rounds]
    return [statistics.median(it) for it in zip(*filter(None, each), strict=True)]


def _table(runs: Runs) -> Table:
    """Predicted and real, in the median of the rounds."""
    heads = ("threads s", "predicted", "its range", "real", "predicted to real")
    table = columns("", runs.setting, *heads, "first advice")
    first = [round_[RECORDED.name]["first"] for round_ in runs.rounds]
    for variant in (PROCESSES, SHORT):
        told, real = _told(runs, variant), _real(runs, variant)
        predicted, ends = told[:1], told[1:]
        table.add_row(
            variant.name,
            f"{runs.median(THREADS, lambda it: it['took_s']):.2f}",
            "".join(f"{it:.2f}" for it in predicted),
            " to ".join(f"{it:.2f}" for it in ends),
            spread(real),
            "".join(f"{it / statistics.median(real):.2f}" for it in predicted),
            ", ".join(sorted(set(first))),
        )
    return table


def _targets(all_runs: list[Runs]) -> Iterator[Target]:
    """That predictions are close, that their ranges hold, and that no advice costs time."""
    for variant in (PROCESSES, SHORT):
        close = within = 0
        for runs in all_runs:
            real, told = statistics.median(_real(runs, variant)), _told(runs, variant)
            close += any(1 / CLOSE <= it / real <= CLOSE for it in told[:1])
            within += len(told) > 1 and told[1] <= real <= told[2]
        of = f"of {len(all_runs)}"
        claim = f"{variant.name}: the predicted time is within {CLOSE - 1:.0%} of the real one"
        yield Target(f"{claim} in all batches", close == len(all_runs), f"{close} {of}")
        if variant is PROCESSES:
            claim = f"{variant.name}: the real time is within the predicted range in all batches"
            yield Target(claim, within == len(all_runs), f"{within} {of}")
    wrong = [
        runs.setting
        for runs in all_runs
        for round_ in runs.rounds
        if round_[RECORDED.name]["first"] in {"policy", "priority", "switch-interval"}
    ]
    claim = "no batch is advised a policy or a switch interval first"
    yield Target(claim, not wrong, ", ".join(sorted(set(wrong))) or "none")


if __name__ == "__main__":
    main()
