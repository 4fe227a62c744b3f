"""The rows: which interpreter is tried in which system and place; and what is kept of them."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from platforms import systems
from platforms.interpreters import BULLSEYES_OWN, Interpreter, built, of_pyenv, packaged
from platforms.room import NARROW, WIDE, Place
from platforms.systems import System

# pyenv's are built on this machine: a root with an older C library than it has does not run them.
SYSTEMS: dict[System, tuple[str, ...]] = {
    systems.BULLSEYE: ("3.9",),
    systems.BOOKWORM: ("3.11",),
    systems.TRIXIE: ("3.13",),
    systems.SID: ("3.13", "3.14", "3.15"),
    systems.BOOKWORM_ARM: ("3.11",),
    systems.TRIXIE_ARM: ("3.13",),
    systems.SID_ARM: ("3.13", "3.14", "3.15"),
}
WITH_PYENVS = (systems.BOOKWORM, systems.TRIXIE, systems.SID)


@dataclass(frozen=True)
class Row:
    """An interpreter in a system and a place."""

    system: System
    interpreter: Interpreter
    place: Place = WIDE

    @property
    def name(self) -> str:
        """For `--only`, and the file that it is kept in."""
        words = [self.system.name, self.interpreter.name, self.place.name]
        return "-".join(re.sub(r"[^\w.]+", "-", it).strip("-") for it in words if it)


def all_rows(folder: Path) -> list[Row]:
    """Every row that can be tried here; `folder` has the interpreters that were built for it."""
    rows: list[Row] = []
    for system, names in SYSTEMS.items():
        interpreters = [packaged(name) for name in names]
        if system is systems.BULLSEYE:
            interpreters.append(BULLSEYES_OWN)
        if system in WITH_PYENVS:
            interpreters += of_pyenv()
        if system is systems.BOOKWORM:
            interpreters += built(folder)
        rows += [Row(system, it) for it in interpreters]
        if system is systems.BOOKWORM:
            rows += [Row(system, packaged("3.11"), place) for place in NARROW]
    return rows


@dataclass(frozen=True)
class Kept:
    """What is kept of a row: a file of JSON."""

    path: Path

    def read(self) -> dict[str, Any] | None:
        """What was found when it was tried last."""
        return json.loads(self.path.read_text()) if self.path.exists() else None

    def write(self, found: dict[str, Any]) -> None:
        """Keep it, whole or not at all."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        partial = self.path.with_suffix(".partial")
        partial.write_text(json.dumps(found, indent=1) + "\n")
        partial.rename(self.path)
