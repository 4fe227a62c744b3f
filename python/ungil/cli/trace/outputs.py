"""The files that `ungil trace` writes: they appear complete, and never replace one unasked."""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager, nullcontext, suppress
from itertools import count
from pathlib import Path
from typing import TypeVar

from ungil.cli.vanishing import removed_if_killed
from ungil.errors import UsageError
from ungil.formatting import native_reason, reason

T = TypeVar("T")


def free_name(program: str, create: Callable[[str], T]) -> tuple[str, T]:
    """The first of `ungil-PROGRAM.pftrace`, `ungil-PROGRAM-2.pftrace`, … that `create` accepts.

    `create` raises FileExistsError for a name that is taken.
    """
    plain = _plain(program)
    for number in count(1):
        name = f"ungil-{plain}.pftrace" if number == 1 else f"ungil-{plain}-{number}.pftrace"
        try:
            return name, create(name)
        except FileExistsError:
            continue
    raise AssertionError("count() does not end")


def named_anew(place: str, program: str) -> str:
    """Give the trace at `place` the first name that is free, as `free_name` does; that name.

    Raises OSError if there is none to be had.
    """
    name, _ = free_name(program, lambda name: os.link(place, name))
    Path(place).unlink()
    return name


def snapshots_beside(output: str | None, program: str) -> str:
    """What snapshots are called after: `output`, or the program's name in the current folder.

    It is absolute, as others may ask for them. UsageError if nothing can be written there.
    """
    path = Path(f"ungil-{_plain(program)}.pftrace" if output is None else output).absolute()
    folder = path.parent
    if not folder.is_dir():
        raise UsageError(f"cannot write snapshots to {str(folder)!r}: no such folder")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise UsageError(f"cannot write snapshots to {str(folder)!r}: permission denied")
    return str(path)


def _plain(program: str) -> str:
    return re.sub(r"[^\w.+-]+", "_", program)[:100]


@contextmanager
def json_file(
    path: str | None, *, starts_nothing: bool = False
) -> Generator[Callable[[str], None]]:
    """A function that writes a text to `path` in one piece; None writes nothing, `-` to stdout.

    That it can be written is found out on entry (UsageError), not after the program's hours. Where
    the block `starts_nothing`, no kill leaves anything of the file.
    """
    if path is None:
        yield lambda _text: None
        return
    with _target(path, starts_nothing) as (descriptor, publish):

        def write(text: str) -> None:
            # Not by print(): what a full disk refuses would be left in its buffer.
            _write(descriptor, text)
            publish()

        yield write


@contextmanager
def whole_file(path: str) -> Generator[int]:
    """A descriptor to write to; the file gets its name once the block has ended without an error.

    `-` is stdout. That it can be written is found out on entry (UsageError). The block may start
    nothing, so that no kill leaves anything of the file.
    """
    with _target(path, True) as (descriptor, publish):
        yield descriptor
        publish()


@contextmanager
def _target(path: str, starts_nothing: bool) -> Generator[tuple[int, Callable[[], object]]]:
    """A descriptor, and what gives the file its name; nothing stays of a file without a name."""
    if path == "-":
        sys.stdout.flush()
        yield 1, lambda: None
    elif _is_special(path):
        with _opened(path, path, os.O_WRONLY) as descriptor:
            yield descriptor, lambda: None
    else:
        target = Path(os.path.realpath(path))
        if target.is_dir():
            raise UsageError(f"cannot write {path!r}: is a directory")
        if target.exists() and not os.access(target, os.W_OK):
            raise UsageError(f"cannot write {path!r}: permission denied")
        temporary = target.with_name(f".{target.name[:200]}.{os.getpid()}.tmp")
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        kept = removed_if_killed(temporary.unlink) if starts_nothing else nullcontext()
        with kept:
            try:
                with _opened(path, str(temporary), flags) as descriptor:
                    yield descriptor, lambda: temporary.replace(target)
            finally:
                with suppress(OSError):
                    temporary.unlink(missing_ok=True)


def _is_special(path: str) -> bool:
    """Whether `path` is something that a rename must not replace: a device, a pipe."""
    try:
        mode = Path(path).stat().st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


@contextmanager
def _opened(asked: str, path: str, flags: int) -> Generator[int]:
    try:
        descriptor = os.open(path, flags, 0o666)
    except OSError as error:
        raise UsageError(f"cannot write {asked!r}: {reason(error)}") from error
    try:
        yield descriptor
    finally:
        with suppress(OSError):
            os.close(descriptor)


def _write(descriptor: int, text: str) -> None:
    sys.stdout.flush()
    with open(descriptor, "w", encoding="utf-8", closefd=False) as file:
        file.write(text + "\n")


def what_is_missing(path: str, why: str, place: str) -> str:
    """A sentence about a trace that was to be `path`."""
    if place == path:
        return f"the trace {path!r} is incomplete: {native_reason(why)}"
    return f"the trace is in {place!r} and could not be named {path!r}: {native_reason(why)}"
