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


# As a build without the GIL, and of this version, has them.
FREE_THREADED = """
import sys, sysconfig
sysconfig.get_config_vars()["Py_GIL_DISABLED"] = 1
sys.version_info = type("version_info", (tuple,), {{"major": {0}, "minor": {1}}})(({0}, {1}))
"""


def ask(
    what: str, platform: str | None, before: str = "", **variables: str
) -> subprocess.CompletedProcess[str]:
    """Calls a hook as pip does, in a process without maturin; Python takes the platform as told."""
    environment = os.environ | {"PYTHONPATH": str(PROJECT / "wheels")} | variables
    if platform:
        environment["_PYTHON_HOST_PLATFORM"] = platform
    code = f"import sys; sys.modules['maturin'] = None\n{before}\n{ASK.format(what)}"
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


def test_a_free_threaded_python_that_is_too_old_ends_with_a_sentence() -> None:
    done = ask("wheel", None, FREE_THREADED.format(3, 13))
    sentence = "ungil needs a free-threaded Python of 3.14 or newer, and this is 3.13t\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", sentence)


def test_a_free_threaded_python_that_is_new_enough_asks_for_maturin() -> None:
    done = ask("wheel", None, FREE_THREADED.format(3, 14))
    assert done.stdout.startswith("['maturin>="), done.stderr


def test_who_tells_pyo3_not_to_check_the_version_is_believed() -> None:
    variables = {"UNSAFE_PYO3_SKIP_VERSION_CHECK": "1"}
    done = ask("wheel", None, FREE_THREADED.format(3, 13), **variables)
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
