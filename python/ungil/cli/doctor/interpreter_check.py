"""Whether the hook records an interpreter."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from ungil.cli.doctor.check import Check, Status
from ungil.cli.doctor.workplace import workplace
from ungil.errors import Error
from ungil.formatting import plural, printable
from ungil.recorder import new_recorder, recorded
from ungil.report.model import parse

PATIENCE_S = 60
# Two threads are enough to see that a second one is recorded; works on 2.7, too.
TWO_THREADS = (
    "import threading; t = threading.Thread(target=len, args=('',));"
    " t.start(); t.join(); print('ran')"
)

# By words of what is wrong.
REMEDIES = {
    "is statically linked": "use a dynamically linked one, as distributions ship",
    "is built for glibc": "install ungil with its own pip",
    "is setuid or setgid": "run a copy of it without these bits",
    "PyPy": "use CPython",
    "and ungil for": "install ungil for that processor",
    "no room for its buffers": "see the check limits; a wrapper must pass on LD_PRELOAD and "
    "UNGIL_SESSION",
    "no interpreter was seen": "give the interpreter itself",
    "ungil knows a GIL": "use CPython 2.7, or 3.7 or newer",
}


def check_interpreter(path: Path, otherwise: Status) -> Check:
    """Whether the hook records `path`, found out by doing it; `otherwise` if it does not."""
    from ungil._native import hookable

    try:
        problem = hookable(str(path))
        works, text = (False, problem) if problem is not None else _try(path)
    except (OSError, Error) as error:
        works, text = False, str(error)
    # A sentence of the native part begins with the path.
    text = text if text.startswith(f"{path} ") else f"{path}: {text}"
    if works:
        return Check(Status.OK, "interpreter", printable(text))
    advice = next((helps for words, helps in REMEDIES.items() if words in text), "")
    return Check(otherwise, "interpreter", printable(text), advice)


def _try(path: Path) -> tuple[bool, str]:
    """Record a program with two threads: whether that works, and what came of it."""
    with workplace() as folder:
        recorder = new_recorder(str(folder / "doctor.pftrace"))
        environment = recorded(recorder, os.environ)
        recorder.start(str(path))
        with subprocess.Popen(
            [str(path), "-c", TWO_THREADS],
            # A free-threaded one has a GIL only if it is asked for.
            env={**environment, "PYTHON_GIL": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as child:
            try:
                printed, errors = child.communicate(timeout=PATIENCE_S)
            except subprocess.TimeoutExpired:
                child.kill()
                return False, f"did not end within {PATIENCE_S} s"
        report = parse(recorder.stop())
    said = errors.decode(errors="replace").strip()
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
            condition = " while its GIL is on" if process.get("free_threaded") else ""
            return True, f"{version}, recorded with {plural(threads, 'thread')}{condition}"
        return False, f"{plural(threads, 'thread')} of 2 recorded"
    if printed.split()[-1:] == [b"ran"]:
        return (
            False,
            "it runs, but it did not load the hook, or the hook found no room for its buffers",
        )
    return False, "no interpreter was seen in it"
