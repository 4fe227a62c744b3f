"""A process that already runs is recorded and scheduled, and goes on as if nothing had happened."""

from __future__ import annotations

import json
import os
import random
import re
import select
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest
from blocked import wait_until_it_reads_its_input
from process_groups import wait_until_stopped
from pythons import Python, pythons
from suite import PATIENCE_S, PROGRAMS, filtered

import ungil as ungil_package

Run = Callable[..., subprocess.CompletedProcess[str]]

ATTACHED, ATTACHING = PROGRAMS / "attached.py", PROGRAMS / "attaching.py"
WITHOUT_PTRACE = filtered("refused", "ptrace")
UNGIL = [sys.executable, "-m", "ungil"]
ALL = pythons("3.8", "3.9", "3.10", "3.11", "3.11-debian", "3.12", "3.13", "musl", since=(3, 8))
SOME = pythons("3.8", "3.11-debian", "3.13", "musl", since=(3, 8))
KINDS = ["busy", "waiting", "allocating", "joining", "forking", "alone"]
# The threads of a program of the kind "all", but the main one, which waits for the end.
WORKERS = ["compute-0", "compute-1", "echo", "sleep", "poll", "allocate"]
KILLS = 12


class Attached:
    """The program that tests attach to, started without ungil."""

    def __init__(self, python: Python | str, kind: str, *before: str) -> None:
        path = python if isinstance(python, str) else python.path
        # Its text, because not everybody may read the files of whoever runs the tests.
        command = [*before, path, "-c", ATTACHED.read_text(), kind]
        self.kind = kind
        environment = {name: it for name, it in os.environ.items() if name != "LD_PRELOAD"}
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        self.pid = self.process.pid
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "ready\n"

    def end(self) -> None:
        """Let it end, and check what it says of itself."""
        if self.kind == "alone":
            self.process.terminate()
        said, errors = self.process.communicate(timeout=PATIENCE_S)
        assert (errors, self.process.returncode) == ("", 0)
        assert re.fullmatch(r"well\n[1-9]\d*\n", said)

    def cpu_ticks(self) -> int:
        """How long it has run."""
        return int(Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[11])

    def maps(self) -> str:
        """What it has mapped."""
        return Path(f"/proc/{self.pid}/maps").read_text()


@pytest.fixture
def attached() -> Generator[Callable[..., Attached]]:
    """Starts programs to attach to, and ends them."""
    started: list[Attached] = []

    def start(*words: Any) -> Attached:
        started.append(Attached(*words))
        return started[-1]

    yield start
    for program in started:
        program.process.kill()
        program.process.communicate()


def recorded(ungil: Run, pid: int, trace: Path, *options: str) -> dict[str, Any]:
    """The report of a recording of a running process."""
    words = ["--pid", str(pid), "--for", "300ms", "-f", "-o", str(trace), "--json", "-", "-q"]
    outcome = ungil("trace", *words, *options)
    assert (outcome.returncode, outcome.stderr) == (0, "")
    report: dict[str, Any] = json.loads(outcome.stdout)
    assert report["lost_events"] == 0, (report["duration_s"], report["notes"], report["processes"])
    return report


def threads(report: dict[str, Any], pid: int) -> dict[str, dict[str, Any]]:
    """The threads of the process, by name."""
    (process,) = (it for it in report["processes"] if it["pid"] == pid)
    return {thread["name"]: thread for gil in process["gils"] for thread in gil["threads"]}


def record_until_each_held(
    names: list[str], record: Callable[[], dict[str, Any]], pid: int, times: int = 1
) -> None:
    """Record a process at least so often, and until each of the threads held its GIL.

    In one recording a busy machine may leave no time to a thread, which then does nothing at all.
    """
    held_s: Counter[str] = Counter()
    recordings = 0
    while recordings < times or not all(held_s[name] for name in names):
        found = threads(record(), pid)
        held_s.update({name: thread["held_s"] for name, thread in found.items()})
        recordings += 1


def total_switches(pid: int) -> int:
    """How often the kernel has switched from threads of the process since they began."""
    lines = [
        line
        for status in Path(f"/proc/{pid}/task").glob("*/status")
        for line in status.read_text().splitlines()
    ]
    return sum(int(line.split()[1]) for line in lines if "voluntary_ctxt_switches" in line)


@pytest.mark.parametrize("python", ALL, ids=str)
def test_every_python_is_recorded_again_and_again_and_goes_on(
    ungil: Run, attached: Callable[..., Attached], tmp_path: Path, python: Python
) -> None:
    program = attached(python, "all")

    def record() -> dict[str, Any]:
        report = recorded(ungil, program.pid, tmp_path / "a.pftrace")
        # Nothing is left but the library.
        assert "ungil-session" not in program.maps()
        assert "libungil_hook.so" in program.maps()
        return report

    record_until_each_held(WORKERS, record, program.pid, times=3)
    program.end()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("python", pythons("3.11-debian", "3.13")[-1:], ids=str)
def test_programs_of_every_kind_notice_nothing(
    ungil: Run, attached: Callable[..., Attached], tmp_path: Path, python: Python, kind: str
) -> None:
    program = attached(python, kind)
    recorded(ungil, program.pid, tmp_path / "a.pftrace")
    assert ungil("policy", str(program.pid), "interactive").returncode == 0
    recorded(ungil, program.pid, tmp_path / "a.pftrace")
    assert ungil("policy", str(program.pid), "stock", "--detach").returncode == 0
    assert not re.search("ungil-session|ungil-policy", program.maps())
    program.end()


def test_children_that_are_forked_meanwhile_are_recorded(
    ungil: Run, attached: Callable[..., Attached], tmp_path: Path
) -> None:
    program = attached(sys.executable, "forking")
    report = recorded(ungil, program.pid, tmp_path / "a.pftrace")
    parents = {process["parent_pid"] for process in report["processes"]}
    assert program.pid in parents
    alone = recorded(ungil, program.pid, tmp_path / "a.pftrace", "--no-children")
    assert [process["pid"] for process in alone["processes"]] == [program.pid]
    program.end()


@pytest.mark.parametrize("python", SOME, ids=str)
def test_a_recorder_that_is_killed_at_any_moment_harms_nobody(
    ungil: Run, attached: Callable[..., Attached], tmp_path: Path, python: Python
) -> None:
    program = attached(python, "all")
    chance = random.Random(1)
    for _ in range(KILLS):
        killed = subprocess.Popen(
            [sys.executable, ATTACHING, str(program.pid), tmp_path / "b.pftrace"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert killed.stdout is not None
        assert killed.stdout.read(1) == b"!"
        # Not to wait for anything: to be killed somewhere else each time.
        for _ in range(chance.randrange(20000)):
            pass
        killed.kill()
        killed.communicate()
    record_until_each_held(
        ["compute-0"],
        lambda: recorded(ungil, program.pid, tmp_path / "a.pftrace"),
        program.pid,
    )
    program.end()


def test_a_program_that_does_not_use_its_gil_meanwhile_is_reported_as_that(
    start: Callable[..., subprocess.Popen[str]], ungil: Run, tmp_path: Path
) -> None:
    code = "import signal; print('ready', flush=True); signal.pause()"
    idle = start(args=[sys.executable, "-c", code])
    assert idle.stdout is not None
    assert idle.stdout.readline() == "ready\n"
    report = recorded(ungil, idle.pid, tmp_path / "a.pftrace")
    (finding,) = report["findings"]
    assert finding["kind"] == "not-recorded"
    assert finding["text"] == (
        "no thread acquired or released the GIL meanwhile: all of them were blocked, or one held "
        "it throughout"
    )


def test_a_process_that_is_stopped_stays_so_and_the_report_says_it(
    start: Callable[..., subprocess.Popen[str]], ungil: Run, tmp_path: Path
) -> None:
    words = [sys.executable, "-c", "import sys; sys.stdin.read()"]
    stopped = start(args=words, stdin=subprocess.PIPE)
    # Where nothing can be called in it until it goes on, it cannot be recorded.
    wait_until_it_reads_its_input(stopped.pid)
    stopped.send_signal(signal.SIGSTOP)
    wait_until_stopped(stopped.pid)
    report = recorded(ungil, stopped.pid, tmp_path / "a.pftrace")
    (finding,) = report["findings"]
    assert finding["kind"] == "not-recorded"
    assert finding["text"] == "the process is stopped, and goes on when it gets SIGCONT"
    wait_until_stopped(stopped.pid)


@pytest.mark.parametrize("words", [("trace", "--pid"), ("policy", "interactive")])
def test_a_process_that_is_stopped_where_nothing_can_be_called_says_what_to_do(
    start: Callable[..., subprocess.Popen[str]], ungil: Run, words: tuple[str, str]
) -> None:
    code = "import os, signal; os.kill(os.getpid(), signal.SIGSTOP)"
    stopped = start(args=[sys.executable, "-c", code])
    wait_until_stopped(stopped.pid)
    first, second = words
    asked = (
        [first, second, str(stopped.pid)] if first == "trace" else [first, str(stopped.pid), second]
    )
    outcome = ungil(*asked)
    assert outcome.returncode != 0
    (said,) = outcome.stderr.splitlines()
    assert said.endswith(
        "it is stopped where ungil cannot interrupt it safely; let it go on (kill -CONT "
        f"{stopped.pid}) and try again"
    )
    stopped.send_signal(signal.SIGCONT)
    assert stopped.wait(PATIENCE_S) == 0


def test_what_threads_ran_before_the_recording_is_not_counted(
    ungil: Run, attached: Callable[..., Attached], tmp_path: Path
) -> None:
    program = attached(sys.executable, "busy")
    while program.cpu_ticks() < 3 * os.sysconf("SC_CLK_TCK"):
        assert program.process.poll() is None
    report = recorded(ungil, program.pid, tmp_path / "a.pftrace")
    found = threads(report, program.pid)
    # A thread runs on one processor at a time; the kernel rounds.
    most_s = report["duration_s"] + 0.02
    assert all(0 < thread["cpu_s"] < most_s for thread in found.values()), found
    switches = sum(sum(thread["context_switches"].values()) for thread in found.values())
    assert 0 < switches < total_switches(program.pid)
    program.end()


def test_a_thread_that_sleeps_when_it_is_met_does_not_hold_the_gil(
    start: Callable[..., subprocess.Popen[str]], ungil: Run, tmp_path: Path
) -> None:
    code = """
import threading
lock = threading.Lock()
lock.acquire()
print("ready", flush=True)
while True:
    lock.acquire(timeout=1)
"""
    sleeping = start(args=[sys.executable, "-c", code])
    assert sleeping.stdout is not None
    assert sleeping.stdout.readline() == "ready\n"
    report = recorded(ungil, sleeping.pid, tmp_path / "a.pftrace", "--for", "1500ms")
    (thread,) = threads(report, sleeping.pid).values()
    assert 0 < thread["held_s"] < report["duration_s"] / 2


def test_it_is_recorded_until_ctrl_c(
    start: Callable[..., subprocess.Popen[str]], attached: Callable[..., Attached], tmp_path: Path
) -> None:
    program = attached(sys.executable, "busy")
    trace = tmp_path / "a.pftrace"
    recorder = start("trace", "--pid", str(program.pid), "-o", str(trace))
    while "ungil-session" not in program.maps():
        assert recorder.poll() is None
    before = program.cpu_ticks()
    while program.cpu_ticks() < before + 20:
        assert recorder.poll() is None
    recorder.send_signal(signal.SIGINT)
    _, said = recorder.communicate(timeout=PATIENCE_S)
    assert recorder.returncode == 0
    assert "compute-0" in said
    assert trace.exists()
    program.end()


def test_a_recording_ends_with_its_process(
    start: Callable[..., subprocess.Popen[str]], attached: Callable[..., Attached], tmp_path: Path
) -> None:
    program = attached(sys.executable, "busy")
    trace = tmp_path / "a.pftrace"
    recorder = start("trace", "--pid", str(program.pid), "-o", str(trace))
    while "ungil-session" not in program.maps():
        assert recorder.poll() is None
    program.end()
    recorder.communicate(timeout=PATIENCE_S)
    assert recorder.returncode == 0
    assert trace.exists()


def test_a_process_that_sees_other_files_is_given_the_hook_in_memory(
    ungil: Run, attached: Callable[..., Attached], tmp_path: Path
) -> None:
    apart = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "-m"]
    program = attached(sys.executable, "all", *apart)
    record_until_each_held(
        WORKERS,
        lambda: recorded(ungil, program.pid, tmp_path / "a.pftrace"),
        program.pid,
    )
    assert "/memfd:libungil_hook.so" in program.maps()
    opened = [it.readlink() for it in Path(f"/proc/{program.pid}/fd").iterdir()]
    assert not [path for path in opened if "ungil" in path.name]
    program.end()


def test_a_policy_that_could_not_be_taken_back_is_not_given(
    ungil: Run, attached: Callable[..., Attached]
) -> None:
    apart = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "-m"]
    # Where its control page would be.
    read_only = 'mount -t tmpfs -o ro tmpfs /dev/shm && exec "$@"'
    program = attached(sys.executable, "waiting", *apart, "sh", "-c", read_only, "sh")
    outcome = ungil("policy", str(program.pid), "interactive")
    assert (outcome.returncode, outcome.stdout) == (2, "")
    assert "cannot write to /dev/shm, which ungil needs to change a policy" in outcome.stderr
    # It is in force for nobody, and in nobody's way.
    assert "has no policy" in ungil("policy", str(program.pid)).stderr
    program.end()


@pytest.mark.skipif(
    os.geteuid() != 0 and "CI" not in os.environ,
    reason="only root attaches to other users' processes",
)
def test_a_process_of_another_user_need_not_be_able_to_read_the_hook(
    start: Callable[..., subprocess.Popen[str]], attached: Callable[..., Attached], tmp_path: Path
) -> None:
    package = Path(ungil_package.__file__).parent
    shutil.copytree(package, tmp_path / "ungil", ignore=shutil.ignore_patterns("__pycache__"))
    nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    program = attached(pythons("3.11-debian")[-1], "all", *nobody)
    command = [sys.executable, "-m", "ungil", "policy", str(program.pid), "interactive"]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    changed = start(args=command, env=environment, cwd=tmp_path)
    said, errors = changed.communicate(timeout=PATIENCE_S)
    assert (changed.returncode, errors) == (0, "")
    assert "interactive, quantum 5 ms (was stock); attached by ptrace" in said
    assert "/memfd:libungil_hook.so" in program.maps()
    program.end()


def test_who_may_trace_nobody_is_told_why_and_what_to_do(
    start: Callable[..., subprocess.Popen[str]], attached: Callable[..., Attached]
) -> None:
    program = attached(sys.executable, "busy")
    refused = start(
        args=[*WITHOUT_PTRACE, *UNGIL, "trace", "--pid", str(program.pid), "--for", "1s"]
    )
    said, errors = refused.communicate(timeout=PATIENCE_S)
    assert (refused.returncode, said) == (2, "")
    assert re.fullmatch(
        rf"ungil: process {program.pid} cannot be recorded: it may not be traced: .*standby.*\n",
        errors,
    )
    program.end()


@pytest.mark.parametrize("python", SOME, ids=str)
def test_standby_needs_no_right_to_trace_and_can_be_woken_again_and_again(
    start: Callable[..., subprocess.Popen[str]],
    ungil: Run,
    attached: Callable[..., Attached],
    tmp_path: Path,
    python: Python,
) -> None:
    program = attached(python, "all", *UNGIL, "run", "--standby")
    assert "ungil-policy" in program.maps()

    def record() -> dict[str, Any]:
        words = ["--pid", str(program.pid), "--for", "300ms", "-f", "-o", str(tmp_path / "a")]
        recorder = start(args=[*WITHOUT_PTRACE, *UNGIL, "trace", *words, "--json", "-", "-q"])
        said, errors = recorder.communicate(timeout=PATIENCE_S)
        assert (recorder.returncode, errors) == (0, "")
        assert "ungil-session" not in program.maps()
        report: dict[str, Any] = json.loads(said)
        return report

    record_until_each_held(WORKERS, record, program.pid, times=3)
    policy = start(args=[*WITHOUT_PTRACE, *UNGIL, "policy", str(program.pid), "fair"])
    said, _ = policy.communicate(timeout=PATIENCE_S)
    assert said == f"process {program.pid}: fair, quantum 5 ms (was stock)\n"
    program.end()


def test_the_variables_of_standby_are_told(ungil: Run) -> None:
    said = ungil("run", "--env", "--standby").stdout.splitlines()
    assert [line.partition("=")[0] for line in said] == ["LD_PRELOAD", "UNGIL_STANDBY"]
    outcome = ungil("run", "--standby", "--policy", "fair", "true")
    assert outcome.returncode == 2
    assert outcome.stderr.startswith("ungil: --standby schedules nothing until")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--pid", "x"], "--pid: 'x' is not a process id"),
        (["--pid", "4194305"], "there is no process 4194305"),
        (["--pid", "1", "--for", "3"], "--for: '3' is not a duration; write a number and its unit"),
        (["--pid", "1", "--for", "0s"], "--for: '0s' is not above zero"),
        (["--for", "1s", "x.py"], "--for needs --pid; a PROGRAM is recorded until it ends"),
        (["--pid", "1", "x.py"], "--pid records a running process; leave out 'x.py'"),
        (["--pid", "1", "--policy", "fair"], "--pid records under the policy that the process has"),
    ],
)
def test_what_makes_no_sense_is_said_in_a_sentence(
    ungil: Run, words: list[str], sentence: str
) -> None:
    outcome = ungil("trace", *words)
    assert (outcome.returncode, outcome.stdout) == (2, "")
    assert outcome.stderr.startswith(f"ungil: {sentence}")


@pytest.mark.parametrize(
    "words", [["sleep", "1000"], ["sh", "-c", "while :; do :; done"]], ids=["idle", "busy"]
)
def test_a_process_without_a_python_is_told_from_one_that_is_gone_and_left_alone(
    ungil: Run, tmp_path: Path, words: list[str]
) -> None:
    with subprocess.Popen(words) as other:
        outcome = ungil("trace", "--pid", str(other.pid), "-o", str(tmp_path / "a.pftrace"))
        maps = Path(f"/proc/{other.pid}/maps").read_text()
        other.kill()
    assert outcome.stderr == (
        f"ungil: process {other.pid} cannot be recorded: there is no Python in it\n"
    )
    assert list(tmp_path.iterdir()) == []
    assert "ungil" not in maps


def test_of_several_that_attach_at_once_one_records(
    tmp_path: Path, attached: Callable[..., Attached]
) -> None:
    program = attached(sys.executable, "busy")
    command = [*UNGIL, "trace", "--quiet", "--pid", str(program.pid), "-o"]
    recorders = [
        subprocess.Popen([*command, str(tmp_path / f"{number}.pftrace")], stderr=subprocess.PIPE)
        for number in range(4)
    ]
    # One goes on until it is interrupted, and the others end by themselves.
    running = {os.pidfd_open(it.pid): it for it in recorders}
    while len(running) > 1:
        ended, _, _ = select.select(list(running), [], [], PATIENCE_S)
        assert ended, "only one can record it"
        for life in ended:
            del running[life]
            os.close(life)
    ((life, one),) = running.items()
    os.close(life)
    one.send_signal(signal.SIGINT)
    said = {it: it.communicate(timeout=PATIENCE_S)[1].decode() for it in recorders}
    assert (one.returncode, said[one]) == (0, "")
    for other in set(recorders) - {one}:
        assert other.returncode == 2
        assert said[other].startswith(
            f"ungil: another ungil is recording process {program.pid}, and ungil trace --pid"
        )
    assert len(list(tmp_path.iterdir())) == 1
    program.end()


def test_only_one_process_can_trace_another(ungil: Run, attached: Callable[..., Attached]) -> None:
    program = attached(sys.executable, "busy")
    debugger = [
        *("strace", "-f", "-p", str(program.pid), "-o", "/dev/null", "-e", "trace=none", "-q"),
    ]
    with subprocess.Popen(debugger, stderr=subprocess.DEVNULL) as strace:
        while f"TracerPid:\t{strace.pid}\n" not in Path(f"/proc/{program.pid}/status").read_text():
            assert strace.poll() is None
        outcome = ungil("trace", "--pid", str(program.pid))
        strace.terminate()
    assert f"process {strace.pid} (strace) traces it already" in outcome.stderr
    program.end()
