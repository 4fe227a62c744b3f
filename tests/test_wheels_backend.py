"""pip says in one sentence where ungil cannot be built, before it loads or compiles anything."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parent.parent
ASK = "import backend; print(backend.get_requires_for_build_{}())"


def ask(what: str, platform: str | None) -> subprocess.CompletedProcess[str]:
    """Calls a hook as pip does, in a process without maturin; Python takes the platform as told."""
    environment = os.environ | {"PYTHONPATH": str(PROJECT / "wheels")}
    if platform:
        environment["_PYTHON_HOST_PLATFORM"] = platform
    code = "import sys; sys.modules['maturin'] = None\n" + ASK.format(what)
    return subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("platform", ["macosx-14.0-arm64", "win-amd64", "linux-riscv64"])
@pytest.mark.parametrize("what", ["wheel", "editable"])
def test_elsewhere_it_ends_with_a_sentence(what: str, platform: str) -> None:
    done = ask(what, platform)
    assert done.returncode == 1
    sentence = f"ungil needs Linux on x86-64 or aarch64, and this is {platform}\n"
    assert (done.stdout, done.stderr) == ("", sentence)


@pytest.mark.parametrize("platform", ["linux-x86_64", "linux-aarch64", None])
def test_where_ungil_runs_it_asks_for_maturin(platform: str | None) -> None:
    done = ask("wheel", platform)
    assert done.stdout.startswith("['maturin>="), done.stderr


def test_sources_are_packed_everywhere() -> None:
    assert ask("sdist", "win-amd64").stdout.startswith("['maturin>=")


def test_every_hook_of_maturin_is_there_before_maturin_is() -> None:
    starts = ("build_", "prepare_", "get_requires")
    hooks = {name for name in dir(import_module("maturin")) if name.startswith(starts)}
    code = "import sys, backend; print(*dir(backend), 'maturin' in sys.modules)"
    command = [sys.executable, "-c", code]
    said = subprocess.check_output(command, cwd=PROJECT / "wheels", text=True).split()
    assert hooks
    assert hooks <= {*said}
    assert said[-1] == "False"
