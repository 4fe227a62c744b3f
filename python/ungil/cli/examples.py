"""`ungil examples`: the programs that the documents run, for those who have ungil from a wheel."""

from __future__ import annotations

import filecmp
import os
import shutil
import tempfile
from pathlib import Path

import click

import ungil
from ungil.cli.command import Command
from ungil.cli.completing import files
from ungil.errors import Error, UsageError
from ungil.formatting import reason

EXAMPLES = """\
  ungil examples           write them into the folder examples
  ungil examples elsewhere
"""


@click.command(cls=Command, name="examples", examples=EXAMPLES)
@click.argument("folder", default="examples", shell_complete=files)
def command(folder: str) -> None:
    """Write the programs that the documents run into FOLDER [default: examples].

    A FOLDER that is there with other files is an error, and stays as it is. Each program says in
    its first lines what it shows and how to run it; one that needs a package which is not
    installed names it.
    """
    programs = sorted((Path(ungil.__file__).parent / "examples").glob("*.py"))
    if not programs:
        raise Error("this installation has no examples; reinstall ungil")
    if not _has(Path(folder), programs):
        _write(programs, folder)
    print(
        f"{len(programs)} programs are in {folder}; begin with\n"
        "  pip install waitress\n"
        f"  ungil trace {Path(folder) / 'convoy_server.py'}"
    )


def _has(folder: Path, programs: list[Path]) -> bool:
    """Whether a folder has all programs, as they are."""
    found = [folder / it.name for it in programs]
    return all(
        there.is_file() and filecmp.cmp(there, program, shallow=False)
        for there, program in zip(found, programs, strict=True)
    )


def _write(programs: list[Path], folder: str) -> None:
    """Copy programs into a new folder, all or none; UsageError if that cannot be made."""
    path = Path(folder)
    if os.path.lexists(path):
        raise UsageError(
            f"cannot write {folder!r}: it is there, with other files; name another folder"
        )
    if not path.parent.is_dir():
        raise UsageError(f"cannot write {folder!r}: no such folder as {str(path.parent)!r}")
    try:
        beside = tempfile.TemporaryDirectory(prefix=f".{path.name}.", dir=path.parent)
    except OSError as error:
        raise UsageError(f"cannot write {folder!r}: {reason(error)}") from None
    with beside as place:
        try:
            made = Path(place) / "made"
            made.mkdir()
            for program in programs:
                shutil.copyfile(program, made / program.name)
            made.rename(path)
        except OSError as error:
            raise Error(f"cannot write {folder!r}: {reason(error)}") from None
