"""The interpreters of a root, and ungil installed for them, from its real wheels."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from platforms.room import Room
from platforms.systems import System, Unmade

# The Python that ungil itself runs on.
OLDEST = (3, 11)
INSTALLED = "/opt/ungil"
"""Where a root has its environments, one for each interpreter."""
# Minutes on a machine that does nothing else.
BUILDS_S = 7200
WHEELS, DEPENDENCIES = "/mnt/wheels", "/mnt/dependencies"
PROGRAMS, OURS = "/mnt/programs", "/mnt/platforms"
"""Where a room has the programs of tests/programs, and those beside this file."""


@dataclass(frozen=True)
class Interpreter:
    """A Python of a root."""

    name: str
    """Version and build, such as 3.11, 3.13t or 3.12-musl."""
    path: str
    origin: str
    """Who built it, and of what."""
    home: Path | None = None
    """The folder of this machine that the root has at the same path."""
    variables: dict[str, str] = field(default_factory=dict[str, str])
    """With which it is run."""
    source: tuple[str, str] | None = None
    """The Debian whose source it is built of in the root, and its package."""

    @property
    def version(self) -> tuple[int, int]:
        """Such as (3, 11)."""
        major, minor = re.findall(r"\d+", self.name)[:2]
        return int(major), int(minor)

    @property
    def is_free_threaded(self) -> bool:
        """Whether its GIL can be off."""
        return re.match(r"\d\.\d+t", self.name) is not None

    @property
    def has_gil(self) -> bool:
        """Whether it runs with one here."""
        return not self.is_free_threaded or self.variables.get("PYTHON_GIL") == "1"

    @property
    def needs(self) -> str:
        """Why ungil cannot be installed for it; empty if it can."""
        if self.version < OLDEST:
            return "needs 3.11"
        return "no wheel for 3.13t" if self.name.startswith("3.13t") else ""

    @property
    def tool(self) -> str:
        """The folder of its environment in the root."""
        return f"{INSTALLED}/{self.name}"


def packaged(name: str) -> Interpreter:
    """One that Debian has."""
    return Interpreter(name, f"/usr/bin/python{name}", "Debian's package")


def of_pyenv() -> list[Interpreter]:
    """The newest of each version that pyenv has here, from 2.7 and 3.7 on."""
    versions = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    newest: dict[tuple[int, int], tuple[int, Path]] = {}
    for folder in versions.glob("*.*.*"):
        found = re.fullmatch(r"(\d+)\.(\d+)\.(\d+)", folder.name)
        if found and not folder.is_symlink() and (folder / "bin/python").exists():
            major, minor, patch = map(int, found.groups())
            newest[major, minor] = max(newest.get((major, minor), (-1, folder)), (patch, folder))
    return [
        Interpreter(f"{major}.{minor}-pyenv", f"{it}/bin/python", "pyenv", home=it)
        for (major, minor), (_, it) in sorted(newest.items())
        if (major, minor) == (2, 7) or (major, minor) >= (3, 7)
    ]


def built(folder: Path) -> list[Interpreter]:
    """Those that `make built-pythons` has made in a folder: NAME/bin/python3.13t."""
    found: list[Interpreter] = []
    for home in sorted(folder.iterdir()) if folder.is_dir() else []:
        named = (
            it for it in home.glob("bin/python3.*") if re.fullmatch(r"python3\.\d+t?", it.name)
        )
        # A free-threaded one also has the name of the usual one, which is shorter.
        for python in sorted(named)[-1:]:
            version = python.name.removeprefix("python")
            name = f"{version}-{home.name}"
            one = Interpreter(name, str(python), "Debian's source", home)
            if one.is_free_threaded:
                found.append(replace(one, variables={"PYTHON_GIL": "1"}))
                found.append(replace(one, name=f"{name}-off", variables={"PYTHON_GIL": "0"}))
            else:
                found.append(one)
    return found


BULLSEYES_OWN = Interpreter(
    "3.11", "/usr/local/bin/python3.11", "source of Debian 12", source=("bookworm", "python3.11")
)


def tool_of(system: System) -> Interpreter:
    """The interpreter that runs ungil where the traced one cannot."""
    if system.suite == "bullseye":
        return BULLSEYES_OWN
    return packaged({"bookworm": "3.11", "trixie": "3.13"}.get(system.suite, "3.14"))


def build_from_source(interpreter: Interpreter, room: Room) -> None:
    """Build one in its root, if it is not there; `Unmade` if that fails."""
    assert interpreter.source is not None
    if (room.root / interpreter.path[1:]).exists():
        return
    patient = replace(room, patience_s=BUILDS_S)
    done = patient.run("sh", f"{OURS}/from_source.sh", *interpreter.source)
    if done.status:
        raise Unmade(f"{interpreter.source[1]} is not built: {done.said}")


def install_ungil(interpreter: Interpreter, room: Room, wheels: list[Path]) -> None:
    """Have pip install ungil for an interpreter, if these wheels are not; `Unmade` if it cannot."""
    stamp = "\n".join(f"{it.name} {it.stat().st_size} {it.stat().st_mtime_ns}" for it in wheels)
    kept = room.root / interpreter.tool[1:] / "wheels.txt"
    if kept.exists() and kept.read_text() == stamp:
        return
    words = ["-m", "venv", "--clear", "--without-pip", interpreter.tool]
    made = room.run(interpreter.path, *words)
    if made.status:
        raise Unmade(f"no environment for {interpreter.path}: {made.said}")
    # Not every interpreter has one; a wheel of pip can be run as it is.
    (wheel,) = room.binds[DEPENDENCIES].glob("pip-*.whl")
    pip = [f"{interpreter.tool}/bin/python", f"{DEPENDENCIES}/{wheel.name}/pip", "install"]
    index = ["--no-index", "--find-links", WHEELS, "--find-links", DEPENDENCIES]
    installed = room.run(*pip, *index, "--only-binary=:all:", "--quiet", "ungil")
    if installed.status:
        raise Unmade(f"pip: {installed.said}")
    kept.write_text(stamp)


def installed_tag(tool: Interpreter, root: Path) -> str:
    """The tag of the wheel that pip has chosen for an interpreter."""
    (told,) = root.glob(f"{tool.tool[1:]}/lib/python*/site-packages/ungil-*.dist-info/WHEEL")
    tags = [it for it in told.read_text().splitlines() if it.startswith("Tag: ")]
    return ", ".join(it.removeprefix("Tag: ") for it in tags)


def facts(interpreter: Interpreter, room: Room) -> dict[str, Any]:
    """What an interpreter says of itself and its system; `Unmade` if it does not start."""
    said = room.run(interpreter.path, f"{OURS}/facts.py", **interpreter.variables)
    if said.status:
        raise Unmade(f"{interpreter.path} does not start: {said.said}")
    return json.loads(said.out)
