"""fanout: how long ten thousand hosts take."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ungil.lab.chart import Kind, Mark, Ranked, Row, Rows
from ungil.lab.experiments.fanout import (
    OWN,
    go_ways,
    own_ways,
    published,
    variant_of,
    ways,
)
from ungil.lab.figures import median
from ungil.lab.findings import Found
from ungil.lab.findings.words import joined, row
from ungil.lab.results import Results
from ungil.lab.units import SECONDS

NORNIR = "nornir"
# What a label has no room for, and what it says instead.
SHORTER = {"nornir ": "", "threaded": "threads", "GOMAXPROCS=": "procs "}


def _rtts_s(results: Results) -> list[float]:
    return sorted({float(it.settings["rtt_s"]) for it in results})


def _walls_s(results: Results, rtt_s: float) -> dict[str, tuple[float, Kind]]:
    """What each way took: Go, nornir in ungil's own Python, the newest of other interpreters."""
    walls_s: dict[str, tuple[float, Kind]] = {}

    def add(name: str, python: str, kind: Kind) -> None:
        wall_s = median(results.rounds(python, variant_of(rtt_s, name)), "wall_s")
        if wall_s is not None:
            walls_s[name] = wall_s, kind

    for name in go_ways():
        add(name, "", "stock")
    for python in [it for it in results.pythons() if OWN in it][-1:]:
        for way in own_ways():
            add(way.name, python, way.kind)
    for python in [it for it in results.pythons() if OWN not in it][-1:]:
        for way in ways():
            add(way.name, python, way.kind)
    return walls_s


def _best(walls: Mapping[str, tuple[float, Kind]], kind: Kind, word: str) -> float | None:
    """The quickest of a kind whose name has a word."""
    those = (wall for name, (wall, it) in walls.items() if it == kind and word in name)
    return min(those, default=None)


def _then_s(rtt_s: float, word: str) -> dict[str, float]:
    """What was published of the ways with a word in their name."""
    return {name: it.wall_s for name, it in published(rtt_s).items() if word in name}


def found(results: Results) -> Found:
    """The quickest of nornir, where hosts answer soonest."""
    rtts_s = _rtts_s(results)
    if not rtts_s:
        return Found("Of ten thousand hosts nothing was measured", "", SECONDS, "log", [], [])
    rtt_s = rtts_s[0]
    walls = _walls_s(results, rtt_s)
    items = max(it.settings["items"] for it in results)
    # Where nornir is not installed, plain threads stand for what it does.
    word = NORNIR if _best(walls, "ungil", NORNIR) is not None else ""
    now = _best(walls, "stock", f"{NORNIR} threaded" if word else "threads")
    ungil = _best(walls, "ungil", word)
    then = min(_then_s(rtt_s, NORNIR).values(), default=None)
    who = NORNIR if word else "threads"
    told = [f"{SECONDS(then)} in 2020"] if then is not None else []
    told += [f"{SECONDS(now)} with {who} today"] if now is not None else []
    told += [f"{SECONDS(ungil)} under ungil"] if ungil is not None else []
    floor = f"; the hosts alone take {SECONDS(rtt_s)}"
    return Found(
        f"{items:,} hosts took {joined(told)}{floor}",
        f"time for {items:,} hosts that answer after {SECONDS(rtt_s)}",
        SECONDS,
        "log",
        [
            *row("then: 2020", then, "published"),
            *row(f"now: {who}", now, "stock"),
            *row("ungil", ungil, "ungil"),
        ],
        [_chart(results, it, items) for it in dict.fromkeys((rtts_s[0], rtts_s[-1]))],
    )


def _chart(results: Results, rtt_s: float, items: int) -> Ranked:
    walls = _walls_s(results, rtt_s)
    python = next((it for it in reversed(results.pythons()) if OWN not in it), "")
    mine = {name: it for name, it in walls.items() if NORNIR in name}
    rest = {name: it for name, it in walls.items() if name not in mine}
    nornir = [*_published(rtt_s, NORNIR), *_rows(mine)]
    alone = [*_published(rtt_s, "gornir"), *_rows(rest)]
    return Ranked(
        f"Time for {items:,} hosts that answer after {SECONDS(rtt_s)}",
        "Whole processes, with their start. Nothing can be quicker than the hosts.",
        [Rows("nornir", nornir), Rows(f"Go, and Python {python} alone".strip(), alone)],
        SECONDS,
        "log",
        rtt_s,
        "the hosts alone",
    )


def _published(rtt_s: float, word: str) -> Iterator[Row]:
    """The quickest that was published and, of threads, what a thousand took."""
    then = _then_s(rtt_s, word)
    best = min(then, key=lambda name: then[name], default=None)
    for name in dict.fromkeys([best, *(name for name in then if " 1,000," in name)]):
        if name is not None:
            way, _, _hosts = name.removeprefix("2020: ").rpartition(", ")
            yield Row(f"2020: {_short(way)}", [Mark(then[name], "published")])


def _rows(walls: Mapping[str, tuple[float, Kind]]) -> Iterator[Row]:
    for name, (wall, kind) in walls.items():
        yield Row(_short(name), [Mark(wall, kind)])


def _short(name: str) -> str:
    for long, short in SHORTER.items():
        name = name.replace(long, short)
    return name
