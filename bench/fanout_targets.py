"""What fanout.py has to show: the targets of "fan out", in terms of the peers of the same run."""

import statistics
from collections.abc import Callable, Iterator

import fanout_cases as cases
from fanning import Case, cpu, inner_wall, memory, wall
from interleaving import Measured, Runs, Target
from sharing import broke
from surroundings import spread

Figure = Callable[[Measured], float]

# Of gornir's, by RTT in ms: issue 5 names two.
LEAN_WALL = {50: 0.8, 1000: 1.0}
LEAN_CPU = LEAN_MEMORY = 0.5
# Of asyncio.gather's. With a long RTT the wall time is the RTT, and says nothing.
ASYNCIO_WALL = ASYNCIO_CPU = 0.9
LONG_RTT_MS = 1000.0
LONG_RTT_CPU = 0.8
# Of gornir's whole run, in a warm process.
WARM_WALL = 1.0
# Of goroutines'.
TCP_WALL = 1.5
# Of the best ThreadedRunner's, by RTT in ms.
NORNIR_ASYNC_WALL = {50: 0.38, 1000: 0.6}
NORNIR_GREEN_WALL = {50: 0.6, 1000: 0.65}
# Of that of gevent's own pool.
GREEN_MEMORY = 1.3
# Peak memory of a million items beside that of ten thousand; what is left is the allocator's.
FLAT = 1.1

PYTHON_PEERS = ("asyncio", "threads", "gevent", "trio", "aiometer")


def targets(taken: list[Runs]) -> Iterator[Target]:
    """Those of the settings that were measured."""
    for runs in taken:
        kind, _, rest = runs.setting.partition(", ")
        rtt_ms = float(rest.split()[1]) if rest.startswith("RTT") else 0.0
        if kind == "sleep":
            yield from _sleep(runs, rtt_ms)
        elif kind == "tcp":
            yield from _tcp(runs)
        elif kind == "warm":
            yield from _warm(runs)
        elif kind == "memory":
            yield from _memory(runs)
        elif kind == "concurrent":
            yield from _concurrent(runs)


def _ratio(
    runs: Runs,
    one: str,
    peer: Case,
    of: Figure,
    limit: float,
    what: str,
    peers: Figure | None = None,
) -> Iterator[Target]:
    """A figure of ours as a part of a peer's (`peers`, if another) in the same round."""
    if one not in runs.rounds[0] or peer.name not in runs.rounds[0]:
        return
    claim = f"{runs.setting}: {what} of {one} at most {limit:g} of that of {peer.name}"
    ours = Case(one, "")
    for case in (ours, peer):
        if (why := broke(runs, case)) is not None:
            yield Target(claim, False, f"{case.name} cannot be measured: {why}")
            return
    pairs = zip(runs.each(ours, of), runs.each(peer, peers or of), strict=True)
    seen = [our / their for our, their in pairs]
    yield Target(claim, statistics.median(seen) <= limit, spread(seen))


def _sleep(runs: Runs, rtt_ms: float) -> Iterator[Target]:
    for peer in (cases.GORNIR, cases.GORNIR_NULL):
        if rtt_ms in LEAN_WALL:
            yield from _ratio(runs, cases.LEAN, peer, wall, LEAN_WALL[int(rtt_ms)], "wall time")
        yield from _ratio(runs, cases.LEAN, peer, cpu, LEAN_CPU, "CPU time")
        yield from _ratio(runs, cases.LEAN, peer, memory, LEAN_MEMORY, "peak memory")
    # Each beside what is like it, and what a user gets beside what he had.
    for one, peer in (
        (cases.ASYNCIO_STOCK, cases.GATHER),
        (cases.ASYNCIO, cases.UVLOOP_GATHER),
        (cases.ASYNCIO, cases.GATHER),
    ):
        if rtt_ms >= LONG_RTT_MS:
            yield from _ratio(runs, one, peer, cpu, LONG_RTT_CPU, "CPU time")
            continue
        yield from _ratio(runs, one, peer, wall, ASYNCIO_WALL, "wall time")
        yield from _ratio(runs, one, peer, cpu, ASYNCIO_CPU, "CPU time")
    if rtt_ms >= LONG_RTT_MS:
        yield from _ratio(runs, cases.LEAN, cases.GATHER, cpu, LONG_RTT_CPU, "CPU time")
    yield from _ratio(runs, cases.GREEN, cases.GEVENT, memory, GREEN_MEMORY, "peak memory")
    yield from _nornir(runs, rtt_ms)


def _nornir(runs: Runs, rtt_ms: float) -> Iterator[Target]:
    best = _best(runs, lambda case: case.name.startswith(cases.THREADED))
    if best is not None and rtt_ms in NORNIR_ASYNC_WALL:
        for one in (cases.NORNIR_LEAN, cases.NORNIR_ASYNCIO):
            yield from _ratio(runs, one, best, wall, NORNIR_ASYNC_WALL[int(rtt_ms)], "wall time")
        green = NORNIR_GREEN_WALL[int(rtt_ms)]
        yield from _ratio(runs, cases.NORNIR_GREEN, best, wall, green, "wall time")


def _tcp(runs: Runs) -> Iterator[Target]:
    yield from _ratio(runs, cases.LEAN, cases.GOROUTINES, wall, TCP_WALL, "wall time")
    best = _best(runs, lambda case: case.program in PYTHON_PEERS)
    if best is not None:
        yield from _ratio(runs, cases.LEAN, best, wall, 1.0, "wall time")


def _best(runs: Runs, eligible: Callable[[Case], bool]) -> Case | None:
    """The quickest of the peers that were measured."""
    peers = [
        case
        for case in (*cases.sleeping(10_000), *cases.talking(10_000))
        if eligible(case) and case.name in runs.rounds[0] and broke(runs, case) is None
    ]
    return min(peers, key=lambda case: runs.median(case, wall), default=None)


def _warm(runs: Runs) -> Iterator[Target]:
    for one in (cases.ASYNCIO, cases.ASYNCIO_STOCK):
        yield from _ratio(runs, one, cases.GORNIR, inner_wall, WARM_WALL, "wall time inside", wall)


def _memory(runs: Runs) -> Iterator[Target]:
    for case in cases.many(1):
        if case.program != "ungil" or case.name not in runs.rounds[0]:
            continue
        claim = (
            f"{case.name}: peak memory with the many items at most {FLAT:g} of that with the few"
        )
        if (why := broke(runs, case)) is not None:
            yield Target(claim, False, f"cannot be measured: {why}")
            continue
        seen = runs.each(case, lambda measured: measured["rss_mb"] / measured["few_rss_mb"])
        yield Target(claim, statistics.median(seen) <= FLAT, spread(seen))


def _concurrent(runs: Runs) -> Iterator[Target]:
    """Less than twice the sleep: the last began before the first ended."""
    sleep_s = float(runs.setting.rsplit(" ", 2)[1])
    for case in cases.concurrent(1):
        if case.program != "ungil" or case.name not in runs.rounds[0]:
            continue
        claim = f"{runs.setting}: {case.name} has them all at the same time"
        if (why := broke(runs, case)) is not None:
            yield Target(claim, False, f"cannot be measured: {why}")
            continue
        seen = runs.each(case, wall)
        yield Target(claim, max(seen) < 2 * sleep_s, f"{spread(seen)} s")
