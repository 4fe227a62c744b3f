"""What was measured, as one JSON file that is complete after each cell.

    {"schema": 1, "ungil": "0.5.0", "machine": {...}, "quick": false, "begun": "2026-...",
     "interpreters": [{"name": "3.11", "version": "3.11.7", "path": ...}, ...],
     "cells": [{"experiment": "countdown", "python": "3.11", "variant": "two threads", "round": 1,
                "settings": {...}, "status": "measured", "measured": {...}, "why": null,
                "took_s": 1.9, "others": 0.02, "at": "2026-..."}, ...]}

A cell is `measured`, `missing` (the machine lacks something; `why` says what to install) or
`failed` (`why` says how).
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, cast

from ungil.errors import Error
from ungil.lab import published
from ungil.lab.files import write

SCHEMA = 1

Status = Literal["measured", "missing", "failed"]


class BadResults(Error):
    """A file does not hold results of the lab; the message says why."""


@dataclass(frozen=True)
class Result:
    """What became of a cell."""

    experiment: str
    python: str
    """The name of the interpreter, "" without one."""
    variant: str
    round: int
    settings: Mapping[str, Any]
    status: Status
    measured: Mapping[str, Any]
    """Empty unless it is measured."""
    why: str | None
    took_s: float
    others: float
    """The share of the machine's cores that others took meanwhile, from 0 to 1."""
    at: str

    @property
    def key(self) -> str:
        """The same for what is the same cell."""
        settings = json.dumps(self.settings, sort_keys=True)
        return f"{self.experiment}/{self.python}/{self.variant}/{self.round}/{settings}"


@dataclass(frozen=True)
class Header:
    """What results depend on: those with different headers do not belong together."""

    ungil: str
    machine: Mapping[str, Any]
    quick: bool
    note: str = ""
    """What a reader of these results has to know besides; "" if nothing."""


class Results:
    """Results in the order in which they came, at most one for each cell."""

    def __init__(
        self,
        header: Header,
        interpreters: Sequence[Mapping[str, Any]] = (),
        cells: Sequence[Result] = (),
        begun: str | None = None,
    ) -> None:
        self.header = header
        self.interpreters = {str(one["name"]): dict(one) for one in interpreters}
        """What each interpreter is, by its name."""
        self.begun = begun or now()
        self._cells = {cell.key: cell for cell in cells}

    def __iter__(self) -> Iterator[Result]:
        return iter(self._cells.values())

    def __len__(self) -> int:
        return len(self._cells)

    def add(self, result: Result) -> None:
        """Take a result, in place of an earlier one of the same cell."""
        self._cells.pop(result.key, None)
        self._cells[result.key] = result

    def use(self, interpreters: Sequence[Mapping[str, Any]]) -> None:
        """Name the interpreters that will be used, in order; they come before any others.

        What another of such a name did is dropped.
        """
        for one in interpreters:
            name = str(one["name"])
            if self.interpreters.get(name, one) != one:
                self._cells = {k: cell for k, cell in self._cells.items() if cell.python != name}
        named = {str(one["name"]): dict(one) for one in interpreters}
        self.interpreters = named | {
            name: one for name, one in self.interpreters.items() if name not in named
        }

    def only(self, keys: Sequence[str]) -> Results:
        """Those of the cells with these keys, in their order."""
        kept = [self._cells[key] for key in keys if key in self._cells]
        return Results(self.header, list(self.interpreters.values()), kept, self.begun)

    def of(self, experiment: str) -> Results:
        """Those of one experiment."""
        kept = [cell for cell in self if cell.experiment == experiment]
        return Results(self.header, list(self.interpreters.values()), kept, self.begun)

    def pythons(self) -> list[str]:
        """The names of interpreters that there are cells of, in the order of `use`."""
        seen = {cell.python for cell in self}
        known = [name for name in self.interpreters if name in seen]
        return known + sorted(seen - set(known) - {""})

    def rounds(self, python: str, variant: str) -> list[Mapping[str, Any]]:
        """What was measured in each round of a variant; empty if it was not."""
        return [
            cell.measured
            for cell in self
            if (cell.python, cell.variant, cell.status) == (python, variant, "measured")
        ]

    def save(self, path: Path) -> None:
        """Write the file whole, or leave the one before as it is. OSError if that fails."""
        write(path, json.dumps(self.as_json(), indent=1) + "\n")

    def as_json(self) -> dict[str, Any]:
        """The whole, as the module's docstring shows it."""
        return {
            "schema": SCHEMA,
            **asdict(self.header),
            "begun": self.begun,
            "interpreters": list(self.interpreters.values()),
            "cells": [asdict(cell) for cell in self],
            "published": published.as_json(),
        }


def load(path: Path) -> Results:
    """The results of a file; BadResults, in a sentence, if it has none, OSError."""
    try:
        whole: Any = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise BadResults(f"{str(path)!r} holds no results of ungil lab: {error}") from error
    if not isinstance(whole, dict) or "schema" not in whole:
        raise BadResults(f"{str(path)!r} holds no results of ungil lab")
    known = cast("dict[str, Any]", whole)
    if known["schema"] != SCHEMA:
        raise BadResults(
            f"{str(path)!r} is of schema {known['schema']!r}, this ungil reads {SCHEMA}"
        )
    try:
        header = Header(known["ungil"], known["machine"], known["quick"], known.get("note", ""))
        cells = [Result(**cell) for cell in known["cells"]]
        return Results(header, known["interpreters"], cells, known["begun"])
    except (KeyError, TypeError) as error:
        raise BadResults(f"{str(path)!r} holds no complete results: {error}") from error


def now() -> str:
    """The moment, in UTC, to the second."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
