"""The experiments, one module each, in the order in which they are run and shown."""

from __future__ import annotations

import importlib
from collections.abc import Sequence

from ungil.errors import UsageError
from ungil.lab.experiment import Experiment

NAMES = (
    "fairness",
    "countdown",
    "battle",
    "tick",
    "interrupt",
    "response",
    "futex",
    "fanout",
    "matmul",
)


def load(names: Sequence[str]) -> list[Experiment]:
    """The named experiments, each once, or all of them; UsageError if there is none of a name."""
    for name in names:
        if name not in NAMES:
            raise UsageError(f"there is no experiment {name!r}; there are {', '.join(NAMES)}")
    chosen = [name for name in NAMES if name in names] if names else NAMES
    return [importlib.import_module(f"{__name__}.{name}").EXPERIMENT for name in chosen]
