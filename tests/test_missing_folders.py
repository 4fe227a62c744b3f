"""Where /proc, /dev/shm or temporary folders are missing, ungil works or says the true reason."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from conftest import UNGIL
from missing import Hiding, Mounts, ways

from ungil.cli.doctor.remedy import PLACES
from ungil.cli.doctor.remedy import TEMPORARY as REMEDY

Way = Mounts | Hiding
Outcome = subprocess.CompletedProcess[str]
Without = Callable[..., Outcome]

TEMPORARY = ["/tmp", "/var/tmp", "/usr/tmp"]
THREADS = """\
import sys, threading
threads = [threading.Thread(target=sum, args=(range(10**6),)) for _ in range(2)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""


@pytest.fixture(params=ways(), ids=str)
def without(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    environment: dict[str, str],
) -> Without:
    """Run a command to its end where some folders are missing."""
    scratch = tmp_path_factory.mktemp("library")

    def run(folders: Sequence[str], *words: str, **options: Any) -> Outcome:
        way: Way = request.param
        command, variables = way.without(folders, words, scratch)
        extra: dict[str, str] = options.pop("env", {})
        variables = environment | extra | variables
        cwd: Path = options.pop("cwd", tmp_path)
        return subprocess.run(
            command,
            cwd=cwd,
            env=variables,
            capture_output=True,
            text=True,
            check=False,
        )

    return run


def checks(outcome: Outcome) -> dict[str, dict[str, str]]:
    """What the doctor found, by name."""
    return {check["name"]: check for check in json.loads(outcome.stdout)["checks"]}


# No /proc.


def test_the_doctor_says_what_does_not_work_without_proc(without: Without) -> None:
    outcome = without(["/proc"], *UNGIL, "doctor", sys.executable, "--json")
    assert (outcome.returncode, outcome.stderr) == (0, "")
    found = checks(outcome)
    assert found["/proc"]["status"] == "warn"
    assert found["/proc"]["text"].startswith("not mounted: ")
    assert found["/proc"]["advice"] == "mount it: mount -t proc proc /proc"
    assert found["interpreter"]["status"] == "ok"
    # It is no matter of capabilities.
    assert "SYS_PTRACE" not in outcome.stdout


def test_a_program_is_recorded_without_proc(without: Without) -> None:
    words = [*UNGIL, "trace", "-q", "--json", "-", "-c", f"{THREADS}\nsys.exit(7)"]
    outcome = without(["/proc"], *words)
    assert (outcome.returncode, outcome.stderr) == (7, "")
    report = json.loads(outcome.stdout)
    (process,) = report["processes"]
    (gil,) = process["gils"]
    assert len(gil["threads"]) == 3


def test_a_long_hold_says_why_it_has_no_stack_without_proc(without: Without) -> None:
    # The waiting thread makes the hold one that is looked at.
    code = (
        "import threading\n"
        "ready = threading.Event()\n"
        "def waits():\n"
        "    for _ in range(300): ready.wait(0.001)\n"
        "thread = threading.Thread(target=waits); thread.start()\n"
        "for _ in range(20): sorted(range(500000), key=None, reverse=True)\n"
        "thread.join()\n"
    )
    outcome = without(["/proc"], *UNGIL, "trace", "-q", "--json", "-", "-c", code)
    (note, *_) = json.loads(outcome.stdout)["notes"]
    assert "/proc is not mounted here" in note
    assert "mount -t proc proc /proc" in note


def test_a_program_is_scheduled_without_proc(without: Without) -> None:
    code = (
        f"{THREADS}\nfrom ungil import gil\nassert gil.policy().name == 'interactive'\nsys.exit(7)"
    )
    outcome = without(["/proc"], *UNGIL, "run", "-c", code)
    assert (outcome.returncode, outcome.stderr) == (7, "")


@pytest.mark.parametrize("made", ["share.Heap()", "share.Heap('no-proc')"])
def test_a_heap_says_that_it_needs_proc(without: Without, made: str) -> None:
    code = f"from ungil import share\ntry: {made}\nexcept OSError as error: print(error)"
    outcome = without(["/proc"], sys.executable, "-c", code)
    assert outcome.stdout == (
        "shared heaps need /proc, which is not mounted here; mount it (mount -t proc proc /proc)\n"
    )


@pytest.mark.parametrize(
    ("words", "start", "status"),
    [
        (["policy", "1"], "process 1 cannot be inspected", 2),
        (["dump", "1"], "process 1 cannot be inspected", 2),
        (["top", "1", "--once", "--json"], "process 1 cannot be inspected", 2),
        (["heap", "ls"], "ungil cannot look for heaps without a name", 1),
    ],
)
def test_commands_that_look_into_processes_say_that_they_need_proc(
    without: Without, words: list[str], start: str, status: int
) -> None:
    outcome = without(["/proc"], *UNGIL, *words)
    said = f"ungil: {start}: /proc is not mounted here; mount it: mount -t proc proc /proc\n"
    assert (outcome.returncode, outcome.stdout, outcome.stderr) == (status, "", said)


# No place for temporary files.


def test_the_doctor_works_where_no_folder_is_there_for_temporary_files(without: Without) -> None:
    # In /proc nobody can make a file, and the current folder is where Python looks last.
    words = [*UNGIL, "doctor", sys.executable, "--json"]
    outcome = without(TEMPORARY, *words, cwd="/proc", env={"TMPDIR": "/nowhere"})
    assert (outcome.returncode, outcome.stderr) == (0, "")
    found = checks(outcome)["temporary files"]
    assert found["status"] == "warn"
    assert found["text"] == "no folder for them is writable"
    assert found["advice"] in {REMEDY.sentence(place) for place in (*PLACES, None)}
    assert checks(outcome)["interpreter"]["status"] == "ok"


def test_the_doctor_tells_where_temporary_files_are_instead(without: Without) -> None:
    outcome = without([], *UNGIL, "doctor", sys.executable, "--json", env={"TMPDIR": "/nowhere"})
    assert outcome.returncode == 0
    found = checks(outcome)["temporary files"]
    assert found["text"] == "/nowhere is not writable, so they are in /tmp"


def test_without_shared_memory_buffers_are_in_a_temporary_folder(without: Without) -> None:
    code = "import os, sys; print(os.environ['UNGIL_SESSION']); sys.exit(7)"
    words = [*UNGIL, "trace", "-q", "-o", "t.pftrace", "-c", code]
    outcome = without(["/dev/shm"], *words, env={"TMPDIR": "/nowhere"})
    assert (outcome.returncode, outcome.stderr) == (7, "")
    assert outcome.stdout.startswith("/tmp/ungil-session-")
    assert not Path(outcome.stdout.strip()).exists()


def test_where_there_is_no_place_at_all_one_sentence_says_so_and_nothing_runs(
    without: Without, tmp_path: Path
) -> None:
    words = [*UNGIL, "trace", "-o", "t.pftrace", "-c", "print('ran')"]
    outcome = without(["/dev/shm", *TEMPORARY], *words, env={"TMPDIR": "/nowhere"})
    assert (outcome.returncode, outcome.stdout) == (1, "")
    start = "ungil: there is no room for the recording's buffers (/dev/shm: "
    assert outcome.stderr.startswith(start)
    assert "; /nowhere: no such file or directory; /tmp: " in outcome.stderr
    assert "); set TMPDIR to a folder on a disk with 32 MiB free" in outcome.stderr
    assert outcome.stderr.count("\n") == 1
    assert os.listdir(tmp_path) == []  # noqa: PTH208 (its path is hidden)


def test_where_there_is_no_place_at_all_the_doctor_says_so(without: Without) -> None:
    words = [*UNGIL, "doctor", sys.executable, "--json"]
    folders = ["/dev/shm", *TEMPORARY]
    outcome = without(folders, *words, cwd="/proc", env={"TMPDIR": "/nowhere"})
    assert (outcome.returncode, outcome.stderr) == (1, "")
    found = checks(outcome)
    assert found["preload"]["status"] == "fail"
    assert found["preload"]["text"] == (
        "ungil cannot try a trace: neither a temporary folder nor /dev/shm is writable; "
        "set TMPDIR to a writable folder"
    )
    assert found["/dev/shm"]["status"] == "warn"
