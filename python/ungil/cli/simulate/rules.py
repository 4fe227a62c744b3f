"""The rules of a simulation, as the command line writes them."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any, cast

from ungil.cli.scheduling import NEEDS_A_POLICY, known_policy, level_rule, milliseconds
from ungil.cli.simulate.answer import Listed
from ungil.errors import UsageError
from ungil.formatting import at_most_three_digits, plural, printable

COMPARED = (
    ("stock", None),
    ("stock", 0.05),
    ("interactive", None),
    ("fair", None),
    ("batch", None),
)
"""Policies with their quanta in ms (None: their own), compared where no rule is given."""
LISTED = 10
"""GILs that one sentence names."""
MOST_CORES = 100_000
MOST_RUNS = 1_000
MOST_WORK = 1e6
MOST_TIMES = 1_000_000


@dataclass(frozen=True)
class Choice:
    """The GIL that is simulated."""

    index: int
    listed: Listed

    def matching(self, pattern: str, option: str) -> list[int]:
        """The threads whose names match; UsageError if none does."""
        names = self.listed["threads"]
        found = [index for index, name in enumerate(names) if fnmatchcase(name, pattern)]
        if not found:
            known = ", ".join(sorted({printable(name) for name in names})[:10])
            raise UsageError(f"{option}: no thread's name matches {pattern!r}; there are {known}")
        return found


def chosen(listed: Sequence[Listed], process: str | None, gil: str | None, file: str) -> Choice:
    """The GIL that `process` and `gil` name, or the one that was wanted most."""
    if not listed:
        raise UsageError(f"no GIL was recorded in {file!r}: there is nothing to simulate")
    pid = _whole("--process", process, 1, 2**31) if process is not None else None
    number = _whole("--gil", gil, 0, 255) if gil is not None else None
    for index, one in enumerate(listed):
        if pid in (None, one["pid"]) and number in (None, one["gil"]):
            return Choice(index, one)
    there = "; ".join(f"process {one['pid']}, GIL {one['gil']}" for one in listed[:LISTED])
    more = len(listed) - LISTED
    raise UsageError(
        f"{file!r} has no such GIL; it has: {there}" + f"; and {more} more" * (more > 0)
    )


@dataclass(frozen=True)
class Rules:
    """What is to be different, not yet looked up in a trace."""

    policy: str | None
    """None for that of the recording."""
    quantum_ms: float | None
    no_gil: bool
    cores: int | None
    changes: tuple[tuple[str, str, float], ...]
    """Pattern, `x` for work or `*` for number, and by how much."""
    without: tuple[str, ...]
    priorities: tuple[tuple[str, str], ...]
    once: bool
    runs: int
    seed: int

    @classmethod
    def read(cls, options: Mapping[str, Any]) -> Rules:
        """What the options say; UsageError for what makes no sense."""
        policy, quantum, interval = (options[it] for it in ("policy", "quantum", "interval"))
        if policy is not None:
            known_policy("--policy", policy)
        if options["no_gil"] and (policy or quantum or interval):
            raise UsageError("--no-gil cannot be combined with --policy, --quantum or --interval")
        if options["no_gil"] and options["priorities"]:
            raise UsageError("--priority has no effect without a GIL: leave out it or --no-gil")
        if interval is not None and (quantum is not None or policy not in (None, "stock")):
            raise UsageError(
                "--interval is CPython's own switch interval; a policy's time slice is --quantum"
            )
        if policy == "stock" and quantum is not None:
            raise UsageError("--quantum is for ungil's policies; for stock, give --interval")
        quantum_ms = None
        if interval is not None:
            policy, quantum_ms = "stock", milliseconds("--interval", interval)
        elif quantum is not None:
            quantum_ms = milliseconds("--quantum", quantum)
        cores = options["cores"]
        levels = (level_rule("--priority", rule).rpartition("=") for rule in options["priorities"])
        return cls(
            policy=policy,
            quantum_ms=quantum_ms,
            no_gil=cast("bool", options["no_gil"]),
            cores=None if cores is None else _whole("--cores", cores, 1, MOST_CORES),
            changes=tuple(_change(text) for text in options["changes"]),
            without=tuple(options["without"]),
            priorities=tuple((pattern, level) for pattern, _, level in levels),
            once=cast("bool", options["once"]),
            runs=_whole("--runs", options["runs"], 1, MOST_RUNS),
            seed=_whole("--seed", options["seed"], 0, 2**64 - 1),
        )

    def alternatives(self, choice: Choice) -> list[Rules]:
        """These rules; where nothing is asked for, those of COMPARED, and no GIL."""
        if self.policy or self.quantum_ms or self.no_gil or self.cores or self._changes_threads():
            return [self]
        under = choice.listed["recorded_under"]
        as_recorded = replace(self, policy=under["policy"], quantum_ms=under["quantum_ms"])
        others = [replace(self, policy=name, quantum_ms=ms) for name, ms in COMPARED]
        differs = [it for it in others if it.name(choice) != as_recorded.name(choice)]
        return [as_recorded, *differs, replace(self, no_gil=True)]

    def _changes_threads(self) -> bool:
        return bool(self.changes or self.without or self.priorities)

    def name(self, choice: Choice) -> str:
        """What to call these rules on a screen."""
        policy, quantum_ms = self._scheduling(choice)
        if policy is None:
            return f"no GIL, {plural(self._cores(choice) or 1, 'core')}"
        words = [policy]
        if quantum_ms is not None:
            words.append(f"{at_most_three_digits(quantum_ms)} ms")
        if self.cores:
            words.append(plural(self.cores, "core"))
        return " ".join(words)

    def _scheduling(self, choice: Choice) -> tuple[str | None, float | None]:
        """Policy and quantum in ms, None for a policy's own; no policy without a GIL."""
        if self.no_gil:
            return None, None
        under = choice.listed["recorded_under"]
        if self.policy is None:
            return under["policy"], self.quantum_ms or under["quantum_ms"]
        if self.policy == "stock" and self.quantum_ms is None:
            # CPython's own interval, or the one that the program chose.
            return "stock", under["quantum_ms"] if under["policy"] == "stock" else 5.0
        return self.policy, self.quantum_ms

    def _cores(self, choice: Choice) -> int | None:
        if not self.no_gil or self.cores is not None:
            return self.cores
        # An older trace does not tell.
        return choice.listed["processors"] or os.cpu_count() or 1

    def arguments(self, choice: Choice) -> dict[str, Any]:
        """The arguments of `Demands.predict`; UsageError if a pattern matches no thread."""
        policy, quantum_ms = self._scheduling(choice)
        if self.priorities and policy == "stock":
            raise UsageError(NEEDS_A_POLICY)
        levels: dict[int, str] = {}
        for pattern, level in self.priorities:
            for index in choice.matching(pattern, "--priority"):
                levels.setdefault(index, level)
        changed = [
            (index, kind, factor)
            for pattern, kind, factor in self.changes
            for index in choice.matching(pattern, "--threads")
        ]
        return {
            "policy": policy,
            "quantum_ms": quantum_ms,
            "cores": self._cores(choice),
            "without": [
                index for pattern in self.without for index in choice.matching(pattern, "--without")
            ],
            "work": [(index, factor) for index, kind, factor in changed if kind == "x"],
            "times": [(index, int(factor)) for index, kind, factor in changed if kind == "*"],
            "levels": list(levels.items()),
            "once": self.once,
            "runs": self.runs,
            "seed": self.seed,
        }


def _whole(option: str, text: str, least: int, most: int) -> int:
    if re.fullmatch(r"[0-9]{1,20}", text) and least <= int(text) <= most:
        return int(text)
    raise UsageError(f"{option}: {text!r} is not a whole number from {least:,} to {most:,}")


def _change(text: str) -> tuple[str, str, float]:
    """`PATTERN=x2` or `PATTERN=*2`."""
    pattern, _, change = text.rpartition("=")
    kind, number = change[:1], change[1:]
    try:
        factor = float(number) if kind == "x" else float(int(number))
    except ValueError:
        factor = math.nan
    most = MOST_WORK if kind == "x" else MOST_TIMES
    if not pattern or kind not in ("x", "*") or not 0 < factor <= most:
        raise UsageError(
            f"--threads: {text!r} is not PATTERN=xFACTOR for more or less work, or "
            "PATTERN=*NUMBER for more threads, for example: 'worker-*=x2'"
        )
    return pattern, kind, factor
