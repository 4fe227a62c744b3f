"""What PROGRAM on the command line of `ungil trace` means.

| written                                   | run as                       | named          |
|-------------------------------------------|------------------------------|----------------|
| `-m MODULE`, `-c CODE`                    | this Python                  | MODULE, command|
| `x.py`, a folder or zip with `__main__`,  | this Python                  | file's stem    |
| a `#!` script for Python, not executable  |                              |                |
| anything else                             | itself, found as a shell does| its base name  |
"""

from __future__ import annotations

import os
import shutil
import sys
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ungil.errors import UsageError

PYTHON_SUFFIXES = {".py", ".pyw", ".pyc"}


@dataclass(frozen=True)
class Program:
    """A program to start."""

    argv: list[str]
    executable: str
    name: str


def find_program(words: Sequence[str]) -> Program:
    """The program that `words` name; UsageError if there is none."""
    if not words:
        raise UsageError(
            "no program to trace; name a script, -m MODULE, -c CODE or a command, "
            "for example: ungil trace app.py"
        )
    first = words[0]
    if first[:2] in ("-m", "-c"):
        return _module_or_code(words)
    if first == "":
        raise UsageError("the name of the program to trace is empty")
    path = Path(first)
    if path.suffix in PYTHON_SUFFIXES:
        if not path.exists():
            raise UsageError(f"there is no file {first!r}")
        if path.is_file():
            return _with_this_python(words, path)
    if "/" not in first and (found := shutil.which(first)):
        return Program(list(words), found, first)
    if path.is_dir():
        if (path / "__main__.py").is_file() or (path / "__main__.pyc").is_file():
            return _with_this_python(words, path)
        raise UsageError(f"{first!r} is a folder without a __main__.py")
    if not path.exists():
        where = "there is no file" if "/" in first else "there is no command or file"
        raise UsageError(f"{where} {first!r}")
    if "/" in first and os.access(path, os.X_OK):
        return Program(list(words), first, path.name)
    if zipfile.is_zipfile(path) or _is_python_script(path):
        return _with_this_python(words, path)
    if os.access(path, os.X_OK):
        raise UsageError(f"there is no command {first!r} on PATH; to run the file, write ./{first}")
    raise UsageError(f"{first!r} is neither executable nor a Python program")


def _module_or_code(words: Sequence[str]) -> Program:
    """`-m MODULE …` or `-c CODE …`, with or without a space, as Python itself takes them."""
    option, attached = words[0][:2], words[0][2:]
    if not attached and len(words) < 2:
        what = "a module, for example: -m http.server" if option == "-m" else "code"
        raise UsageError(f"{option} needs {what}")
    name = (attached or words[1]) if option == "-m" else "command"
    return Program([sys.executable, *words], sys.executable, name)


def _with_this_python(words: Sequence[str], path: Path) -> Program:
    name = path.stem or path.resolve().name
    # A path that begins with a dash would be an option of Python.
    script = f"./{words[0]}" if words[0].startswith("-") else words[0]
    return Program([sys.executable, script, *words[1:]], sys.executable, name)


def _is_python_script(path: Path) -> bool:
    """Whether a file without a telling suffix says in its first line that it is Python."""
    try:
        with path.open("rb") as file:
            first_line = file.readline(256)
    except OSError:
        return False
    return first_line.startswith(b"#!") and b"python" in first_line
