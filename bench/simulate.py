"""Whether `ungil simulate` says what then happens: predictions beside real runs of six programs.

    python bench/simulate.py [--rounds N] [--seconds S] [--program NAME | --others] [--json FILE]
        [--markdown] [--keep FOLDER | --kept FOLDER] [--quick]

Each round records each program under CPython's own rules, predicts from that trace what it would
wait under three policies and with a switch interval of 50 us, and runs it so. The stock prediction
stands beside the recording that it was made from. Rounds take turns, and figures are medians over
them. Where it may, the script runs the programs at nice -20, so that others of a shared machine
take less of it. A run beside which the machine itself was slower than at its best (bench/quiet.py)
is repeated, up to twice. `--keep` keeps what was recorded; `--kept` makes the predictions of that
again, and records nothing.

A ratio is predicted to real, of the median wait of all threads, and of the median wait of the
thread that waited longest under CPython's rules. The mean of all waits stands beside them: where
half of the waits are short and half are long, it says more than a median. So does the throughput:
how many blocking calls a second all threads come back from. A ratio is marked with !
if it is off by more than a quarter, and with !! if the prediction is also outside of what the real
runs had, and by more than 0.1 ms: about what a machine needs to wake two threads, one after the
other. The ranking is right if of any two ways to schedule whose real medians (of that thread)
differ by more than a quarter, and whose real runs do not overlap, the better one was predicted to
be better. Beside each ratio stands in how many rounds the real median was within the range that
was predicted.
"""

import argparse
import itertools
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from quiet import TRIES, Quiet
from rich.console import Console
from rich.table import Table
from surroundings import print_environment

PROGRAM = Path(__file__).parent / "programs" / "simulated.py"
PROGRAMS = ["convoy", "flask", "fastapi", "pool", "event-loop", "queues"]
LIBRARIES = ["fastapi", "flask", "uvicorn", "waitress", "werkzeug"]
OTHERS = ["django", "grpc", "waitress", "tornado", "aiohttp", "joblib", "batches"]
"""Seven with which the simulation was tried after it was made."""
LIBRARIES_OF_OTHERS = [
    "aiohttp",
    "cheroot",
    "django",
    "flask",
    "grpcio",
    "joblib",
    "tornado",
    "waitress",
]
INTERVAL = "50 us"
INTERVAL_S = 5e-5
VARIANTS = ["interactive", "fair", "batch", INTERVAL]
CLOSE = 1.25
"""A prediction is good up to this factor, and figures that differ by less are equal."""
LEAST_US = 1.0
RESOLUTION_US = 100.0
"""What two wake-ups of a thread take."""
LEAST_ROUNDS = 2
"""So many rounds have no median of others."""
WIDTH = 175

Figures = dict[str, Any]


def main() -> None:
    """Measures and prints."""
    made = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    made.add_argument("--rounds", type=int, default=5)
    made.add_argument("--seconds", type=float, default=4.0, help="of each run [4]")
    names = made.add_mutually_exclusive_group()
    names.add_argument(
        "--program", choices=[*PROGRAMS, *OTHERS], action="append", help="instead of all"
    )
    names.add_argument("--others", action="store_true", help="seven others, instead of these")
    made.add_argument("--seed", type=int, default=0, help="of the predictions [0]")
    made.add_argument("--json", type=Path, help="write all figures there")
    made.add_argument("--markdown", action="store_true", help="also print docs/simulate.md's table")
    recordings = made.add_mutually_exclusive_group()
    recordings.add_argument("--keep", type=Path, help="a folder for the recordings")
    recordings.add_argument("--kept", type=Path, help="a folder with the recordings of such a run")
    made.add_argument("--quick", action="store_true", help="one short round")
    options = made.parse_args()
    if options.quick:
        options.rounds, options.seconds = 1, 1.5
    names = options.program or (OTHERS if options.others else PROGRAMS)
    print_environment(["ungil", *(LIBRARIES_OF_OTHERS if options.others else LIBRARIES)])
    rounds: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    quiet = None if options.kept else Quiet()
    with tempfile.TemporaryDirectory(prefix="ungil-simulate-") as temporary:
        folder = options.kept or options.keep or Path(temporary)
        for number, name in itertools.product(range(options.rounds), names):
            rounds[name].append(measured(name, folder / f"{number}-{name}", quiet, options))
    if options.json:
        options.json.write_text(json.dumps(rounds, indent=1))
    print_tables(rounds, options)
    print(quiet or f"the recordings are those in {options.kept.name}")
    if options.markdown:
        print_markdown(rounds)


def measured(
    name: str, folder: Path, quiet: Quiet | None, options: argparse.Namespace
) -> dict[str, Any]:
    """One round of one program; without `quiet` it was recorded before."""
    folder.mkdir(parents=True, exist_ok=True)

    def recorded(variant: str) -> Path:
        kept = folder / f"{variant.replace(' ', '-')}.pftrace"
        if quiet is not None:
            tries = [kept.with_suffix(f".{number}.pftrace") for number in range(TRIES)]
            best = quiet.run(lambda number: record(name, variant, tries[number], options))
            tries[best].rename(kept)
            for other in tries:
                other.unlink(missing_ok=True)
        return kept

    trace = recorded("stock")
    stock = simulated(trace, ["--policy", "stock"], options)
    worst = max(stock["recorded"]["threads"], key=lambda thread: thread["waited_s"])["name"]
    found = {"stock": pair(stock["recorded"], stock, worst)}
    for variant in VARIANTS:
        rules = ["--interval", "0.05"] if variant == INTERVAL else ["--policy", variant]
        prediction = simulated(trace, rules, options)
        real = simulated(recorded(variant), ["--runs", "1", "--cores", "64"], options)
        found[variant] = pair(real["recorded"], prediction, worst)
    if not (options.keep or options.kept):
        shutil.rmtree(folder)
    return {"worst": worst, **found}


def pair(real: Figures, prediction: Figures, worst: str) -> dict[str, list[float]]:
    """What is compared: real, predicted, and the range of that."""
    both = (real, prediction["predicted"])
    ranges = prediction["ranges"]
    names = [thread["name"] for thread in prediction["predicted"]["threads"]]
    its = ranges["threads"][names.index(worst)] if worst in names else ranges
    ends = {"all": ranges["wait_p50_us"], "worst": its["wait_p50_us"]}
    return {
        "all": [run["waits"]["p50_us"] for run in both],
        "worst": [of_thread(run, worst, lambda it: it["waits"]["p50_us"]) for run in both],
        "mean": [run["waits"]["mean_us"] for run in both],
        "calls": [run["returns"]["count"] / run["duration_s"] for run in both],
    } | {f"{of} range": [range_["low"], range_["high"]] for of, range_ in ends.items()}


def of_thread(run: Figures, name: str, figure: Callable[[Figures], float]) -> float:
    """The figure of the thread of that name that waited longest; 0 if there is none."""
    named = [thread for thread in run["threads"] if thread["name"] == name]
    return figure(max(named, key=lambda thread: thread["waited_s"])) if named else 0.0


def record(name: str, variant: str, trace: Path, options: argparse.Namespace) -> None:
    """One real run."""
    words = ["trace", "--quiet", "--force", "--no-children", "-o", str(trace)]
    words += [] if variant in ("stock", INTERVAL) else ["--policy", variant]
    words += [str(PROGRAM), name, "--seconds", str(options.seconds)]
    words += ["--interval", str(INTERVAL_S)] if variant == INTERVAL else []
    subprocess.run(
        [sys.executable, "-m", "ungil", *words],
        check=True,
        stdout=subprocess.DEVNULL,
        preexec_fn=first,
    )


def first() -> None:
    """Go before others, where that is allowed: among those of a session, and as a session."""
    os.setsid()
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, -20)
        Path("/proc/self/autogroup").write_text("-20")


def simulated(trace: Path, rules: list[str], options: argparse.Namespace) -> Figures:
    """What the simulation says."""
    words = ["simulate", str(trace), *rules, "--seed", str(options.seed), "--json"]
    done = subprocess.run([sys.executable, "-m", "ungil", *words], check=True, capture_output=True)
    return json.loads(done.stdout)["predictions"][0]


def print_tables(rounds: dict[str, list[dict[str, Any]]], options: argparse.Namespace) -> None:
    """One row for each program and way to schedule, and how many are good."""
    console = Console(width=WIDTH)
    title = (
        f"{options.rounds} rounds of {options.seconds:g} s; waits in ms, medians over the rounds"
    )
    table = Table(
        "program",
        "rules",
        "all p50 real",
        "predicted",
        "ratio",
        "in range",
        "thread",
        "p50 real",
        "predicted",
        "ratio",
        "in range",
        "mean real",
        "predicted",
        "ratio",
        "calls/s real",
        "predicted",
        "ratio",
        title=title,
    )
    good = {"all": 0, "worst": 0, "mean": 0, "calls": 0}
    fair = {"all": 0, "worst": 0}
    within = {"all": 0, "worst": 0}
    rows = 0
    for name, found in rounds.items():
        for variant in ["stock", *VARIANTS]:
            cells = [name, variant]
            for of in ("all", "worst"):
                real, predicted = medians(found, variant, of)
                ratio = max(predicted, LEAST_US) / max(real, LEAST_US)
                is_good = is_close(ratio)
                is_fair = is_good or is_near([it[variant][of][0] for it in found], predicted)
                good[of] += is_good
                fair[of] += is_fair
                inside = sum(map(is_inside, (it[variant] for it in found), itertools.repeat(of)))
                within[of] += 0 if variant == "stock" else inside
                if of == "worst":
                    cells.append(found[0]["worst"][:24])
                cells += [
                    f"{real / 1e3:.3g}",
                    f"{predicted / 1e3:.3g}",
                    f"{ratio:.2f}{'' if is_good else ' !' if is_fair else ' !!'}",
                    f"{inside} of {len(found)}",
                ]
            for of in ("mean", "calls"):
                both = medians(found, variant, of)
                ratio = both[1] / max(both[0], LEAST_US)
                good[of] += is_close(ratio)
                cells += [f"{it:,.0f}" if of == "calls" else f"{it / 1e3:.3g}" for it in both]
                cells.append(f"{ratio:.2f}")
            table.add_row(*cells)
            rows += 1
    console.print(table)
    for of, what in (("all", "all threads"), ("worst", "the thread that waited longest")):
        print(
            f"median wait of {what} within {CLOSE - 1:.0%}: {good[of]} of {rows}; "
            f"or like a real run, or within {RESOLUTION_US / 1e3:g} ms: {fair[of]}"
        )
        others = options.rounds * len(rounds) * len(VARIANTS)
        print(f"  under other rules within the predicted range: {within[of]} of {others}")
    print(f"mean wait of all threads within {CLOSE - 1:.0%}: {good['mean']} of {rows}")
    print(f"blocking calls a second within {CLOSE - 1:.0%}: {good['calls']} of {rows}")
    if options.rounds > LEAST_ROUNDS:
        for of, what in (("all", "median of all threads"), ("mean", "mean")):
            real, predicted = (agreeing(rounds, of, which) for which in (0, 1))
            print(
                f"{what} within {CLOSE - 1:.0%} of the median of the other real runs, of {rows}: "
                f"one real run {real:.1f}, one prediction {predicted:.1f}"
            )
    for name, found in rounds.items():
        wrong = list(misranked(found))
        print(f"ranking of {name}: {'right' if not wrong else 'wrong: ' + ', '.join(wrong)}")


def print_markdown(rounds: dict[str, list[dict[str, Any]]]) -> None:
    """The table of docs/simulate.md."""
    print("| program | rules | all waits p50, real ms | predicted | ratio |", end="")
    print(" one thread p50, real ms | predicted | ratio | mean, ratio | calls/s, ratio |")
    print("|---" * 10 + "|")
    for name, found in rounds.items():
        for variant in ["stock", *VARIANTS]:
            cells = [name, variant]
            for of in ("all", "worst"):
                every = [it[variant][of][0] for it in found]
                real, predicted = medians(found, variant, of)
                ratio = max(predicted, LEAST_US) / max(real, LEAST_US)
                told = f"{ratio:.2f}"
                if not is_close(ratio):
                    told = f"{told}*" if is_near(every, predicted) else f"**{told}**"
                spread = " to ".join(f"{it / 1e3:.3g}" for it in (min(every), max(every)))
                cells += [f"{real / 1e3:.3g} ({spread})", f"{predicted / 1e3:.3g}", told]
            for of in ("mean", "calls"):
                real, predicted = medians(found, variant, of)
                ratio = predicted / max(real, LEAST_US)
                cells.append(f"{ratio:.2f}" if is_close(ratio) else f"**{ratio:.2f}**")
            print(f"| {' | '.join(cells)} |")


def agreeing(rounds: dict[str, list[dict[str, Any]]], of: str, which: int) -> float:
    """How many figures of one round are close to the real ones of the others, on average.

    `which`: 0 for real figures, 1 for predicted ones.
    """
    close = 0
    for found in rounds.values():
        for variant in ["stock", *VARIANTS]:
            for number, one in enumerate(found):
                others = [it[variant][of][0] for it in found if it is not found[number]]
                real = max(statistics.median(others), LEAST_US)
                close += is_close(max(one[variant][of][which], LEAST_US) / real)
    return close / len(next(iter(rounds.values())))


def is_close(ratio: float) -> bool:
    """Whether a prediction is good."""
    return 1 / CLOSE <= ratio <= CLOSE


def is_inside(compared: dict[str, list[float]], of: str) -> bool:
    """Whether the real median was in the predicted range."""
    low, high = compared[f"{of} range"]
    return low <= compared[of][0] <= high


def is_near(real: list[float], predicted: float) -> bool:
    """Whether a real run had such a median, or all are nearer than anybody can tell."""
    return (
        min(real) <= predicted <= max(real)
        or abs(predicted - statistics.median(real)) <= RESOLUTION_US
    )


def do_overlap(found: list[dict[str, Any]], one: str, other: str) -> bool:
    """Whether some real run under one of them is between those under the other."""
    first, second = ([it[variant]["worst"][0] for it in found] for variant in (one, other))
    return len(found) > 1 and min(first) <= max(second) and min(second) <= max(first)


def medians(found: list[dict[str, Any]], variant: str, of: str) -> tuple[float, float]:
    """Real and predicted, over the rounds."""
    real, predicted = zip(*(round_[variant][of] for round_ in found), strict=True)
    return statistics.median(real), statistics.median(predicted)


def misranked(found: list[dict[str, Any]]) -> Iterator[str]:
    """Pairs that were predicted the other way round."""
    for one, other in itertools.combinations(["stock", *VARIANTS], 2):
        (real, predicted), (real_other, predicted_other) = (
            medians(found, it, "worst") for it in (one, other)
        )
        low, high = sorted((max(real, LEAST_US), max(real_other, LEAST_US)))
        if high / low <= CLOSE or do_overlap(found, one, other):
            continue
        if (real < real_other) != (predicted < predicted_other):
            yield f"{one} and {other}"


if __name__ == "__main__":
    main()
