"""What recording costs a program: ungil beside py-spy, gilknocker and VizTracer.

    python bench/trace_overhead.py [--rounds N] [--json FILE] [--quick]

Runs programs of a fixed amount of work bare and under each tool, in turn (A B C, A B C, ...), and
divides each run by the bare run of the same round. `bare again` is the bare program a second time:
what its ratio differs from 1 is noise, and so is as much in the other rows. The runs are short and
many, because a shared machine changes its speed within seconds.

The peers come from the `bench` extra (`pip install '.[bench]'`); one that is missing is a row that
says so. ungil must be an optimised build (`maturin develop --release`, or a wheel).
"""

import argparse
import dataclasses
import json
import os
import statistics
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sampling import Failed, Sample, adopt_orphans, sample, wait_for_quiet
from surroundings import print_environment, spread, versions

FOLDER = Path(__file__).parent / "programs"
SCRIPTS = Path(sysconfig.get_path("scripts"))
REPORT = ".json"
# Before each sample, for other processes of the machine to pause.
PATIENCE_S = 2.0
PACKAGES = ["ungil", "py-spy", "gilknocker", "viztracer"]
# A program's count of work in a warm-up and in a quick run.
SMALL = {
    "one_cpu_thread": 100_000,
    "four_cpu_threads": 25_000,
    "tcp_switches": 10_000,
    "socketpair_switches": 20_000,
    "null_switches": 100_000,
    "zero_switches": 100_000,
}


@dataclass(frozen=True)
class Variant:
    """A way to run a program."""

    name: str
    package: str | None
    command: Callable[[list[str], str], list[str]]
    """The command, from that of the program and the name of a file to write to."""
    writes: str | None = None
    """What the name of that file ends in, if the tool writes one."""


def _ungil(program: list[str], output: str) -> list[str]:
    tool = [sys.executable, "-m", "ungil", "trace", "--quiet", "--output", output]
    return [*tool, "--json", f"{output}{REPORT}", "--", *program]


def _py_spy(*options: str) -> Callable[[list[str], str], list[str]]:
    def command(program: list[str], output: str) -> list[str]:
        tool = [str(SCRIPTS / "py-spy"), "record", *options, "--format", "raw"]
        return [*tool, "--output", output, "--", *program]

    return command


def _gilknocker(program: list[str], _output: str) -> list[str]:
    return [program[0], str(FOLDER / "with_gilknocker.py"), *program[1:]]


def _viztracer(program: list[str], output: str) -> list[str]:
    tool = [program[0], "-m", "viztracer", "--quiet", "--output_file", f"{output}{REPORT}"]
    return [*tool, "--", *program[1:]]


VARIANTS = [
    Variant("bare", None, lambda program, _output: program),
    Variant("bare again", None, lambda program, _output: program),
    Variant("ungil trace", "ungil", _ungil, REPORT),
    Variant("py-spy record", "py-spy", _py_spy(), ""),
    Variant("py-spy record --nonblocking", "py-spy", _py_spy("--nonblocking"), ""),
    Variant("gilknocker", "gilknocker", _gilknocker),
    Variant("viztracer", "viztracer", _viztracer, REPORT),
]


@dataclass
class Runs:
    """What is known of one program: a sample of each variant in each round."""

    rounds: list[dict[str, Sample]] = field(default_factory=list[dict[str, Sample]])
    missing: dict[str, str] = field(default_factory=dict[str, str])
    """Why a variant has no samples."""
    repeated: dict[str, int] = field(default_factory=dict[str, int])
    """Samples that were thrown away, by what disturbed them."""
    kept_disturbed: int = 0
    """Disturbed samples that were kept, because the repetitions were used up."""
    holds: int = 0
    """What ungil counted in all its runs, repeated ones too."""
    lost_events: int = 0
    """Of about twice as many events, those it could not write down."""

    def ratios(self, variant: str, of: str) -> list[float]:
        """A figure of `variant` divided by that of the bare run of the same round."""
        return [
            getattr(round_[variant], of) / getattr(round_["bare"], of)
            for round_ in self.rounds
            if variant in round_
        ]

    def medians(self, variant: str, of: str) -> float:
        """The median of a figure in seconds."""
        return statistics.median(getattr(round_[variant], of) for round_ in self.rounds)


def run(
    program: str, rounds: int, work: int | None, repetitions: int, left_out: Sequence[str] = ()
) -> Runs:
    """Run every variant of `program` once to warm up and then `rounds` times, interleaved."""
    runs = Runs(missing=dict.fromkeys(left_out, "left out"))
    for variant in VARIANTS:
        if variant.package is not None and versions([variant.package]) == [None]:
            runs.missing[variant.name] = "not installed"
    _round(program, SMALL[program], 0, Runs(missing=runs.missing))
    for _ in range(rounds):
        runs.rounds.append(_round(program, work, repetitions, runs))
    return runs


def _round(program: str, work: int | None, repetitions: int, runs: Runs) -> dict[str, Sample]:
    """A sample of each variant, taken again if it was disturbed and `repetitions` are left."""
    round_: dict[str, Sample] = {}
    for variant in VARIANTS:
        while variant.name not in runs.missing and variant.name not in round_:
            if repetitions > 0:
                wait_for_quiet(PATIENCE_S)
            try:
                taken = _sample(variant, program, work, runs)
            except Failed as failure:
                if variant.package is None:
                    raise SystemExit(f"{program} does not run: {failure}") from failure
                runs.missing[variant.name] = f"failed: {failure}"
                break
            disturbance = taken.disturbance()
            if disturbance is not None and sum(runs.repeated.values()) < repetitions:
                runs.repeated[disturbance] = runs.repeated.get(disturbance, 0) + 1
                continue
            runs.kept_disturbed += disturbance is not None
            round_[variant.name] = taken
    return round_


def _sample(variant: Variant, program: str, work: int | None, runs: Runs) -> Sample:
    """One run, in a folder for what the tool writes."""
    words = [sys.executable, str(FOLDER / f"{program}.py")]
    words += [] if work is None else [str(work)]
    with tempfile.TemporaryDirectory(prefix="ungil-bench-") as folder:
        output = Path(folder, "output")
        taken = sample(variant.command(words, str(output)), os.environ)
        if variant.writes is not None:
            written = output.with_name(output.name + variant.writes)
            if not written.exists():
                # A tool that records nothing costs nothing.
                raise Failed("the tool recorded nothing")
            if variant.package == "ungil":
                _note_events(runs, json.loads(written.read_text(encoding="utf-8")))
    return taken


def _note_events(runs: Runs, report: dict[str, Any]) -> None:
    """Add up how much ungil recorded, and lost, according to its report."""
    gils = [gil for process in report["processes"] for gil in process["gils"]]
    runs.holds += sum(thread["holds"]["count"] for gil in gils for thread in gil["threads"])
    runs.lost_events += report["lost_events"]


def table(program: str, runs: Runs) -> Iterator[str]:
    """The lines that show one program."""
    wall_s, cpu_s = runs.medians("bare", "wall_s"), runs.medians("bare", "cpu_s")
    releases = runs.rounds[0]["bare"].releases
    rate = f", {releases / wall_s:,.0f} releases/s" if releases else ""
    yield f"{program}: bare {wall_s:.3f} s wall, {cpu_s:.3f} s CPU{rate}"
    heads = ["wall", "CPU, the program's", "CPU, all processes"]
    yield f"  {'':28}" + "".join(f"{head:>23}" for head in heads) + f"{'more CPU':>11}{'n':>4}"
    for variant in VARIANTS[1:]:
        if runs.missing.get(variant.name) == "left out":
            continue
        if variant.name in runs.missing:
            yield f"  {variant.name:28}  {runs.missing[variant.name]}"
            continue
        columns = [runs.ratios(variant.name, of) for of in ("wall_s", "cpu_s", "tree_cpu_s")]
        more_s = statistics.median(
            round_[variant.name].tree_cpu_s - round_["bare"].tree_cpu_s for round_ in runs.rounds
        )
        cells = "".join(f"{spread(column):>23}" for column in columns)
        yield f"  {variant.name:28}{cells}{more_s:>9.2f} s{len(columns[0]):>4}"
    repeated = ", ".join(f"{count} {what}" for what, count in sorted(runs.repeated.items()))
    yield (
        f"  disturbed samples: {repeated or 'none'} repeated, {runs.kept_disturbed} kept; "
        f"ungil counted {runs.holds:,} holds, lost {runs.lost_events:,} events"
    )


def main() -> None:
    """Measures and prints."""
    names = [variant.name for variant in VARIANTS if variant.package is not None]
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=15, help="samples a variant [15]")
    parser.add_argument(
        "--repetitions",
        type=int,
        default=20,
        help="of disturbed samples [20]; 0: nor any waiting for the machine to be quiet",
    )
    parser.add_argument("--program", action="append", choices=list(SMALL), help="instead of all")
    parser.add_argument("--variant", action="append", choices=names, help="instead of all")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write every sample")
    parser.add_argument("--quick", action="store_true", help="little work, two rounds: a smoke run")
    options = parser.parse_args()
    rounds, repetitions = (2, 0) if options.quick else (options.rounds, options.repetitions)
    adopt_orphans()
    known = print_environment(PACKAGES)
    print("\nRatios to the bare run of the same round: median (least-greatest).")
    programs: dict[str, object] = {}
    left_out = [name for name in names if name not in (options.variant or names)]
    for program in options.program or SMALL:
        work = SMALL[program] if options.quick else None
        runs = run(program, rounds, work, repetitions, left_out)
        print("", *table(program, runs), sep="\n", flush=True)
        programs[program] = dataclasses.asdict(runs)
    if options.json is not None:
        written = {"environment": known, "programs": programs}
        options.json.write_text(json.dumps(written, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
