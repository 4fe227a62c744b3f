"""The interpreters of this machine under which tests run their programs.

A test names the versions it is about and runs on those that exist; the Python that runs pytest is
always one of them. So a machine with a single Python passes. Where REQUIRE_PYTHONS is set, as
continuous integration does, the suite does not begin while one of `REQUIRED` is missing.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
import sysconfig
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import built_pythons

# The versions that ungil claims to be tested with.
REQUIRED = ("2.7", "3.8", "3.11", "3.12", "3.13")
# Debian links its interpreter statically; all others here have a shared library.
DEBIAN = Path("/usr/bin/python3.11")
# What the one for Alpine's C library is called.
MUSL = "musl"


@dataclass(frozen=True)
class Python:
    """An interpreter."""

    path: str
    version: tuple[int, int]
    name: str

    def __str__(self) -> str:
        return self.name

    @property
    def can_borrow(self) -> bool:
        """Whether it can import the ungil of the Python that runs pytest.

        That of a free-threaded one is for its own version alone.
        """
        if sysconfig.get_config_var("Py_GIL_DISABLED"):
            return Path(self.path).samefile(sys.executable)
        return self.version >= (3, 11) and self.name != MUSL

    @property
    def compiler(self) -> str:
        """The C compiler whose libraries it can load."""
        return "musl-gcc" if self.name == MUSL else "cc"


@cache
def found() -> tuple[Python, ...]:
    """CPython 2.7 and from 3.8 on: pyenv's newest of each version, Debian's, this one, musl's."""
    by_version: dict[tuple[int, int], Path] = {}
    folders = [folder for folder in (_pyenv() / "versions").glob("*") if not folder.is_symlink()]
    releases = [
        (tuple(map(int, folder.name.split("."))), folder)
        for folder in folders
        if re.fullmatch(r"\d+\.\d+\.\d+", folder.name) and (folder / "bin/python").exists()
    ]
    for (major, minor, _), folder in sorted(releases):
        by_version[major, minor] = folder / "bin/python"
    pythons = [
        Python(str(path), version, f"{version[0]}.{version[1]}")
        for version, path in sorted(by_version.items())
        if version == (2, 7) or version >= (3, 8)
    ]
    if DEBIAN.exists():
        pythons.append(Python(str(DEBIAN), (3, 11), "3.11-debian"))
    if not any(Path(python.path).samefile(sys.executable) for python in pythons):
        pythons.append(Python(sys.executable, sys.version_info[:2], "this"))
    return (*pythons, *_musl())


def _musl() -> list[Python]:
    """The one for musl that `MUSL_PYTHON` names, or that was built in the cache of ungil.

    Few machines have one.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    built = sorted((cache / "ungil" / "pythons" / "musl").glob("bin/python3.??"))
    path = os.environ.get("MUSL_PYTHON") or "".join(map(str, built[-1:]))
    return [Python(path, (3, int(minor)), MUSL) for minor in re.findall(r"python3\.(\d+)$", path)]


def pythons(*names: str, since: tuple[int, int] = (2, 7)) -> list[Python]:
    """Those found that are at least `since`: the named ones, or all if none is named.

    The Python that runs pytest counts as named, unless another of its version was.
    """
    chosen = [python for python in found() if not names or python.name in names]
    mine = sys.version_info[:2]
    if not any(python.version == mine for python in chosen):
        chosen += [python for python in found() if python.version == mine][:1]
    return [python for python in chosen if python.version >= since]


def path_of(name: str) -> str:
    """The interpreter that is named like one of `found()`, or that `name` is a command of.

    For argparse, which says it if there is none.
    """
    paths = [python.path for python in found() if python.name == name]
    path = paths[0] if paths else shutil.which(name)
    if path is None:
        there = ", ".join(python.name for python in found())
        raise argparse.ArgumentTypeError(
            f"there is no interpreter {name!r} here; there are {there}"
        )
    return path


@cache
def free_threaded() -> list[Python]:
    """Free-threaded builds: pyenv's, ours, those on PATH, and what FREE_THREADED_PYTHONS names.

    The variable has paths like `/opt/python/bin/python3.13t`, with colons between them. Few
    machines have one.
    """
    named = filter(None, os.environ.get("FREE_THREADED_PYTHONS", "").split(os.pathsep))
    pyenvs = [str(it) for it in (_pyenv() / "versions").glob("3.*t/bin/python")]
    on_path = [shutil.which(f"python3.{minor}t") for minor in range(13, 20)]
    ours = [it.path for it in built("free-threaded")]
    return [
        Python(path, (3, int(minor)), f"3.{minor}t")
        for path in dict.fromkeys(filter(None, [*named, *pyenvs, *ours, *on_path]))
        for minor in re.findall(r"3\.(\d+)", path)[-1:]
    ]


def built(name: str) -> list[Python]:
    """The one that `make built-pythons` has built with this name, if it has."""
    path = built_pythons.built(name)
    versions = re.findall(r"3\.(\d+)t?$", str(path))
    return [Python(str(path), (3, int(minor)), name) for minor in versions]


def are_required() -> bool:
    """Whether a version that is missing is a failure."""
    return bool(os.environ.get("REQUIRE_PYTHONS"))


def missing() -> list[str]:
    """Required versions of which pytest runs on none, and pyenv has none."""
    there = {python.name for python in found()} | {f"{sys.version_info[0]}.{sys.version_info[1]}"}
    return [name for name in REQUIRED if name not in there]


def _pyenv() -> Path:
    return Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
