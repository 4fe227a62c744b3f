"""`ungil doctor`: what works on this machine, what does not, and what to do."""

from __future__ import annotations

import dataclasses
import json
import os
import platform
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

import ungil
from ungil.cli.command import Command
from ungil.cli.completing import files
from ungil.cli.doctor.check import Check, Status
from ungil.cli.doctor.interpreter_check import check_interpreter
from ungil.cli.doctor.machine_checks import machine_checks
from ungil.cli.doctor.remedy import surroundings
from ungil.errors import UsageError
from ungil.formatting import size
from ungil.interpreters import find_interpreters

EXAMPLES = """\
  ungil doctor                     this machine and every Python that is found
  ungil doctor /opt/py/bin/python  one interpreter
  ungil doctor --json
  ungil doctor --clean             remove what killed recorders and programs have left
"""

STYLES = {Status.OK: "green", Status.WARN: "yellow", Status.FAIL: "bold red"}


@click.command(cls=Command, name="doctor", examples=EXAMPLES)
@click.argument("pythons", metavar="[PYTHON]...", nargs=-1, shell_complete=files)
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
@click.option("--clean", is_flag=True, help="Only remove what killed recorders and programs left.")
def command(pythons: tuple[str, ...], as_json: bool, clean: bool) -> int:
    """Try everything that tracing depends on and say what does not work, and why.

    Without PYTHON, ungil tries every interpreter that it finds.

    Exit status: 0 if ungil can trace its own interpreter, or each PYTHON; 1 if not; 2 if there is
    no such PYTHON. A warning ("warn") is no failure.
    """
    if clean:
        _clean(pythons, as_json)
        return 0
    checks = list(_all_checks([_interpreter(name) for name in pythons]))
    works = not any(check.status is Status.FAIL for check in checks)
    if as_json:
        print(json.dumps(_document(works, checks)))
    else:
        _print_table(checks)
    return 0 if works else 1


def _document(works: bool, checks: list[Check]) -> dict[str, Any]:
    """What `--json` prints; docs/doctor.md describes it."""
    return {
        "schema": 1,
        "works": works,
        "ungil": _version(),
        "python": sys.version,
        "kernel": platform.release(),
        "machine": platform.machine(),
        "place": surroundings(),
        "user": os.geteuid(),
        "checks": [dataclasses.asdict(check) for check in checks],
    }


def _version() -> str | None:
    """Which ungil this is; None if its native part, which knows, cannot be loaded."""
    try:
        return ungil.__version__
    except ImportError:
        return None


def _clean(pythons: tuple[str, ...], as_json: bool) -> None:
    """Remove what recorders and programs that were killed have left, and print what that is."""
    if pythons:
        raise UsageError(f"--clean tries no interpreter; leave out {pythons[0]!r}")
    from ungil._native import remove_dead_sessions, remove_stale_pages

    removed = [*remove_dead_sessions(), *remove_stale_pages()]
    if as_json:
        print(json.dumps({"removed": [{"path": path, "bytes": size} for path, size in removed]}))
        return
    for path, taken in removed:
        print(f"removed {path}, {size(taken)}")
    if not removed:
        print("nothing to remove: no killed recorder or program of yours left files")


def _interpreter(name: str) -> Path:
    found = shutil.which(name)
    if found is not None:
        return Path(found)
    if "/" in name:
        try:
            Path(name).stat()
        except PermissionError:
            raise UsageError(f"user {os.geteuid()} may not look at {name!r}") from None
        except OSError:
            pass
        else:
            raise UsageError(f"user {os.geteuid()} may not run {name!r}")
    raise UsageError(f"there is no interpreter {name!r}")


def _all_checks(asked: list[Path]) -> Iterator[Check]:
    """The machine first; an interpreter that nobody asked for may be one that cannot be traced."""
    machine = list(machine_checks())
    yield from machine
    if any(check.status is Status.FAIL for check in machine):
        return
    if asked:
        for path in asked:
            yield check_interpreter(path, Status.FAIL)
        return
    current, *others = find_interpreters()
    yield check_interpreter(current, Status.FAIL)
    for path in others:
        yield check_interpreter(path, Status.WARN)


def _print_table(checks: list[Check]) -> None:
    from rich.table import Table
    from rich.text import Text

    from ungil.console import print_lines

    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for check in checks:
        text = Text(check.text)
        if check.advice:
            text.append(f"\n{check.advice}", style="dim")
        grid.add_row(Text(check.status, style=STYLES[check.status]), Text(check.name), text)
    # Off a terminal a path is one word, which can be copied.
    print_lines(sys.stdout, lambda console: console.print(grid))
