"""What is linked into an interpreter calls through its slots, and is never taken for its GIL."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from embedding import CALLS, THREADS, WORKING
from pythons import DEBIAN, Python, built, pythons
from suite import PATIENCE_S, PROGRAMS
from tracing import trace

RunUngil = Callable[..., subprocess.CompletedProcess[str]]
Start = Callable[..., subprocess.Popen[str]]

ASK = """\
import json, sys, sysconfig
names = "LIBPL LIBRARY LIBS SYSLIBS LINKFORSHARED".split()
print(json.dumps([sys.base_prefix, *map(sysconfig.get_config_var, names)]))
"""


@dataclass(frozen=True)
class Archive:
    """A libpython to be linked with."""

    python: Python
    home: str
    words: list[str]
    """For the linker."""

    def __str__(self) -> str:
        return self.python.name


def archives() -> list[Archive]:
    """Those of the machine's Pythons."""
    found: list[Archive] = []
    for python in pythons("3.8", "3.11", "3.12", "3.13", since=(3, 8)):
        if Path(python.path) == DEBIAN:
            continue  # It has modules in it, and so needs more.
        asked = subprocess.run([python.path, "-c", ASK], capture_output=True, text=True, check=True)
        home, folder, library, *flags = json.loads(asked.stdout)
        archive = Path(folder, library)
        if archive.exists():
            # All of it: extension modules use what nothing else does.
            words = ["-Wl,--whole-archive", str(archive), "-Wl,--no-whole-archive"]
            words += [word for it in flags for word in it.split()]
            found.append(Archive(python, home, words))
    return found


ARCHIVES = archives()
STATIC = built("static")
CONTAINED = Path(__file__).parent.parent / "bench" / "programs" / "linked_in.py"


def at_home(archive: Archive) -> dict[str, str]:
    """The environment in which a linked program finds its standard library."""
    return {**os.environ, "LINKED_HOME": archive.home}


@pytest.fixture
def linked(tmp_path: Path) -> Callable[[Archive], str]:
    """Links `linked_in.c` with a libpython."""

    def link(archive: Archive) -> str:
        program = tmp_path / "linked_in"
        command = ["cc", "-O1", "-o", program, PROGRAMS / "linked_in.c", *archive.words]
        subprocess.run(command, check=True)
        return str(program)

    return link


def check_threads(process: dict[str, Any]) -> None:
    """It has one GIL, which nobody uses but the threads of `WORKING`."""
    assert process["not_recorded"] is None
    (gil,) = process["gils"]
    main, *workers = sorted(gil["threads"], key=lambda it: not it["main"])
    assert main["main"]
    assert len(workers) == THREADS
    # They let go of it at each open, read and close, and at their end.
    assert all(it["voluntary"] + it["forced"] >= CALLS for it in workers)


@pytest.mark.parametrize("archive", ARCHIVES, ids=str)
def test_what_looks_like_a_gil_and_is_none_is_not_recorded(
    tmp_path: Path, linked: Callable[[Archive], str], archive: Archive
) -> None:
    recording = trace(tmp_path, linked(archive), "-c", WORKING, env=at_home(archive))
    assert recording.stdout == "all turns taken\n"
    check_threads(recording.process)


@pytest.mark.parametrize("archive", ARCHIVES, ids=str)
def test_nor_is_it_scheduled(
    ungil: RunUngil, linked: Callable[[Archive], str], archive: Archive
) -> None:
    program = linked(archive)
    for policy in ("interactive", "batch"):
        words = ["run", "--policy", policy, program, "-c", WORKING]
        outcome = ungil(*words, env=at_home(archive))
        assert (outcome.returncode, outcome.stderr) == (0, "")
        assert outcome.stdout == "all turns taken\n"


SEVERAL = [archive for archive in ARCHIVES if archive.python.version >= (3, 12)]


@pytest.mark.parametrize("archive", SEVERAL, ids=str)
def test_gils_of_sub_interpreters_are_told_from_it(
    tmp_path: Path, linked: Callable[[Archive], str], archive: Archive
) -> None:
    count, times = 3, 100
    program = PROGRAMS / "subinterpreters.py"
    words = [linked(archive), program, str(count), str(times)]
    recording = trace(tmp_path, *words, env=at_home(archive))
    assert recording.stdout == "all turns taken\n"
    gils = recording.process["gils"]
    assert [it["gil"] for it in gils] == list(range(count + 1))
    for gil in gils[1:]:
        main, runner = sorted(gil["threads"], key=lambda it: not it["main"])
        assert main["main"]
        assert runner["voluntary"] + runner["forced"] == times + 2


WAITING = """
import sys, threading
over = threading.Event()
def work():
    while not over.is_set():
        sum(range(1000))
threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads: thread.start()
print("ready", flush=True)
sys.stdin.readline()
over.set()
for thread in threads: thread.join()
"""


@pytest.mark.parametrize("how", ["bare", "in standby"])
@pytest.mark.parametrize("archive", ARCHIVES[-1:], ids=str)
def test_it_is_not_met_in_a_process_that_runs(
    tmp_path: Path, linked: Callable[[Archive], str], archive: Archive, how: str, ungil: RunUngil
) -> None:
    standby = [sys.executable, "-m", "ungil", "run", "--standby"] if how == "in standby" else []
    with subprocess.Popen(
        [*standby, linked(archive), "-c", WAITING],
        env=at_home(archive),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        words = ["--pid", str(process.pid), "--for", "300ms", "-f", "-o", str(tmp_path / "trace")]
        found: set[int] = set()
        # In one recording a busy machine may leave no time to a thread. The main one waits for its
        # input.
        while len(found) < THREADS:
            outcome = ungil("trace", *words, "--json", "-", "-q")
            (recorded,) = json.loads(outcome.stdout)["processes"]
            (gil,) = recorded["gils"]
            found |= {thread["tid"] for thread in gil["threads"]}
        said, _ = process.communicate("\n", timeout=PATIENCE_S)
    assert (process.returncode, said) == (0, "all turns taken\n")
    assert len(found) == THREADS


@pytest.mark.parametrize("python", STATIC, ids=str)
@pytest.mark.parametrize(
    ("kind", "sharing"),
    [("handshakes", 4), ("digests", 4), ("aggregates", 4), ("queries", 4), ("events", 1)],
)
def test_an_interpreter_with_its_libraries_in_it_has_one_gil(
    tmp_path: Path, ungil: RunUngil, python: Python, kind: str, sharing: int
) -> None:
    words = [python.path, str(CONTAINED), kind, "20", str(sharing)]
    recording = trace(tmp_path, *words)
    (gil,) = recording.process["gils"]
    # The main thread, others that share its work, and one that waits.
    assert len(gil["threads"]) == sharing + 1
    for policy in ("interactive", "batch"):
        outcome = ungil("run", "--policy", policy, *words)
        assert (outcome.returncode, outcome.stderr) == (0, "")
