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

from surroundings import environment

ROOT = Path(__file__).parent.parent
EXAMPLE = ["cargo", "run", "--quiet", "--release", "-p", "ungil-fanout", "--example", "knee", "--"]

# Okabe and Ito's colours, which everybody can tell apart.
AUTO, FIXED, KNEE, GOOD = "#0072b2", "#e69f00", "#555555", "#009e73"


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
    """A column for each scenario: the limit, the throughput, and fixed limits for comparison."""
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
    figure, rows = plt.subplots(
        3, len(panels), figsize=(3.1 * len(panels), 8.4), layout="constrained"
    )
    for panel, (limit, rate, beside) in zip(panels, rows.T, strict=True):
        limit.set_title(f"{panel['name']}\nknee {panel['knee']:,}, {panel['items']:,} items")
        _limit_over_time(limit, panel)
        _throughput_over_time(rate, panel)
        _beside_fixed_limits(beside, panel)
    rows[0][0].set_ylabel("limit")
    rows[1][0].set_ylabel("items a second")
    rows[2][0].set_ylabel("99th percentile of latency, s")
    figure.savefig(path, metadata={"Date": None, "Creator": "ungil bench/fanout_limit.py"})


def _limit_over_time(axes: Any, panel: dict[str, Any]) -> None:
    times, limits = [row[0] for row in panel["course"]], [row[1] for row in panel["course"]]
    axes.plot(times, limits, color=AUTO, label="auto")
    axes.axhline(panel["best"][0], color=FIXED, label="best fixed limit")
    axes.plot(*_knee(panel), color=KNEE, linestyle="--", linewidth=1, label="knee")
    axes.set_yscale("log")
    axes.legend(frameon=False, loc="lower right")
    axes.set_xlabel("seconds")


def _throughput_over_time(axes: Any, panel: dict[str, Any]) -> None:
    for course, colour in (("course_of_best", FIXED), ("course", AUTO)):
        rows = panel[course]
        # A tenth of the run at a time: single parts show little but chance.
        width = max(1, len(rows) // 20)
        smooth = [
            sum(row[2] for row in rows[max(0, at - width) : at + 1])
            / len(rows[max(0, at - width) : at + 1])
            for at in range(len(rows))
        ]
        axes.plot([row[0] for row in rows], smooth, color=colour)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("seconds")


def _beside_fixed_limits(axes: Any, panel: dict[str, Any]) -> None:
    _, best, p99 = panel["best"]
    slowest = max([*(row[2] for row in panel["fixed"]), 2 * p99, panel["auto"][1]]) * 1.4
    quickest = min(row[2] for row in panel["fixed"]) / 1.4
    axes.fill_between([0.75 * best, 1.15 * best], quickest, 2 * p99, color=GOOD, alpha=0.13)
    axes.plot(
        [row[1] for row in panel["fixed"]], [row[2] for row in panel["fixed"]], "o-", color=FIXED,
        markersize=4, linewidth=1,
    )  # fmt: skip
    for limit, throughput, latency in panel["fixed"][::2]:
        axes.annotate(
            f"{limit:,}", (throughput, latency), textcoords="offset points", xytext=(-4, 5),
            ha="right", color=FIXED, fontsize=7,
        )  # fmt: skip
    axes.plot(*panel["auto"], marker="*", color=AUTO, markersize=14, linestyle="none")
    axes.set_xlim(0, 1.15 * best)
    axes.set_ylim(quickest, slowest)
    axes.set_yscale("log")
    axes.set_xlabel("items a second")


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
    latencies = sorted(outcome.finished - outcome.started for outcome in outcomes)
    took = time.monotonic() - begun
    found = str(limit) if isinstance(limit, int) else f"auto: {outcomes.report}"
    return Came(items / took, latencies[int(items * 0.99)], found)


def real(path: Path | None) -> None:
    """The engine beside fixed limits, at three knees."""
    numbers: list[dict[str, Any]] = []
    for knee, seconds, items in ((20, 0.01, 5_000), (200, 0.03, 20_000), (2_000, 0.3, 60_000)):
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
        path.write_text(json.dumps({"environment": environment(["ungil"]), "runs": numbers}))


if __name__ == "__main__":
    sys.exit(main())
