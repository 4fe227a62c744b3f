"""What is compared: numbers that the length of a run does not change."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Literal

from ungil.comparison.measures import Gil, Group

Unit = Literal["s/s", "us", "1/s"]
Better = Literal["lower", "neither"]

FEW_WAITS = {"wait_p50_us": 10, "wait_p99_us": 100}
"""How many waits a percentile is made of at least."""


@dataclass
class Sums:
    """What some threads did in a stretch of a run."""

    seconds: float
    """How long that was."""
    whole_s: float
    """The same with the start-up, which CPU time is of."""
    groups: list[Group] = field(default_factory=list[Group])
    gils: list[Gil] = field(default_factory=list[Gil])

    def add(self, gil: Gil, groups: Iterable[Group] | None = None) -> None:
        """Count a whole GIL, or these groups of its threads alone."""
        if groups is None:
            self.gils.append(gil)
            self.groups += gil["groups"]
        else:
            self.groups += groups

    def of(self, part: Callable[[Group], float]) -> float:
        """The sum over all threads."""
        return sum(part(group) for group in self.groups)

    @property
    def threads(self) -> int:
        """How many threads there were."""
        return sum(group["threads"] for group in self.groups)

    @property
    def cpu_s(self) -> float | None:
        """Their CPU time, None if that of one is not known."""
        known = sum(group["cpu_threads"] for group in self.groups)
        return self.of(lambda it: it["cpu_s"]) if self.groups and known == self.threads else None


@dataclass(frozen=True)
class Metric:
    """A number that is compared."""

    key: str
    """Its name in JSON."""
    title: str
    """Its name for people."""
    unit: Unit
    better: Better
    least: float
    """A smaller difference means nothing, whatever the noise."""
    least_share: float
    """Nor does one that is a smaller part of the larger of the two."""
    of: Callable[[Sums], float | None]
    of_gils: bool = False
    """Whether it is a GIL's, and no thread's."""
    in_startup: bool = False
    """Whether the whole of a run counts what came before any process had a second thread, too."""


def _per_second(part: Callable[[Group], float]) -> Callable[[Sums], float | None]:
    return lambda sums: sums.of(part) / sums.seconds if sums.seconds > 0 else None


def _of_gils(part: Callable[[Gil], float]) -> Callable[[Sums], float | None]:
    return lambda sums: (
        sum(part(gil) for gil in sums.gils) / sums.seconds if sums.seconds > 0 else None
    )


def _cpu(sums: Sums) -> float | None:
    return None if sums.cpu_s is None or sums.whole_s <= 0 else sums.cpu_s / sums.whole_s


def _percentile(key: Literal["wait_p50_us", "wait_p99_us"]) -> Callable[[Sums], float | None]:
    def of(sums: Sums) -> float | None:
        # Percentiles cannot be added, so only one group at one GIL has any.
        if len(sums.groups) != 1 or sums.groups[0]["waits"] < FEW_WAITS[key]:
            return None
        return sums.groups[0][key]

    return of


WAITED = Metric(
    "waited", "waited", "s/s", "lower", 0.002, 0.05, _per_second(lambda it: it["waited_s"])
)
FOR_LOCKS = Metric(
    "waited_for_locks",
    "waited for locks",
    "s/s",
    "lower",
    0.002,
    0.05,
    _per_second(lambda it: it["lock_waited_s"]),
)
METRICS = (
    WAITED,
    Metric("wait_p50", "median wait", "us", "lower", 20.0, 0.1, _percentile("wait_p50_us")),
    Metric("wait_p99", "p99 wait", "us", "lower", 20.0, 0.1, _percentile("wait_p99_us")),
    Metric(
        "waited_after_blocking",
        "waited after blocking calls",
        "s/s",
        "lower",
        0.002,
        0.05,
        _per_second(lambda it: it["blocking_waited_s"]),
    ),
    Metric(
        "contended",
        "contended",
        "s/s",
        "lower",
        0.002,
        0.05,
        _of_gils(lambda it: it["contended_s"]),
        of_gils=True,
    ),
    FOR_LOCKS,
    Metric(
        "descheduled",
        "descheduled with the GIL",
        "s/s",
        "lower",
        0.002,
        0.05,
        _per_second(lambda it: it["not_run_s"]),
        in_startup=True,
    ),
    Metric("held", "held", "s/s", "neither", 0.002, 0.05, _per_second(lambda it: it["held_s"])),
    Metric("cpu", "CPU", "s/s", "neither", 0.005, 0.05, _cpu),
    Metric("waits", "waits", "1/s", "neither", 0.5, 0.05, _per_second(lambda it: it["waits"])),
    Metric(
        "blocking_calls",
        "blocking calls",
        "1/s",
        "neither",
        0.5,
        0.05,
        _per_second(lambda it: it["blocking_calls"]),
    ),
    Metric(
        "handoffs",
        "handoffs",
        "1/s",
        "neither",
        0.5,
        0.05,
        _of_gils(lambda it: it["handoffs"]),
        of_gils=True,
    ),
    Metric(
        "forced",
        "forced releases",
        "1/s",
        "neither",
        0.5,
        0.05,
        _per_second(lambda it: it["forced"]),
    ),
    Metric(
        "drop_requests",
        "drop requests",
        "1/s",
        "neither",
        0.5,
        0.05,
        _per_second(lambda it: it["drop_requests"]),
    ),
)
