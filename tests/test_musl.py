"""A program of musl is recorded and scheduled by an ungil of glibc.

The program is no Python, which few machines have for musl, but takes and lets go of its GIL by the
calls by which CPython does. Where there is a Python for musl, the tests of others run on it, too.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from suite import PROGRAMS
from tracing import trace

RunUngil = Callable[..., subprocess.CompletedProcess[str]]

TURNS = 3
QUANTUM_MS = 200


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """`gil_of_musl.c` as a program of musl."""
    file, source = tmp_path / "gil_of_musl", PROGRAMS / "gil_of_musl.c"
    # The hook finds an interpreter by its dynamic symbols.
    subprocess.run(["musl-gcc", "-O1", "-rdynamic", "-o", file, source], check=True)
    return file


def test_each_hold_of_a_thread_of_musl_is_recorded(program: Path, tmp_path: Path) -> None:
    recording = trace(tmp_path, program, str(TURNS))
    assert recording.stderr == ""
    told: dict[str, int] = recording.told["taken"]
    recorded = {str(it["tid"]): it["holds"]["count"] for it in recording.gil["threads"]}
    assert recorded == told
    assert len(told) == 3
    # Each turn was asked for by the other thread, which waited for it.
    assert recording.gil["forced"] >= 2 * TURNS - 1


def test_a_program_of_musl_follows_a_policy(ungil: RunUngil, program: Path) -> None:
    done = ungil("run", "--policy", "fair", "--quantum", str(QUANTUM_MS), str(program), str(TURNS))
    # A program that is not scheduled has ungil say so.
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["took_ns"] >= TURNS * QUANTUM_MS * 1_000_000
