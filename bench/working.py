"""What threads that compute got done, where they call a fixed function and count the calls."""

import statistics
from collections.abc import Iterator

from interleaving import Measured, Runs, Target
from peers import Variant
from surroundings import spread


def work(measured: Measured) -> float:
    """Calls per second of CPU time."""
    return measured["calls"] / measured["cpu_s"]


def pace(measured: Measured) -> float:
    """Calls per second of wall time."""
    return measured["calls"] / measured["wall_s"]


def switches(measured: Measured) -> float:
    """Context switches of the process per second."""
    return measured["context_switches"] / measured["wall_s"]


def kept(
    runs: Runs, variant: Variant, base: Variant, least: float, setting: str, whose: str
) -> Iterator[Target]:
    """That `variant` does at least this part of the work of `base`, which is called `whose`."""
    for of, unit in ((work, "CPU second"), (pace, "second")):
        ratios = runs.ratios(variant, base, of)
        yield Target(
            f"{setting}: work per {unit} at least {least} of {whose}",
            statistics.median(ratios) >= least,
            spread(ratios),
        )
