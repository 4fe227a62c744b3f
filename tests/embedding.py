"""Pythons as libraries, and a C program that loads one after its start."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pythons import pythons
from suite import PROGRAMS

# Debian's interpreter is a static executable; its library belongs to another package.
DEBIAN = "/usr/lib/*/libpython3.11.so.1.0"
ASK = """\
import sys, sysconfig
ask = sysconfig.get_config_var
shared = ask("Py_ENABLE_SHARED")
print("%s/%s" % (ask("LIBDIR"), ask("INSTSONAME")) if shared else "")
print(sys.base_prefix if hasattr(sys, "base_prefix") else sys.prefix)
"""
# Without extension modules: they need libpython's symbols, which RTLD_LOCAL keeps from them.
THREADS, CALLS = 3, 20
WORKING = f"""
import threading

def work():
    for _ in range({CALLS}):
        with open("/dev/null") as file:
            file.read()

threads = [threading.Thread(target=work) for _ in range({THREADS})]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""


@dataclass(frozen=True)
class Library:
    """A libpython, and where its standard library is."""

    path: str
    home: str
    version: tuple[int, int]
    name: str

    def __str__(self) -> str:
        return self.name


@cache
def libraries() -> list[Library]:
    """The libpythons of the machine."""
    found: list[Library] = []
    for python in pythons():
        command = [python.path, "-c", ASK]
        told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        library, home = told.splitlines()
        if library and Path(library).exists():
            found.append(Library(library, home, python.version, python.name))
    debian = [Library(str(it), "/usr", (3, 11), "debian") for it in Path("/").glob(DEBIAN[1:])]
    return found + debian


def scheduled_libraries() -> list[Library]:
    """Those whose GIL can be scheduled."""
    return [library for library in libraries() if library.version >= (3, 7)]


@cache
def _compiled(folder: Path) -> Path:
    program = folder / "embedding"
    source = PROGRAMS / "embedding.c"
    command = ["cc", "-O1", "-o", program, source, "-ldl", "-lpthread"]
    subprocess.run(command, check=True)
    return program


def embedding(folder: Path, library: Library, how: str, code: str, times: int = 1) -> list[str]:
    """The words that run `tests/programs/embedding.c`, which is compiled into `folder`."""
    program = str(_compiled(folder))
    return [program, library.path, library.home, how, code, str(times)]
