"""What PROGRAM on the command line of `ungil run` and `ungil trace` means.

| written                                   | run as                       | named          |
|-------------------------------------------|------------------------------|----------------|
| `-m MODULE`, `-c CODE`                    | this Python                  | MODULE, command|
| `x.py`, a folder or zip with `__main__`,  | this Python                  | file's stem    |
| a `#!` script for Python, not executable  |                              |                |
| anything else                             | itself, found as a shell does| its base name  |

Every start of a program under `ungil run` imports this module, so it does without slow imports,
pathlib among them.
"""

from __future__ import annotations

import os
import sys

from ungil.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

PYTHON_SUFFIXES = {".py", ".pyw", ".pyc"}


class Program:
    """A program to start."""

    def __init__(self, argv: Sequence[str], executable: str, name: str) -> None:
        self.argv = list(argv)
        self.executable = executable
        self.name = name


def find_program(words: Sequence[str], verb: str) -> Program:
    """The program that `words` name; UsageError if there is none.

    `verb` is the command that was asked to start it, "trace" or "run".
    """
    if not words:
        raise UsageError(
            f"no program to {verb}; name a script, -m MODULE, -c CODE or a command, "
            f"for example: ungil {verb} app.py"
        )
    first = words[0]
    if first[:2] in ("-m", "-c"):
        return _module_or_code(words)
    if first == "":
        raise UsageError(f"the name of the program to {verb} is empty")
    if os.path.splitext(first)[1] in PYTHON_SUFFIXES:
        if not os.path.exists(first):
            raise UsageError(f"there is no file {first!r}")
        if os.path.isfile(first):
            return _with_this_python(words)
    if "/" not in first and (found := _on_path(first)):
        return Program(words, found, first)
    if os.path.isdir(first):
        if any(os.path.isfile(f"{first}/__main__{suffix}") for suffix in (".py", ".pyc")):
            return _with_this_python(words)
        raise UsageError(f"{first!r} is a folder without a __main__.py")
    if not os.path.exists(first):
        where = "there is no file" if "/" in first else "there is no command or file"
        raise UsageError(f"{where} {first!r}")
    if "/" in first and os.access(first, os.X_OK):
        return Program(words, first, os.path.basename(first))
    if _is_python_script(first) or _is_zip(first):
        return _with_this_python(words)
    if os.access(first, os.X_OK):
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


def _with_this_python(words: Sequence[str]) -> Program:
    path = words[0]
    stem = os.path.splitext(os.path.basename(path.rstrip("/")))[0]
    # "." and ".." are no names.
    name = stem if stem.strip(".") else os.path.basename(os.path.realpath(path))
    # A path that begins with a dash would be an option of Python.
    script = f"./{path}" if path.startswith("-") else path
    return Program([sys.executable, script, *words[1:]], sys.executable, name)


def _on_path(name: str) -> str | None:
    """The file that a shell would run as `name`."""
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        path = os.path.join(folder, name)
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return None


def _is_python_script(path: str) -> bool:
    """Whether a file without a telling suffix says in its first line that it is Python."""
    try:
        with open(path, "rb") as file:
            first_line = file.readline(256)
    except OSError:
        return False
    return first_line.startswith(b"#!") and b"python" in first_line


def _is_zip(path: str) -> bool:
    import zipfile  # rarely needed, and slow to import

    return zipfile.is_zipfile(path)
