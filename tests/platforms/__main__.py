"""Tries ungil on every platform that can be made here, and writes docs/platforms.md (long; root).

    python -m platforms [--only PATTERN] [--again] [--table] [--wheels FOLDER]

The roots are made by debootstrap, those of aarch64 run under qemu. What is found is kept for each
row in tests/platforms/tried, which is checked in: a run that was interrupted goes on where it was,
and the page has the rows that others have tried. Exits with 1 if a check has failed, and with 2 if
the rows cannot be tried.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from dataclasses import asdict
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, NoReturn

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from platforms import page
from platforms.checks import CHECKS, SCRATCH, Subject, outcome
from platforms.interpreters import (
    DEPENDENCIES,
    OURS,
    PROGRAMS,
    WHEELS,
    Interpreter,
    build_from_source,
    facts,
    install_ungil,
    installed_tag,
    tool_of,
)
from platforms.room import Late, Place, Room
from platforms.rows import Kept, Row, all_rows
from platforms.systems import Unmade, changing, emulation

PROJECT = Path(__file__).resolve().parent.parent.parent
KEPT = PROJECT / "target" / "platforms"
# Rows without `took_s` were read back from the page of 25 November 2026.
TRIED = Path(__file__).with_name("tried")
BUILT = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ungil/pythons"
# Of a single program in a room; qemu is some ten times slower.
PATIENCE_S, PATIENCE_EMULATED_S = 300, 1800
# pip, and what ungil depends on, for roots that have no network.
REQUIRED = ("pip", "click>=8.2", "rich>=13")
# The C library that truth.so is linked for; musl has another.
TARGETS = {"glibc": "linux-gnu.2.28", "musl": "linux-musl"}


class Trying:
    """One run: the wheels, the rows, and what is kept."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._roots: Path = options.roots
        wheels: Path = options.wheels
        self._folder = wheels
        self._wheels = sorted(wheels.glob("ungil-*.whl"))
        if not self._wheels:
            raise Unmade(f"there is no wheel of ungil in {wheels}: make wheels builds them")
        self._stamp = sha256(b"".join(it.read_bytes() for it in self._wheels)).hexdigest()[:12]
        self._commit = said("git", "-C", str(PROJECT), "rev-parse", "--short", "HEAD")
        self._dependencies = KEPT / "dependencies"
        if not self._dependencies.exists():
            pip = [sys.executable, "-m", "pip", "download", "--quiet", "--only-binary=:all:"]
            words = [*pip, "--dest", f"{self._dependencies}.partial", *REQUIRED]
            subprocess.run(words, check=True)
            self._dependencies.with_suffix(".partial").rename(self._dependencies)

    def is_known(self, row: Row) -> bool:
        """Whether these wheels were tried in a row, and nothing has failed."""
        kept = kept_of(row).read()
        return (
            kept is not None
            and kept["wheels"] == self._stamp
            and all(it["state"] != "failed" for it in kept["cells"].values())
        )

    def try_row(self, row: Row, tell: Any) -> dict[str, Any]:
        """Try everything in a row; `Unmade` if there is no such root or interpreter."""
        tell("root")
        scratch = KEPT / "scratch" / row.name
        scratch.mkdir(parents=True, exist_ok=True)
        scratch.chmod(0o1777)
        wide = self._room(row, Place(), scratch)
        tell("interpreter")
        with changing(wide.root):
            tool, told, reason = self._equipped(row, wide)
        system = facts(tool_of(row.system), wide) if told["libc"] == "musl" else told
        shutil.copy(truth(told), scratch / "truth.so")
        room = self._room(row, row.place, scratch, f"{tool.tool}/bin/python")
        emulated = row.system.is_emulated
        subject = Subject(room, row.interpreter, tool.tool, reason, scratch, emulated)
        cells: dict[str, dict[str, str | float]] = {}
        for name, check in CHECKS.items():
            tell(name)
            began_s = time.monotonic()
            came = outcome(check, subject)
            cells[name] = {**asdict(came), "took_s": round(time.monotonic() - began_s, 1)}
        return {
            "date": datetime.now(UTC).date().isoformat(),
            "commit": self._commit,
            "wheels": self._stamp,
            "tag": installed_tag(tool, room.root),
            "system": {
                "suite": row.system.suite,
                "release": row.system.release,
                "number": row.system.number,
                "machine": row.system.machine,
                "libc": system["libc"],
            },
            "interpreter": {**told, "origin": row.interpreter.origin},
            "place": row.place.name,
            "cells": cells,
        }

    def _equipped(self, row: Row, room: Room) -> tuple[Interpreter, dict[str, Any], str]:
        """The interpreter that ungil is installed for, what the row's own says, and why not it."""
        if row.interpreter.source:
            build_from_source(row.interpreter, room)
        told = facts(row.interpreter, room)
        reason = "" if self._has_wheel_for(row.interpreter) else row.interpreter.needs
        if not reason:
            try:
                install_ungil(row.interpreter, room, self._wheels)
            except Unmade as error:
                reason = str(error)
            else:
                return row.interpreter, told, ""
        tool = tool_of(row.system)
        if tool.source:
            build_from_source(tool, room)
        install_ungil(tool, room, self._wheels)
        return tool, told, reason

    def _has_wheel_for(self, interpreter: Interpreter) -> bool:
        """Whether there is one for that very build, as `make free-threaded-test` makes one."""
        tag = f"-cp{interpreter.name.partition('-')[0].replace('.', '')}-"
        return interpreter.is_free_threaded and any(tag in it.name for it in self._wheels)

    def _room(self, row: Row, place: Place, scratch: Path, python: str = "") -> Room:
        binds = {
            WHEELS: self._folder,
            DEPENDENCIES: self._dependencies,
            PROGRAMS: PROJECT / "tests/programs",
            OURS: Path(__file__).with_name("programs"),
            SCRATCH: scratch,
        }
        if row.interpreter.home:
            binds[str(row.interpreter.home)] = row.interpreter.home
        patience_s = PATIENCE_EMULATED_S if row.system.is_emulated else PATIENCE_S
        without_ptrace = (python, f"{PROGRAMS}/filtered.py", "refused", "ptrace")
        root = row.system.root(self._roots)
        return Room(root, binds, place, without_ptrace, patience_s)


def kept_of(row: Row) -> Kept:
    """Where a row is kept."""
    return Kept(TRIED / f"{row.name}.json")


def truth(told: dict[str, Any]) -> Path:
    """tests/programs/truth.c, compiled for the processor and the C library of an interpreter."""
    source = PROJECT / "tests/programs/truth.c"
    target = f"{told['machine']}-{TARGETS[told['libc'].split()[0]]}"
    library = KEPT / f"truth-{target}.so"
    if not library.exists() or library.stat().st_mtime < source.stat().st_mtime:
        command = [sys.executable, "-m", "ziglang", "cc", "-target", target, "-O1", "-fPIC"]
        partial = library.with_suffix(f".{os.getpid()}")
        subprocess.run([*command, "-shared", "-o", partial, source], check=True)
        partial.rename(library)
    return library


def said(*command: str) -> str:
    """What a program prints."""
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def tried(rows: list[Row], trying: Trying, console: Console) -> bool:
    """Try rows one after the other, and keep and tell what came of each; whether all were tried."""
    all_were = True
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=len(rows))
        for row in rows:

            def tell(what: str, row: Row = row) -> None:
                progress.update(task, description=f"{row.name}: {what}")

            try:
                found = trying.try_row(row, tell)
            except (Unmade, Late) as error:
                all_were = False
                line = f"{row.name}: not tried: {error}"
            else:
                kept_of(row).write(found)
                line = in_a_line(row, found)
            console.print(line, markup=False, soft_wrap=True)
            progress.advance(task)
    return all_were


def in_a_line(row: Row, found: dict[str, Any]) -> str:
    """A row for the screen: what passed, and what did not with its sentence."""
    marks = {"passed": "", "impossible": "not possible: ", "failed": "FAILED: "}
    return f"{row.name}: " + "; ".join(
        f"{name} {marks[it['state']]}{it['text']}" for name, it in found["cells"].items()
    )


def write_page() -> bool:
    """Write docs/platforms.md of all that is kept; whether no check of it has failed."""
    paths = sorted(TRIED.glob("*.json"))
    rows = [found for it in paths if (found := Kept(it).read()) is not None]
    if not rows:
        raise Unmade("no row was tried yet, so there is no page to write")
    about = {"cpus": str(os.cpu_count()), "kernel": platform.release().split("-")[0]}
    page.written(rows, PROJECT / "docs/platforms.md", about)
    print(page.counted(rows))
    return all(it["state"] != "failed" for row in rows for it in row["cells"].values())


def ended(*_: object) -> NoReturn:
    """A polite end is one like Ctrl-C: what was mounted and registered is taken back."""
    raise KeyboardInterrupt


def main() -> None:
    """Try, write the page, and exit."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="", metavar="PATTERN", help="rows whose name has it")
    parser.add_argument("--again", action="store_true", help="also rows that have passed")
    parser.add_argument("--table", action="store_true", help="write the page, and try nothing")
    parser.add_argument("--list", action="store_true", help="print the names of the rows")
    parser.add_argument("--roots-only", action="store_true", help="make the roots, and try nothing")
    parser.add_argument("--wheels", type=Path, default=PROJECT / "dist", help="[dist]")
    parser.add_argument("--roots", type=Path, default=KEPT / "roots", help="[target/...]")
    parser.add_argument("--built", type=Path, default=BUILT, help="of make built-pythons")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, ended)
    try:
        sys.exit(0 if _done(options) else 1)
    except Unmade as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("interrupted; the next run goes on with the row that was under way", file=sys.stderr)
        sys.exit(130)


def _done(options: argparse.Namespace) -> bool:
    try:
        rows = [it for it in all_rows(options.built) if re.search(options.only, it.name)]
    except re.error as error:
        raise Unmade(f"--only {options.only!r} is no pattern: {error}") from None
    if options.list:
        print("\n".join(it.name for it in rows))
        return True
    if options.table:
        return write_page()
    if not rows:
        raise Unmade(f"no row has {options.only!r} in its name: see --list")
    if os.geteuid() != 0:
        raise Unmade("only root may change the root of a process: run it as root")
    console = Console(highlight=False)
    with ExitStack() as stack:
        if any(it.system.is_emulated for it in rows):
            stack.enter_context(emulation())
        if options.roots_only:
            for system in dict.fromkeys(it.system for it in rows):
                console.print(system.root(options.roots))
            return True
        trying = Trying(options)
        rest = [it for it in rows if options.again or not trying.is_known(it)]
        console.print(f"{len(rest)} of {len(rows)} rows; the others were tried with these wheels")
        all_were = tried(rest, trying, console)
    return write_page() and all_were


if __name__ == "__main__":
    main()
