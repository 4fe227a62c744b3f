"""The Python interpreters of this machine: which there are, and what each of them is."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ungil.errors import UsageError

PATIENCE_S = 30
LONGEST_REASON = 200

_NAME = re.compile(r"(python|pypy)(\d+(\.\d+)?t?)?")

# For every Python since 2.7. The last line counts: some print more when they start.
_ASK = """\
import json, platform, sys
try:
    from sysconfig import get_config_var
except ImportError:
    get_config_var = lambda name: None
print(json.dumps({
    "path": sys.executable,
    "version": platform.python_version(),
    "implementation": platform.python_implementation(),
    "free_threaded": bool(get_config_var("Py_GIL_DISABLED")),
    "shared": bool(get_config_var("Py_ENABLE_SHARED")),
    "debug": hasattr(sys, "gettotalrefcount"),
    "musl": str(get_config_var("HOST_GNU_TYPE")).endswith("musl"),
}))
"""


@dataclass(frozen=True)
class Interpreter:
    """An interpreter that starts."""

    path: str
    """The program itself, also where a wrapper was named."""
    version: str
    """All of it, such as 3.11.7."""
    implementation: str
    """As `platform.python_implementation()` says it."""
    free_threaded: bool
    """Whether it was built without a GIL."""
    shared: bool
    """Whether it is a shared library, not a static program."""
    debug: bool
    musl: bool
    """Whether it was built for musl, the C library of Alpine."""
    not_scheduled: str | None
    """Why its GIL cannot be scheduled by ungil, in a sentence."""
    not_recorded: str | None
    """Why its GIL cannot be recorded by ungil, in a sentence."""
    name: str = ""
    """How results call it; unique in a run."""

    @property
    def number(self) -> tuple[int, int]:
        """Its version without the release, such as (3, 11)."""
        major, minor = self.version.split(".")[:2]
        return int(major), int(minor)

    @property
    def short(self) -> str:
        """Version and build, such as 3.11, 3.13t, 3.12d or pypy3.10."""
        major, minor = self.number
        family = "" if self.implementation == "CPython" else self.implementation.lower()
        build = ("t" if self.free_threaded else "") + ("d" if self.debug else "")
        return f"{family}{major}.{minor}{build}"


def find_interpreters() -> list[Path]:
    """Each interpreter of PATH, /usr/bin, pyenv and uv once, the current one first."""
    found: dict[Path, Path] = {Path(sys.executable).resolve(): Path(sys.executable)}
    for folder in _folders():
        try:
            candidates = sorted(path for path in folder.iterdir() if _NAME.fullmatch(path.name))
        except OSError:
            continue
        for path in candidates:
            # A link may lead to where this user may not look: `Path.is_file` fails there.
            if os.access(path, os.X_OK) and path.is_file() and not _is_script(path):
                found.setdefault(path.resolve(), path)
    return list(found.values())


def _folders() -> Iterator[Path]:
    """Where interpreters are usually installed."""
    for folder in os.get_exec_path():
        if folder:
            yield Path(folder)
    yield Path("/usr/bin")
    yield Path("/usr/local/bin")
    home = Path("~").expanduser()
    pyenv = Path(os.environ.get("PYENV_ROOT") or home / ".pyenv") / "versions"
    data = Path(os.environ.get("XDG_DATA_HOME") or home / ".local/share")
    uv = Path(os.environ.get("UV_PYTHON_INSTALL_DIR") or data / "uv/python")
    for versions in (pyenv, uv):
        # They may belong to somebody else.
        with suppress(OSError):
            yield from sorted(versions.glob("*/bin"))


def _is_script(path: Path) -> bool:
    """Whether `path` is a wrapper, such as a shim of pyenv, around an interpreter."""
    try:
        with path.open("rb") as file:
            return file.read(2) == b"#!"
    except OSError:
        return True


def choose(named: Sequence[str]) -> list[Interpreter]:
    """The named interpreters, or else one of each version and build that is found.

    UsageError if a named one is not there or does not start.
    """
    if not named:
        return _one_of_each(_started(find_interpreters()))
    chosen: dict[str, Interpreter] = {}
    for name in named:
        interpreter = _by_path(name) or _by_version(name)
        if interpreter is None:
            raise UsageError(f"there is no interpreter {name!r}")
        chosen[os.path.realpath(interpreter.path)] = interpreter
    return _named(sorted(chosen.values(), key=_order))


def _by_path(name: str) -> Interpreter | None:
    """The interpreter at a path, or of that name in PATH."""
    path = shutil.which(name)
    if path is None:
        return None
    try:
        return describe(path)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        raise UsageError(f"{path!r} does not start as a Python: {error}") from error


def _by_version(name: str) -> Interpreter | None:
    """The first interpreter of a version, such as 3.11 or 3.13t."""
    if not re.fullmatch(r"(pypy)?\d\.\d+t?d?", name):
        return None
    return next((one for one in _started(find_interpreters()) if one.short == name), None)


def describe(path: str) -> Interpreter:
    """What the interpreter at `path` is, as it says itself; ValueError, OSError if it does not."""
    from ungil._native import hookable, unscheduled

    run = subprocess.run(
        [path, "-c", _ASK],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=PATIENCE_S,
        check=False,
    )
    lines = run.stdout.decode(errors="replace").splitlines()
    if run.returncode != 0 or not lines:
        said = run.stderr.decode(errors="replace").strip().splitlines()
        # What is no Python may say again all that it was asked.
        short = said and len(said[-1]) <= LONGEST_REASON
        raise ValueError(said[-1] if short else f"it ends with status {run.returncode}")
    try:
        says: dict[str, Any] = json.loads(lines[-1])
        found = Interpreter(**says, not_scheduled=None, not_recorded=None)
        _ = found.number
    except (ValueError, TypeError) as error:
        raise ValueError(f"it answers {lines[-1]!r}") from error
    problem = unscheduled(found.path)
    return replace(
        found,
        not_scheduled=problem and _impersonal(problem[0], found.path),
        not_recorded=_impersonal(hookable(found.path), found.path),
    )


def _impersonal(sentence: str | None, path: str) -> str | None:
    """A sentence about the interpreter at `path` as one that holds for others of its kind."""
    return sentence and sentence.replace(path, "this interpreter")


def _started(paths: Sequence[Path]) -> Iterator[Interpreter]:
    """Those that start, in order: what nobody has named may be broken."""

    def one(path: Path) -> Interpreter | None:
        try:
            return describe(str(path))
        except (OSError, ValueError, subprocess.SubprocessError):
            return None

    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        yield from (found for found in pool.map(one, paths) if found is not None)


def _one_of_each(found: Iterator[Interpreter]) -> list[Interpreter]:
    """The first of each version and build, oldest first."""
    first: dict[str, Interpreter] = {}
    for interpreter in found:
        first.setdefault(interpreter.short, interpreter)
    return _named(sorted(first.values(), key=_order))


def _named(interpreters: Sequence[Interpreter]) -> list[Interpreter]:
    """With names: as short as can be without two of one name."""
    shorts = [interpreter.short for interpreter in interpreters]
    return [
        replace(one, name=one.short if shorts.count(one.short) == 1 else f"{one.short} {one.path}")
        for one in interpreters
    ]


def _order(interpreter: Interpreter) -> tuple[bool, tuple[int, int], str]:
    return (interpreter.implementation != "CPython", interpreter.number, interpreter.short)
