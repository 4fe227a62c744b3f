"""What surrounds every test: the command line as a shell runs it, signals, interpreters, gevent."""

from __future__ import annotations

import ctypes
import os
import platform
import signal
import subprocess
import sys
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from left_behind import watch
from pythons import are_required, missing
from suite import PATIENCE_S

# So that a check that fails in one of these shows what it compared.
pytest.register_assert_rewrite(
    "documented",
    "looking",
    "loopback",
    "metrics_server",
    "pages",
    "scheduling",
    "shared_queues",
    "shown_pages",
    "terminals",
    "tracing",
)

UNGIL = [sys.executable, "-m", "ungil"]

# Python ignores these itself, and gives them back to the programs that it starts.
PYTHONS_OWN = (signal.SIGPIPE, signal.SIGXFSZ)
# System call numbers of rt_sigaction: the C library refuses its own signals, 32 and 33.
SYS_RT_SIGACTION = {"x86_64": 13, "aarch64": 134}


def ignored_signals() -> set[int]:
    """The numbers of all signals that this process ignores."""
    status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
    mask = int(status.partition("SigIgn:")[2].split()[0], 16)
    return {number for number in range(1, 65) if mask >> (number - 1) & 1}


# No test of a property asserts a time; whoever sets other options keeps this one.
settings.register_profile("ungil", deadline=None)
settings.load_profile("ungil")

# A program that gevent has patched before anything else, and that runs one test.
PATCHED = """\
from gevent import monkey
monkey.patch_all()
import sys, pytest
sys.exit(pytest.main(sys.argv[1:]))
"""


def pytest_configure(config: pytest.Config) -> None:
    take_all_signals()
    # Where pytest-xdist distributes tests, they run in its workers.
    if hasattr(config, "workerinput") or not config.getoption("numprocesses", None):
        watch()
    if are_required() and (absent := missing()):
        raise pytest.UsageError(
            f"REQUIRE_PYTHONS is set, and there is no Python {', '.join(absent)} here: "
            "install each with pyenv, or unset the variable to test with the others"
        )


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Three for two processors: half of what tests take is waiting for programs that wait."""
    return max(2, (os.cpu_count() or 1) * 3 // 2)


def take_all_signals() -> None:
    """Give the programs of the tests all signals, as a terminal does.

    Ignoring is inherited: a shell makes the background jobs of a script ignore SIGINT and SIGQUIT,
    nohup all jobs SIGHUP, and what runs a whole suite may ignore even the C library's own signals.
    """
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    libc = ctypes.CDLL(None)
    for number in ignored_signals() - set(PYTHONS_OWN):
        default = (ctypes.c_ulong * 4)()  # The kernel's struct sigaction, all zeroes: SIG_DFL.
        libc.syscall(SYS_RT_SIGACTION[platform.machine()], number, default, None, 8)
        if number == signal.SIGINT:
            signal.signal(number, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Runs a test marked `patched` in a process of its own: what gevent has patched stays so."""
    monkey = sys.modules.get("gevent.monkey")
    is_patched = monkey is not None and monkey.is_module_patched("socket")
    if is_patched or pyfuncitem.get_closest_marker("patched") is None:
        return None
    # The one that the configuration speaks of.
    plugin = ["-p", "pytest_asyncio.plugin"]
    words = ["-q", "-p", "no:cacheprovider", *plugin, pyfuncitem.nodeid]
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PATCHED, *words],
        cwd=pyfuncitem.config.rootpath,
        env=os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    if done.returncode != 0:
        pytest.fail(f"in a process that gevent has patched:\n{done.stdout}{done.stderr}", False)
    return True


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
