"""`limit="auto"` against services with a known knee, beside fixed limits.

    python bench/fanout_limit.py [--plot FILE.svg] [--table SEEDS] [--real] [--json FILE]

Simulated services first (a Rust example, so cargo has to be there): the plot shows the limit over
time and what it comes to beside the best fixed limit, `--table` prints every scenario over so many
seeds. `--real` drives the engine itself instead: items that wait for one of `knee` places in this
process, on the lean loop.

A good limit has at least 75 % of the best fixed limit's throughput and at most twice its 99th
percentile of latency. The best fixed limit is the best of a sweep; its latency is that of the
smallest limit with 99 % of the best throughput.
"""

import argparse
import json
import subprocess
import sys
import time
from collections import deque
from pathlib import Path
from typing import Any, NamedTuple

from surroundings import print_environment

ROOT = Path(__file__).parent.parent
EXAMPLE = ["cargo", "run", "--quiet", "--release", "-p", "ungil-fanout", "--example", "knee", "--"]

# Okabe and Ito's colours, which everybody can tell apart.
AUTO, FIXED, KNEE, GOOD = "#0072b2", "#e69f00", "#555555", "#009e73"
NAMES = "#8a5f00"  # of the fixed limits, dark enough to be read


def main() -> None:
    """Measures, prints and draws."""
    made = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    made.add_argument("--plot", type=Path, default=ROOT / "docs" / "fanout-limits.svg")
    made.add_argument("--table", type=int, metavar="SEEDS", help="all scenarios as a table")
    made.add_argument("--real", action="store_true", help="the engine instead of a simulation")
    made.add_argument("--json", type=Path, help="where to write the numbers of --real")
    options = made.parse_args()
    if options.real:
        real(options.json)
    elif options.table:
        subprocess.run([*EXAMPLE, "table", str(options.table)], cwd=ROOT, check=True)
    else:
        ran = subprocess.run([*EXAMPLE, "plot"], cwd=ROOT, check=True, stdout=subprocess.PIPE)
        draw(json.loads(ran.stdout), options.plot)
        print(f"drawn into {options.plot}")


def draw(panels: list[dict[str, Any]], path: Path) -> None:
    """For each scenario the limit over time, and below what came of it beside fixed limits."""
    import matplotlib as mpl

    mpl.use("svg")
    from matplotlib import pyplot as plt

    plt.rcParams.update(
        {
            "font.size": 9,
            "svg.fonttype": "none",
            # The same numbers give the same file.
            "svg.hashsalt": "ungil",
            "axes.spines.top": False,
            "axes.spines.right": False,
        }
    )
    columns = 3
    rows = 2 * (len(panels) // columns)
    # Opaque white, so that it is the same on a dark page.
    figure, axes = plt.subplots(
        rows, columns, figsize=(9.6, 2.5 * rows), layout="constrained", facecolor="white"
    )
    for number, panel in enumerate(panels):
        row, column = divmod(number, columns)
        limit, beside = axes[2 * row][column], axes[2 * row + 1][column]
        limit.set_title(f"{panel['title']}\n{panel['items']:,} items of 50 ms", fontsize=10)
        _limit_over_time(limit, panel)
        _beside_fixed_limits(beside, panel)
        if column == 0:
            limit.set_ylabel("in flight")
            beside.set_ylabel("99th percentile of latency,\ntimes that of the best")
    lines, labels = axes[0][0].get_legend_handles_labels()
    more, more_labels = axes[1][0].get_legend_handles_labels()
    figure.legend(
        lines + more, labels + more_labels, loc="outside upper center", ncols=5, frameon=False
    )
    figure.savefig(path, metadata={"Date": None, "Creator": "ungil bench/fanout_limit.py"})


def _limit_over_time(axes: Any, panel: dict[str, Any]) -> None:
    times, limits = [row[0] for row in panel["course"]], [row[1] for row in panel["course"]]
    axes.plot(times, limits, color=AUTO, linewidth=1.2, label='limit="auto"')
    axes.plot(*_knee(panel), color=KNEE, linestyle="--", linewidth=1.2, label="knee of the service")
    axes.set_ylim(0, 2.2 * panel["knee"] * max(1, panel["moves"]))
    axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.set_xlabel("seconds")


def _beside_fixed_limits(axes: Any, panel: dict[str, Any]) -> None:
    _, best, p99 = panel["best"]
    axes.axhspan(0, 2, xmin=75 / 115, color=GOOD, alpha=0.15, linewidth=0, label="good")
    fixed = [(limit, 100 * rate / best, tail / p99) for limit, rate, tail in panel["fixed"]]
    axes.plot(
        [rate for _, rate, _ in fixed], [tail for _, _, tail in fixed], "o-", color=FIXED,
        markersize=4, linewidth=1, label="fixed limits",
    )  # fmt: skip
    named = [(-99.0, -99.0)]
    for limit, rate, tail in fixed:
        # Only where there is room for another number.
        if all(abs(rate - x) > 11 or abs(tail - y) > 0.28 for x, y in named):
            named.append((rate, tail))
            axes.annotate(
                f"{limit:,}", (rate, tail), textcoords="offset points", xytext=(-3, 5),
                ha="right", color=NAMES, fontsize=8,
            )  # fmt: skip
    rate, tail = panel["auto"]
    axes.plot(100 * rate / best, tail / p99, marker="*", color=AUTO, markersize=14, linestyle="")
    axes.set_xlim(0, 115)
    axes.set_ylim(0, 3)
    axes.set_xlabel("items a second, % of the best")


def _knee(panel: dict[str, Any]) -> tuple[list[float], list[float]]:
    """The knee over time; it moves when half of the items are done."""
    done, half, end = 0.0, 0.0, panel["course"][-1][0]
    part = panel["course"][0][0]
    for at, _, rate, _ in panel["course"]:
        done += rate * part
        if done >= panel["items"] / 2:
            half = at
            break
    knee, moved = panel["knee"], panel["knee"] * panel["moves"]
    return [0, half, half, end], [knee, knee, moved, moved]


class Came(NamedTuple):
    """What a run came to."""

    throughput: float
    p99: float
    limit: str


class Service:
    """Serves `knee` at once, each for the same time; the others wait in a line."""

    def __init__(self, knee: int, seconds: float) -> None:
        self.seconds = seconds
        # When each place is free again, the next first: all take equally long.
        self._free = deque([0.0] * knee)

    async def serve(self, _item: int) -> None:
        """One item's turn."""
        from ungil.fanout import sleep

        now = time.monotonic()
        begins = max(now, self._free.popleft())
        self._free.append(begins + self.seconds)
        await sleep(begins + self.seconds - now)


def _run(knee: int, seconds: float, items: int, limit: int | str) -> Came:
    from ungil.fanout import fanout

    service = Service(knee, seconds)
    begun = time.monotonic()
    outcomes = fanout(
        service.serve, range(items), limit=limit, mode="lean", group=lambda _: "service"
    )
    latencies = sorted(outcome.seconds for outcome in outcomes)
    took = time.monotonic() - begun
    found = str(limit) if isinstance(limit, int) else f"auto: {outcomes.report}"
    return Came(items / took, latencies[int(items * 0.99)], found)


def real(path: Path | None) -> None:
    """The engine beside fixed limits, at three knees."""
    numbers: list[dict[str, Any]] = []
    known = print_environment(["ungil"])
    for knee, seconds, items in ((20, 0.05, 2_000), (200, 0.05, 20_000), (2_000, 0.1, 200_000)):
        fixed = [
            _run(knee, seconds, items, max(1, round(knee * factor)))
            for factor in (0.5, 0.8, 1, 1.25, 2)
        ]
        best = max(it.throughput for it in fixed)
        p99 = next(it.p99 for it in fixed if it.throughput >= 0.99 * best)
        auto = _run(knee, seconds, items, "auto")
        good = auto.throughput >= 0.75 * best and auto.p99 <= 2 * p99
        print(
            f"knee {knee:,} at {seconds * 1e3:.0f} ms, {items:,} items: "
            f"{auto.throughput / best:.2f} of the best throughput ({best:,.0f}/s), "
            f"{auto.p99 / p99:.2f} times its p99 ({p99 * 1e3:.1f} ms){'' if good else ', too far'}"
        )
        print(f"    {auto.limit}")
        row = {"knee": knee, "seconds": seconds, "items": items, "auto": auto._asdict()}
        numbers.append({**row, "fixed": [it._asdict() for it in fixed]})
    if path is not None:
        path.write_text(json.dumps({"environment": known, "runs": numbers}))


if __name__ == "__main__":
    sys.exit(main())
