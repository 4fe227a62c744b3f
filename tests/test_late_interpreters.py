"""A libpython that a program loads after its start is recorded and scheduled like any other."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from embedding import CALLS, THREADS, WORKING, Library, embedding, libraries, scheduled_libraries
from scheduling import page_of
from tracing import Recording, trace

RunUngil = Callable[..., subprocess.CompletedProcess[str]]
Start = Callable[..., subprocess.Popen[str]]

HOWS = ["local", "global", "lazy", "lazy global threads", "local fork", "lazy threads fork"]

LIBRARIES = libraries()
SCHEDULED = scheduled_libraries()
NEWEST = max(SCHEDULED, key=lambda library: library.version)


def ways(chosen: list[Library]) -> list[tuple[Library, str]]:
    """Every library in two ways, the newest one in all."""
    two = [(library, how) for library in chosen for how in (HOWS[0], HOWS[3])]
    return two + [(NEWEST, how) for how in HOWS if how not in (HOWS[0], HOWS[3])]


def check_recorded(process: dict[str, Any], lives: int = 1) -> None:
    """All that `WORKING` did is there, in a process that ran it so many times."""
    assert process["not_recorded"] is None
    (gil,) = process["gils"]
    assert gil["gil"] == 0
    threads = sorted(gil["threads"], key=lambda it: it["started_s"])
    main, workers = threads[0], threads[1:]
    assert main["main"] == (main["tid"] == process["pid"])
    assert len(workers) == THREADS * lives
    for worker in workers:
        # It lets go at each open, read and close, and at its end.
        assert worker["voluntary"] + worker["forced"] >= CALLS
    # It starts them all, so each life has its part.
    assert main["voluntary"] + main["forced"] >= lives


@pytest.mark.parametrize(("library", "how"), ways(LIBRARIES), ids=str)
def test_it_is_recorded_from_its_start(tmp_path: Path, library: Library, how: str) -> None:
    recording = trace(tmp_path, *embedding(tmp_path, library, how, WORKING))
    process = recording.process
    assert process["python"].startswith("{}.{}.".format(*library.version))
    check_recorded(process)


@pytest.mark.parametrize("library", SCHEDULED, ids=str)
def test_what_it_holds_is_known_from_the_first_acquire(tmp_path: Path, library: Library) -> None:
    recording = trace(tmp_path, *embedding(tmp_path, library, "local", "x = sum(range(100000))"))
    (thread,) = recording.gil["threads"]
    # From the acquire in Py_Initialize, and never by a release alone.
    assert thread["holds"]["count"] - (thread["voluntary"] + thread["forced"]) in (0, 1)
    assert recording.track(thread["name"]).slices[0].name == "hold"


@pytest.mark.parametrize("library", SCHEDULED, ids=str)
def test_one_that_is_unloaded_may_come_again(tmp_path: Path, library: Library) -> None:
    recording = trace(tmp_path, *embedding(tmp_path, library, "lazy close", WORKING, times=4))
    # Otherwise this is about nothing.
    assert recording.stdout == "gone\n" * 4
    check_recorded(recording.process, lives=4)


SHOW_PAGE = (
    "print([line.split()[-1] for line in open('/proc/self/maps') if '/ungil-policy-' in line])"
)


@pytest.mark.parametrize(("library", "how"), ways(SCHEDULED), ids=str)
def test_it_is_scheduled(ungil: RunUngil, tmp_path: Path, library: Library, how: str) -> None:
    code = f"{WORKING}\n{SHOW_PAGE}"
    outcome = ungil("run", *embedding(tmp_path, library, how, code))
    assert (outcome.returncode, outcome.stderr) == (0, "")
    assert outcome.stdout.startswith("['/dev/shm/ungil-policy-"), outcome.stdout


def test_it_can_be_given_another_policy(ungil: RunUngil, start: Start, tmp_path: Path) -> None:
    code = "import sys; print(1); sys.stdout.flush(); sys.stdin.readline()"
    words = embedding(tmp_path, NEWEST, "local", code)
    process = start("run", *words, stdin=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == "1\n"
    outcome = ungil("policy", str(process.pid), "batch")
    assert outcome.stdout.startswith(f"process {process.pid}: batch, quantum 100 ms (was interac")
    process.communicate("\n")
    assert process.returncode == 0
    assert not page_of(process.pid).exists()


@pytest.mark.parametrize("library", SCHEDULED, ids=str)
def test_scheduled_lives_follow_each_other(
    ungil: RunUngil, tmp_path: Path, library: Library
) -> None:
    words = embedding(tmp_path, library, "lazy close", WORKING, times=4)
    outcome = ungil("run", *words)
    assert (outcome.returncode, outcome.stdout, outcome.stderr) == (0, "gone\n" * 4, "")


def test_alone_means_without_the_children_that_it_starts(tmp_path: Path) -> None:
    code = f"import os; os.system({sys.executable!r} + ' -c 1')"
    words = embedding(tmp_path, NEWEST, "global", code)
    assert len(trace(tmp_path, *words).processes) == 2
    assert len(trace(tmp_path, *words, options=["--no-children"]).processes) == 1
    # A child after fork is no other program, but another process.
    forked = embedding(tmp_path, NEWEST, "local fork", "pass")
    recording = trace(tmp_path, *forked, options=["--no-children"])
    assert recording.processes == []
    assert recording.finding("not-recorded")


# What cannot be seen is told.


def verdict(recording: Recording) -> str:
    """Why nothing was recorded."""
    return recording.finding("not-recorded")["text"]


def test_one_that_is_hidden_is_told(ungil: RunUngil, tmp_path: Path) -> None:
    words = embedding(tmp_path, NEWEST, "deep", WORKING)
    assert "hides it (RTLD_DEEPBIND)" in verdict(trace(tmp_path, *words))
    outcome = ungil("run", *words)
    assert outcome.returncode == 0
    assert outcome.stderr == (
        "ungil: no GIL was scheduled: embedding loaded a Python, but did not start it, or loaded "
        "it in a way that hides it from ungil (RTLD_DEEPBIND)\n"
    )


def test_one_that_is_never_started_is_told(ungil: RunUngil, tmp_path: Path) -> None:
    words = embedding(tmp_path, NEWEST, "unused", "")
    assert "it was not started" in verdict(trace(tmp_path, *words))
    outcome = ungil("run", *words)
    assert "embedding loaded a Python, but did not start it" in outcome.stderr


@pytest.mark.parametrize(
    "library", [library for library in LIBRARIES if library.version == (2, 7)], ids=str
)
def test_one_that_cannot_be_scheduled_is_told(
    ungil: RunUngil, tmp_path: Path, library: Library
) -> None:
    outcome = ungil("run", *embedding(tmp_path, library, "local", "pass"))
    assert outcome.stderr == (
        "ungil: the Python that embedding loaded is not scheduled: it is older than Python 3.7, or "
        "of a build that ungil does not know\n"
    )


# `ungil.gil.install()` in a process that the hook was not preloaded into.

INSTALLING = """
import threading
from ungil import gil
gil.install()
assert gil.installed()

def work():
    for _ in range(20):
        with open("/dev/null") as file:
            file.read()

threads = [threading.Thread(target=work, name=f"worker-{i}") for i in range(3)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""


def without_preload(code: str) -> list[str]:
    """A Python that has the other variables of a recording."""
    return ["env", "-u", "LD_PRELOAD", sys.executable, "-c", code]


def test_installing_joins_the_recording(tmp_path: Path) -> None:
    process = trace(tmp_path, *without_preload(INSTALLING)).process
    (gil,) = process["gils"]
    assert len(gil["threads"]) == 4
    for worker in [it for it in gil["threads"] if not it["main"]]:
        assert worker["voluntary"] + worker["forced"] >= 20
    (main,) = [it for it in gil["threads"] if it["main"]]
    # It held the GIL when it installed the hook, and its hold counts from then on.
    assert main["holds"]["count"] - (main["voluntary"] + main["forced"]) in (0, 1)


def test_forked_children_join_it_too(tmp_path: Path) -> None:
    code = f"{INSTALLING}\nimport os\nif os.fork() == 0:\n    work()\nelse:\n    os.wait()"
    recording = trace(tmp_path, *without_preload(f"import warnings\n{code}"))
    assert len(recording.processes) == 2
    assert all(it["gils"] for it in recording.processes)


def test_installing_twice_records_once(tmp_path: Path) -> None:
    code = f"{INSTALLING}\ngil.install()"
    assert len(trace(tmp_path, *without_preload(code)).processes) == 1
    # Nor does it, where the hook was preloaded.
    assert len(trace(tmp_path, sys.executable, "-c", code).processes) == 1


def test_installing_obeys_the_policy_that_the_environment_names() -> None:
    code = f"from ungil import gil; gil.install(); print(gil.policy())\n{SHOW_PAGE}"
    environment = {**os.environ, "UNGIL_POLICY": "batch", "UNGIL_QUANTUM": "7"}
    # Without `site`, which would obey it before.
    package = str(Path(sys.modules["ungil"].__path__[0]).parent)
    words = [sys.executable, "-S", "-c", f"import sys; sys.path.append({package!r})\n{code}"]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
    policy, page = done.stdout.splitlines()
    assert policy == "Policy(name='batch', quantum_ms=7.0)"
    assert page.startswith("['/dev/shm/ungil-policy-")
