"""The Python interpreters of this machine, and whether the hook records them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from ungil.cli.checks import Check, Status
from ungil.errors import Error
from ungil.report.model import parse
from ungil.report.units import plain, plural

NAME = re.compile(r"(python|pypy)(\d+(\.\d+)?t?)?")
PATIENCE_S = 60
# Two threads are enough to see that a second one is recorded; works on 2.7, too.
TWO_THREADS = "import threading; t = threading.Thread(target=len, args=('',)); t.start(); t.join()"


def find_interpreters() -> list[Path]:
    """Each interpreter of PATH, /usr/bin, pyenv and uv once, the current one first."""
    found: dict[Path, Path] = {Path(sys.executable).resolve(): Path(sys.executable)}
    for folder in _folders():
        try:
            candidates = sorted(path for path in folder.iterdir() if NAME.fullmatch(path.name))
        except OSError:
            continue
        for path in candidates:
            if path.is_file() and os.access(path, os.X_OK) and not _is_script(path):
                found.setdefault(path.resolve(), path)
    return list(found.values())


def check_interpreter(path: Path, otherwise: Status) -> Check:
    """Whether the hook records `path`, found out by doing it; `otherwise` if it does not."""
    from ungil._native import hookable

    try:
        problem = hookable(str(path))
        works, text = (False, problem) if problem is not None else _try(path)
    except (OSError, Error) as error:
        works, text = False, str(error)
    return Check(Status.OK if works else otherwise, "interpreter", plain(f"{path}: {text}"))


def _try(path: Path) -> tuple[bool, str]:
    """Record a program with two threads: whether that works, and what came of it."""
    from ungil._native import Recorder
    from ungil.cli.hooked import hooked_environment

    with tempfile.TemporaryDirectory(prefix="ungil-doctor-") as folder:
        trace = str(Path(folder) / "doctor.pftrace")
        recorder = Recorder(trace, overwrite=False, blame_after_ms=20, follow_children=True)
        environment = hooked_environment(recorder)
        recorder.start(str(path))
        with subprocess.Popen(
            [str(path), "-c", TWO_THREADS],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        ) as child:
            try:
                said = child.communicate(timeout=PATIENCE_S)[1].decode(errors="replace").strip()
            except subprocess.TimeoutExpired:
                child.kill()
                return False, f"did not end within {PATIENCE_S} s"
        report = parse(recorder.stop())
    if child.returncode != 0:
        last = said.splitlines()[-1] if said else ""
        return False, f"ended with {child.returncode}: {last}"
    for process in report["processes"]:
        missing = process.get("not_recorded")
        if missing:
            return False, missing
        threads = len(process["gils"][0]["threads"]) if process["gils"] else 0
        if threads >= 2:
            version = process.get("python") or report["python"]
            return True, f"{version}, recorded with {plural(threads, 'thread')}"
        return False, f"{plural(threads, 'thread')} of 2 recorded"
    return False, "no interpreter was seen in it"


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
