"""What is told once for processes that are alike: the workers of a server."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, TypeVar

NAMED = 5
"""Processes that are named, of those for which the same is told."""


class _Told(Protocol):
    """A piece of advice, or a finding."""

    def get(self, key: str, /) -> object: ...


Told = TypeVar("Told", bound=_Told)


def with_repeats(told: Iterable[Told]) -> list[tuple[Told, list[Told]]]:
    """Each piece that says something else, and those that say the same of other processes."""
    pieces: list[tuple[Told, list[Told]]] = []
    places: dict[object, list[Told]] = {}
    for place, piece in enumerate(told):
        first = places.get(piece.get("same_as"))
        if first is None:
            places[place] = []
            pieces.append((piece, places[place]))
        else:
            first.append(piece)
    return pieces


def the_same(pids: Iterable[int | None]) -> str | None:
    """For which other processes it is told, in a few words; None for none."""
    others = [*dict.fromkeys(map(str, pids))]
    more = f" and {len(others) - NAMED} more" if len(others) > NAMED else ""
    return f"the same for pid {', '.join(others[:NAMED])}{more}" if others else None
