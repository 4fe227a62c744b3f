"""Running the real command line, as a shell would, in a folder of the test's own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest

UNGIL = [sys.executable, "-m", "ungil"]
# Against hangs: far more than anything here takes on the slowest machine.
PATIENCE_S = 120

# What a shell makes a script's background jobs ignore, and nohup all jobs. Whoever starts the suite
# so, the programs of the tests get these signals.
NEEDED_SIGNALS = (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP)


def pytest_configure() -> None:
    """Give the programs of the tests the signals as a terminal does."""
    for number in NEEDED_SIGNALS:
        if signal.getsignal(number) is signal.SIG_IGN:
            is_interrupt = number == signal.SIGINT
            signal.signal(number, signal.default_int_handler if is_interrupt else signal.SIG_DFL)


@pytest.fixture
def environment() -> dict[str, str]:
    """The environment without what would change how the report looks."""
    changes_looks = {"COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "TERM", "TTY_COMPATIBLE"}
    return {name: value for name, value in os.environ.items() if name not in changes_looks}


@pytest.fixture
def ungil(
    tmp_path: Path, environment: dict[str, str]
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run `ungil ARGUMENTS` to its end."""

    def run(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
        defaults: dict[str, Any] = {
            "cwd": tmp_path,
            "env": environment,
            "stdin": None if "input" in options else subprocess.DEVNULL,
            "capture_output": True,
            "encoding": "utf-8",
            "errors": "surrogateescape",
            "timeout": PATIENCE_S,
        }
        settings = defaults | options
        return subprocess.run([*UNGIL, *arguments], check=False, text=True, **settings)

    return run


@pytest.fixture
def start(
    tmp_path: Path, environment: dict[str, str]
) -> Generator[Callable[..., subprocess.Popen[str]]]:
    """Start `ungil ARGUMENTS` in a session of its own; whatever is left of it is killed."""
    started: list[subprocess.Popen[str]] = []

    def run(*arguments: str, **options: Any) -> subprocess.Popen[str]:
        defaults: dict[str, Any] = {
            "args": [*UNGIL, *arguments],
            "cwd": tmp_path,
            "env": environment,
            "stdin": subprocess.DEVNULL,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
            "encoding": "utf-8",
            "start_new_session": True,
        }
        process = subprocess.Popen[str](**(defaults | options))
        started.append(process)
        return process

    yield run
    for process in started:
        with process:
            if process.poll() is None:
                os.killpg(process.pid, 9)
