"""What a command needs for a while is gone when it ends, be it by a kill or with its reader."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from itertools import product
from pathlib import Path

import pytest
from blocked import wait_until_it_reads_its_input

Run = Callable[..., subprocess.CompletedProcess[str]]

WAITING = """\
import sys
from ungil.cli.page import _place
from ungil.cli.trace.outputs import json_file, whole_file
with {block} as place:
    {inside}
    print("inside", flush=True)
    sys.stdin.read()
"""
BLOCKS = {
    "export": ("whole_file('out')", "pass"),
    "diff": ("json_file('out', starts_nothing=True)", "pass"),
    "page": ("_place('out')", "open(f'.out.{__import__(\"os\").getpid()}-0.tmp', 'w')"),
    "page for a stream": ("_place('-')", "open(place, 'w')"),
}


@contextmanager
def inside_of(
    block: str, folder: Path, environment: dict[str, str]
) -> Generator[subprocess.Popen[str]]:
    """A process that is in such a block until the end of its input, with its files in a folder."""
    enter, inside = BLOCKS[block]
    with subprocess.Popen(
        [sys.executable, "-c", WAITING.format(block=enter, inside=inside)],
        cwd=folder,
        env=environment | {"TMPDIR": str(folder)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "inside\n"
        yield process


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A small one."""
    path = tmp_path_factory.mktemp("trace") / "t.pftrace"
    command = [sys.executable, "-m", "ungil", "trace", "-q", "-o", str(path), "-c", "pass"]
    subprocess.run(command, check=True)
    return str(path)


@pytest.mark.parametrize(
    ("block", "number"),
    [
        *product(BLOCKS, (signal.SIGTERM, signal.SIGHUP)),
        # The native code that writes a page sees to Ctrl-C itself.
        *product(sorted(BLOCKS.keys() - {"page"}), (signal.SIGINT,)),
    ],
)
def test_a_kill_leaves_nothing_of_a_file_without_its_name(
    tmp_path: Path, environment: dict[str, str], block: str, number: signal.Signals
) -> None:
    with inside_of(block, tmp_path, environment) as process:
        assert list(tmp_path.iterdir())
        # What comes just before a read does not interrupt it: Python would see Ctrl-C after it.
        wait_until_it_reads_its_input(process.pid)
        process.send_signal(number)
        assert process.wait() == -number
    assert not list(tmp_path.iterdir())


def test_who_waits_for_a_kill_leaves_ctrl_c_to_the_main_thread(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    with inside_of("export", tmp_path, environment) as process:
        blocked = {
            int(task.name): int(line.split()[1], 16) >> (signal.SIGINT - 1) & 1
            for task in Path(f"/proc/{process.pid}/task").iterdir()
            for line in (task / "status").read_text().splitlines()
            if line.startswith("SigBlk:")
        }
        process.communicate()
    assert blocked.pop(process.pid) == 0
    assert list(blocked.values()) == [1]


@pytest.mark.parametrize("options", [["--sql", "SELECT * FROM threads"], ["--html", "-"]])
def test_a_reader_that_goes_away_leaves_no_temporary_file(
    ungil: Run, trace: str, tmp_path: Path, environment: dict[str, str], options: list[str]
) -> None:
    read, write = os.pipe()
    os.close(read)
    try:
        outcome = ungil(
            "report",
            trace,
            *options,
            env=environment | {"TMPDIR": str(tmp_path)},
            capture_output=False,
            stdout=write,
            stderr=subprocess.PIPE,
        )
    finally:
        os.close(write)
    assert (outcome.returncode, outcome.stderr) == (-signal.SIGPIPE, "")
    assert not list(tmp_path.iterdir())


OVER = """\
import os, signal
from ungil.cli.vanishing import removed_if_killed
removed = []
for ignored in (False, True):
    if ignored:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    with removed_if_killed(lambda: removed.append(1)):
        if ignored:
            os.kill(os.getpid(), signal.SIGHUP)
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before
assert not removed
os.kill(os.getpid(), signal.SIGTERM)
"""


def test_what_is_ignored_stays_so_and_afterwards_signals_do_what_they_did(
    environment: dict[str, str],
) -> None:
    done = subprocess.run([sys.executable, "-c", OVER], env=environment, capture_output=True)
    assert (done.returncode, done.stderr) == (-signal.SIGTERM, b"")
