"""What the suite itself promises: it hears all signals, it ends, and runs where it is told to."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from pythons import REQUIRED
from suite import PATIENCE_S

ROOT = Path(__file__).parent.parent
PYTEST = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]


def run(*words: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """A command in the folder of the project."""
    return subprocess.run(
        words,
        cwd=ROOT,
        env=os.environ | variables,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


@pytest.mark.parametrize("name", ["INT", "QUIT", "HUP", "ALRM"])
def test_programs_hear_the_signals_that_the_suite_was_started_to_ignore(name: str) -> None:
    """A shell makes the background jobs of a script ignore SIGINT, for example."""
    number = int(signal.Signals[f"SIG{name}"])
    dies = f"import os; os.kill(os.getpid(), {number})"
    suite = (
        "import conftest, subprocess, sys; conftest.take_all_signals(); "
        f"sys.exit(-subprocess.call([sys.executable, '-c', {dies!r}]))"
    )
    ignoring = ["sh", "-c", f'trap "" {name}; exec "$@"', "sh"]
    done = run(*ignoring, sys.executable, "-c", suite, PYTHONPATH=str(Path(__file__).parent))
    assert done.returncode == number, done.stderr


HANGS = {
    "in epoll, inside of uvloop": """
import asyncio, uvloop
def test_hangs():
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(asyncio.Event().wait())
""",
    "with the GIL": """
import re
def test_hangs():
    re.match("(a+)+$", "a" * 100 + "b")
""",
}


@pytest.mark.parametrize("workers", ["0", "1"])
@pytest.mark.parametrize("hang", HANGS.values(), ids=list(HANGS))
def test_a_hang_is_ended_and_its_place_is_told(hang: str, workers: str, tmp_path: Path) -> None:
    test = tmp_path / "test_hang.py"
    test.write_text(hang)
    how = ["-o", "faulthandler_timeout=1", "--numprocesses", workers]
    done = run(*PYTEST, "-c", "pyproject.toml", "--rootdir", tmp_path, *how, test)
    assert done.returncode == 1
    assert "in test_hangs" in done.stdout + done.stderr


def test_where_pythons_are_required_it_does_not_begin_without_them(tmp_path: Path) -> None:
    words = [*PYTEST, "--collect-only", Path(__file__)]
    bare = {"PYENV_ROOT": str(tmp_path)}
    refused = run(*words, REQUIRE_PYTHONS="1", **bare)
    assert refused.returncode == pytest.ExitCode.USAGE_ERROR
    mine = f"{sys.version_info[0]}.{sys.version_info[1]}"
    absent = ", ".join(name for name in REQUIRED if name != mine)
    assert f"REQUIRE_PYTHONS is set, and there is no Python {absent} here" in refused.stderr
    assert run(*words, REQUIRE_PYTHONS="", **bare).returncode == 0
