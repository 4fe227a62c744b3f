"""What a command writes replaces nothing that it reads, nor the program that it starts.

Every command with an option for a file to write asks here, before it does any work.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from importlib.machinery import PathFinder
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from ungil.errors import UsageError

if TYPE_CHECKING:
    from ungil.cli.program import Program

STREAM = "-"
"""Standard input or output, which is no file."""


def spare(inputs: Iterable[str], what: str, outputs: Iterable[str | None]) -> None:
    """UsageError if one of `outputs` is one of `inputs`, be it by a link; `what` is what those are.

    An output is a path, `-`, or None for one that was not asked for.
    """
    files = list(inputs)
    for output in outputs:
        if output is not None and any(is_same(output, file) for file in files):
            raise UsageError(f"cannot write {output!r}: that is {what}; name another file")


def no_stream(output: str | None) -> None:
    """UsageError if a trace was to go to standard output: it gets its name when it is whole."""
    if output == STREAM:
        raise UsageError("a trace cannot be written to standard output; name a file with -o")


def distinct(*outputs: tuple[str, str | None]) -> None:
    """UsageError if two of what is written would be one file; each has a name for a sentence."""
    asked = [(what, path) for what, path in outputs if path is not None]
    for index, (what, path) in enumerate(asked):
        for other, elsewhere in asked[index + 1 :]:
            if path == elsewhere == STREAM or is_same(path, elsewhere):
                raise UsageError(f"{what} and {other} cannot both be written to {elsewhere!r}")


def is_same(path: str, other: str) -> bool:
    """Whether both are one regular file, or will be once it is written."""
    if STREAM in (path, other):
        return False
    try:
        # Nothing is lost by writing to a device or a pipe twice.
        return Path(path).samefile(other) and Path(path).is_file()
    except OSError:  # One is not there yet, or no name of a file at all.
        return os.path.realpath(path) == os.path.realpath(other)


def files_of(program: Program | None) -> list[str]:
    """The files on the command line of a program, and those that it stands for."""
    if program is None:
        return []
    _, *words = program.argv
    return [program.executable, *words, *_mains(words)]


def _mains(words: list[str]) -> Iterator[str]:
    """What Python runs for a folder, and for `-m`."""
    for word, after in pairwise([*words, ""]):
        yield f"{word}/__main__.py"
        if word.startswith("-m"):
            yield from _module(word[2:] or after)


def _module(name: str) -> Iterator[str]:
    """The file of a module and of each package that it is in; nothing is imported."""
    folders = ["", *sys.path]
    parts = name.split(".")
    for depth in range(len(parts)):
        spec = PathFinder.find_spec(".".join(parts[: depth + 1]), folders)
        if spec is None:
            return
        if spec.has_location and spec.origin is not None:
            yield spec.origin
        folders = list(spec.submodule_search_locations or ())
    yield from (str(Path(folder, "__main__.py")) for folder in folders)
