"""Where nobody may look into a program it is recorded all the same, and the report says why not."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

from conftest import UNGIL
from suite import PATIENCE_S, filtered

# The waiting thread makes the holds ones that are looked at.
HOLDS = """
import threading
ready = threading.Event()
def waits():
    for _ in range(300): ready.wait(0.001)
thread = threading.Thread(target=waits); thread.start()
for _ in range(20): sorted(range(500000), key=None, reverse=True)
thread.join()
"""
# In a PID namespace of its own, with the /proc of the outer one.
APART = ["unshare", *(() if os.geteuid() == 0 else ("--map-root-user",)), "--pid", "--fork"]


def notes(folder: Path, *before: str) -> list[str]:
    """What the report says beside its numbers, where the program ran well."""
    words = [*before, *UNGIL, "trace", "-q", "--json", "-", "-c", HOLDS]
    done = subprocess.run(
        words, cwd=folder, capture_output=True, text=True, check=False, timeout=PATIENCE_S
    )
    assert (done.returncode, done.stderr) == (0, "")
    report = json.loads(done.stdout)
    (process,) = report["processes"]
    assert process["gils"][0]["voluntary"] > 300
    return report["notes"]


def test_a_filter_that_kills_who_reads_costs_the_stacks_and_the_report_says_so(
    tmp_path: Path,
) -> None:
    (note,) = notes(tmp_path, *filtered("killed", "process_vm_readv"))
    assert "a seccomp filter kills processes that read another one (process_vm_readv)" in note


def test_a_filter_that_kills_who_traces_costs_the_native_functions_alone(tmp_path: Path) -> None:
    (note,) = notes(tmp_path, *filtered("killed", "ptrace"))
    assert note == (
        "the native functions of long holds are missing: a seccomp filter kills processes that "
        "call ptrace"
    )


def test_the_numbers_of_another_namespace_are_not_mistaken_for_those_of_this_one(
    tmp_path: Path,
) -> None:
    (note,) = notes(tmp_path, *APART)
    assert "the /proc that is mounted here belongs to another PID namespace" in note
    assert "mount -t proc proc /proc" in note
