"""The exit status is the program's own, whatever becomes of the report and of the trace."""

from __future__ import annotations

import json
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest
from combinations import pairwise
from looking import Start, running

from ungil import _native

Run = Callable[..., subprocess.CompletedProcess[str]]

UNGIL = [sys.executable, "-m", "ungil"]
# What a shell may do to each of the three streams.
STREAMS = (("", "0<&-"), ("", "1>&-", "1>/dev/full"), ("", "2>&-", "2>/dev/full"))
REDIRECTIONS = [" ".join(filter(None, each)) for each in product(*STREAMS)]
THREAD = "import threading; t = threading.Thread(target=int); t.start(); t.join()"
OPTIONS = ((), ("--quiet",), ("--json", "-"))
ENDINGS = {
    "success": (f"{THREAD}", 0),
    "status": (f"{THREAD}; raise SystemExit(7)", 7),
    "signal": (f"{THREAD}; import os; os.kill(os.getpid(), 15)", -signal.SIGTERM),
}


def in_shell(folder: Path, redirection: str, *words: str) -> subprocess.CompletedProcess[str]:
    """What a command comes to with its streams closed or redirected."""
    return subprocess.run(
        ["bash", "-c", f'exec "$@" {redirection}', "bash", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("redirection", "ending", "options"), pairwise(REDIRECTIONS, tuple(ENDINGS), OPTIONS), ids=str
)
def test_closed_and_full_streams_change_no_status(
    tmp_path: Path, redirection: str, ending: str, options: tuple[str, ...]
) -> None:
    code, status = ENDINGS[ending]
    words = [*UNGIL, "trace", "-o", "t.pftrace", *options, "-c", code]
    outcome = in_shell(tmp_path, redirection, *words)
    assert outcome.returncode == status, outcome.stderr
    assert "Traceback" not in outcome.stderr
    # Nothing of ungil's is printed to another stream instead.
    if "--json" in options and "1>" not in redirection:
        assert outcome.stdout.startswith('{"schema"')
    else:
        assert outcome.stdout == ""
    report = json.loads(_native.read_trace(str(tmp_path / "t.pftrace"), 20.0))
    (process,) = report["processes"]
    assert len(process["gils"]) == 1


def test_the_program_finds_closed_what_was_closed(tmp_path: Path) -> None:
    code = (
        "import os, sys\n"
        "def is_open(number):\n"
        "    try: return bool(os.fstat(number))\n"
        "    except OSError: return False\n"
        "open(sys.argv[1], 'w').write(str([is_open(number) for number in range(20)]))"
    )
    for redirection in REDIRECTIONS:
        told: list[str] = []
        for before in ([], [*UNGIL, "trace", "-q"], [*UNGIL, "run"]):
            words = [*before, sys.executable, "-c", code, "told"]
            assert in_shell(tmp_path, redirection, *words).returncode == 0
            told.append((tmp_path / "told").read_text())
        assert told[0] == told[1] == told[2], redirection


@pytest.mark.parametrize("redirection", REDIRECTIONS)
def test_a_scheduled_program_starts_whatever_its_streams_are(
    tmp_path: Path, redirection: str
) -> None:
    code = ENDINGS["status"][0]
    outcome = in_shell(tmp_path, redirection, *UNGIL, "run", sys.executable, "-c", code)
    assert (outcome.returncode, outcome.stdout, outcome.stderr) == (7, "", "")


@pytest.mark.parametrize("redirection", ["2>&-", "2>/dev/full"])
def test_a_warning_that_cannot_be_printed_keeps_no_program_from_its_start(
    tmp_path: Path, redirection: str
) -> None:
    privileged = tmp_path / "false"
    shutil.copy(shutil.which("false") or "/usr/bin/false", privileged)
    privileged.chmod(0o4755)
    outcome = in_shell(tmp_path, "", *UNGIL, "run", str(privileged))
    assert "it runs unscheduled" in outcome.stderr
    outcome = in_shell(tmp_path, redirection, *UNGIL, "run", str(privileged))
    assert (outcome.returncode, outcome.stdout) == (1, "")


@pytest.mark.parametrize("stderr_too", [False, True])
def test_a_reader_that_stops_reading_changes_no_status(tmp_path: Path, stderr_too: bool) -> None:
    traced = f"{sys.executable} -m ungil trace --json - sh -c 'read gone <fifo; exit 7'"
    pipeline = (
        "mkfifo fifo; exec 3<>fifo; "
        f"{traced} {'2>&1' if stderr_too else ''} | (exec 3>fifo; exec <&-; echo >&3); "
        "exit ${PIPESTATUS[0]}"
    )
    outcome = in_shell(tmp_path, "", "bash", "-c", pipeline)
    assert (outcome.returncode, outcome.stdout) == (7, ""), outcome.stderr
    if not stderr_too:
        assert outcome.stderr.startswith("ungil: cannot write the report to '-': broken pipe\n")


@pytest.mark.parametrize("target", ["-", "/dev/full"])
def test_json_that_cannot_be_written_is_a_sentence(tmp_path: Path, target: str) -> None:
    words = ["trace", "-q", "--json", target, "-c", "raise SystemExit(7)"]
    outcome = in_shell(tmp_path, "1>/dev/full", *UNGIL, *words)
    assert outcome.returncode == 7
    said = f"ungil: cannot write the report to {target!r}: no space left on device\n"
    assert outcome.stderr == said


def test_json_to_a_closed_stream_is_a_sentence(tmp_path: Path) -> None:
    words = ["trace", "-q", "--json", "-", "-c", "raise SystemExit(7)"]
    outcome = in_shell(tmp_path, "1>&-", *UNGIL, *words)
    said = "ungil: cannot write the report to '-': the stream is closed\n"
    assert (outcome.returncode, outcome.stderr) == (7, said)


def test_json_whose_folder_is_gone_when_the_program_ends_is_a_sentence(
    ungil: Run, tmp_path: Path
) -> None:
    (tmp_path / "folder").mkdir()
    code = "import shutil; shutil.rmtree('folder'); raise SystemExit(7)"
    outcome = ungil("trace", "-q", "--json", "folder/report.json", "-c", code)
    said = "ungil: cannot write the report to 'folder/report.json': no such file or directory\n"
    assert (outcome.returncode, outcome.stderr) == (7, said)


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_file_that_may_not_grow_costs_the_trace_and_not_the_status(
    ungil: Run, tmp_path: Path, ending: str
) -> None:
    """As on a full disk: what is written first still fits."""
    limit = 1 << 32

    def limit_files() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limit))

    code, status = ENDINGS[ending]
    # A limit of the program's own would keep it from being recorded.
    words = ["bash", "-c", 'ulimit -S -f hard; exec "$@"', "bash", sys.executable, "-c", code]
    outcome = ungil("trace", "-o", "t.pftrace", *words, preexec_fn=limit_files)
    assert outcome.returncode == status
    assert outcome.stderr.endswith("ungil: the trace 't.pftrace' is incomplete: file too large\n")
    assert "ungil report t.pftrace" in outcome.stderr
    report = ungil("report", "t.pftrace", "--json")
    (note, *_) = json.loads(report.stdout)["notes"]
    assert note.endswith(": the disk was full, or the file was not copied as a whole")


def test_a_trace_of_a_running_process_that_may_not_grow_is_a_failure(
    ungil: Run, start: Start
) -> None:
    """That process goes on, and its status is for others, so this one is of the trace."""

    def limit_files() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1 << 32))

    words = ["--pid", str(running(start, "computing")), "--for", "1s"]
    outcome = ungil("trace", "-q", "-o", "t.pftrace", *words, preexec_fn=limit_files)
    said = "ungil: the trace 't.pftrace' is incomplete: file too large\n"
    assert (outcome.returncode, outcome.stderr) == (1, said)
    assert ungil("trace", "-q", "-o", "u.pftrace", *words).returncode == 0


def test_json_of_a_running_process_that_cannot_be_written_is_a_failure(
    tmp_path: Path, start: Start
) -> None:
    words = ["trace", "-q", "--pid", str(running(start, "computing")), "--for", "1s", "--json", "-"]
    outcome = in_shell(tmp_path, "1>/dev/full", *UNGIL, *words)
    said = "ungil: cannot write the report to '-': no space left on device\n"
    assert (outcome.returncode, outcome.stderr) == (1, said)
    assert in_shell(tmp_path, "", *UNGIL, *words).returncode == 0


def test_a_name_that_was_taken_meanwhile_costs_no_status(ungil: Run, tmp_path: Path) -> None:
    code = "open('t.pftrace', 'w').write('mine'); raise SystemExit(7)"
    outcome = ungil("trace", "-q", "-o", "t.pftrace", "-c", code)
    assert outcome.returncode == 7
    assert (tmp_path / "t.pftrace").read_text() == "mine"
    (place,) = tmp_path.glob(".t.pftrace.*.tmp")
    said = f"the trace is in {place.name!r} and could not be named 't.pftrace': file exists"
    assert outcome.stderr == f"ungil: {said}\n"
    assert ungil("report", place.name).returncode == 0


def test_two_that_record_in_one_folder_at_once_both_have_a_name(ungil: Run, tmp_path: Path) -> None:
    """The other one is recorded, and ends, while this one still runs."""
    (tmp_path / "outer.py").write_text(
        "import subprocess, sys\n"
        "words = [sys.executable, '-m', 'ungil', 'trace', '--no-children', 'inner/outer.py']\n"
        "raise SystemExit(subprocess.run(words).returncode)\n"
    )
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "outer.py").write_text("raise SystemExit(7)")
    outcome = ungil("trace", "--no-children", "outer.py")
    assert outcome.returncode == 7
    names = ["ungil-outer-2.pftrace", "ungil-outer.pftrace"]
    assert sorted(it.name for it in tmp_path.glob("*.pftrace")) == names
    assert not list(tmp_path.glob(".*.tmp"))
    assert f"ungil report {names[0]}" in outcome.stderr
    assert "could not be named" not in outcome.stderr
    assert ungil("report", names[0]).returncode == 0


def test_a_thread_that_cannot_be_started_costs_the_recording_and_not_the_program(
    ungil: Run, environment: dict[str, str]
) -> None:
    """Memory for a thread's stack is refused: this is how a limit on memory shows first."""
    environment["RUST_MIN_STACK"] = str(1 << 60)
    outcome = ungil("trace", "-q", "-c", "raise SystemExit(7)")
    assert outcome.returncode == 7
    assert outcome.stderr.splitlines()[0].startswith("ungil: the program is not recorded: ")
