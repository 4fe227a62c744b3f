"""`ungil policy`: what a running process obeys is shown, and changed, from outside."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from pythons import Python, pythons
from scheduling import OBEYING, Obeying
from suite import PROGRAMS

from ungil import _native

Run = Callable[..., subprocess.CompletedProcess[str]]
Start = Callable[..., subprocess.Popen[str]]

SCHEDULED = pythons("3.8", "3.11", "3.11-debian", "3.12", "3.13", since=(3, 8))
RECORDED_ONLY = [python for python in pythons("2.7") if python.version == (2, 7)]

# <linux/capability.h>, <linux/prctl.h>
CAP_SYS_PTRACE, CAP_SYS_ADMIN, CAP_CHECKPOINT_RESTORE = 19, 21, 40
PR_CAPBSET_DROP = 24


def without_capabilities() -> None:
    """Before exec: takes from root what lets it look into every process."""
    libc = ctypes.CDLL(None)
    for capability in (CAP_SYS_PTRACE, CAP_SYS_ADMIN, CAP_CHECKPOINT_RESTORE):
        libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)


def page_of(pid: int) -> Path:
    """The control page of a process of this user and PID namespace."""
    namespace = Path("/proc/self/ns/pid").stat().st_ino
    return Path(f"/dev/shm/ungil-policy-{os.geteuid()}-{namespace}-{pid}")


@pytest.mark.parametrize("python", SCHEDULED, ids=str)
def test_the_policy_of_a_running_process_is_shown_and_changed(
    ungil: Run, start: Start, python: Python
) -> None:
    obeying = Obeying(start, "run", python.path, str(OBEYING))
    pid = str(obeying.pid)
    shown = ungil("policy", pid)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert shown.stdout == f"process {pid}: interactive, quantum 5 ms\n"
    changed = ungil("policy", pid, "batch").stdout
    assert changed == f"process {pid}: batch, quantum 100 ms (was interactive, quantum 5 ms)\n"
    assert obeying.policy() == ("batch", 100)
    ungil("policy", pid, "fair", "--quantum", "0.25")
    assert obeying.policy() == ("fair", 0.25)
    assert ungil("policy", pid).stdout == f"process {pid}: fair, quantum 0.25 ms\n"


@pytest.mark.parametrize("policy", _native.POLICIES)
def test_every_policy_can_be_changed_to(ungil: Run, start: Start, policy: str) -> None:
    obeying = Obeying(start, "run", str(OBEYING))
    assert ungil("policy", str(obeying.pid), policy, "--quantum", "2").returncode == 0
    assert obeying.policy() == (policy, 2)


def test_the_quantum_alone_can_be_changed(ungil: Run, start: Start) -> None:
    obeying = Obeying(start, "run", "--policy", "fair", str(OBEYING))
    outcome = ungil("policy", str(obeying.pid), "--quantum", "1")
    assert outcome.stdout == f"process {obeying.pid}: fair, quantum 1 ms (was fair, quantum 5 ms)\n"
    assert obeying.policy() == ("fair", 1)


def test_json_says_the_same(ungil: Run, start: Start) -> None:
    pid = Obeying(start, "run", str(OBEYING)).pid
    same = {"pid": pid, "quantum_ms": 5.0, "stopped_ms": None}
    shown = {**same, "policy": "interactive", "before": None}
    outcome = ungil("policy", str(pid), "--json")
    assert json.loads(outcome.stdout) == {"schema": 1, "processes": [shown]}
    before = {"policy": "interactive", "quantum_ms": 5.0}
    changed = {**same, "policy": "stock", "quantum_ms": None, "before": before}
    outcome = ungil("policy", str(pid), "stock", "--json")
    assert json.loads(outcome.stdout) == {"schema": 1, "processes": [changed]}
    assert ungil("policy", str(pid)).stdout == f"process {pid}: stock\n"


def test_a_traced_process_can_be_given_a_policy(ungil: Run, start: Start) -> None:
    obeying = Obeying(start, "trace", "--quiet", sys.executable, str(OBEYING))
    assert ungil("policy", str(obeying.pid)).stdout == f"process {obeying.pid}: stock\n"
    ungil("policy", str(obeying.pid), "interactive")
    assert obeying.policy() == ("interactive", 5)


# Processes that descend from it.


class Family(Obeying):
    """A process and its forked child."""

    def both(self) -> tuple[str, int, str]:
        """The policy of the parent, the process id of the child, and its policy."""
        assert self.process.stdin is not None
        self.process.stdin.write("?\n")
        self.process.stdin.flush()
        own, own_quantum, pid, child, child_quantum = self.line().split()
        return f"{own} {own_quantum}", int(pid), f"{child} {child_quantum}"


@pytest.mark.parametrize("python", SCHEDULED, ids=str)
def test_a_change_reaches_children_if_it_is_to(ungil: Run, start: Start, python: Python) -> None:
    family = Family(start, "run", python.path, str(PROGRAMS / "obeying_family.py"))
    bystander = Obeying(start, "run", str(OBEYING))
    own, child_pid, child = family.both()
    assert (own, child) == ("1 5", "1 5")
    ungil("policy", str(family.pid), "batch")
    assert family.both() == ("3 100", child_pid, "1 5")
    outcome = ungil("policy", str(family.pid), "fair", "--children")
    assert outcome.stdout == (
        f"process {family.pid}: fair, quantum 5 ms (was batch, quantum 100 ms)\n"
        f"process {child_pid}: fair, quantum 5 ms (was interactive, quantum 5 ms)\n"
    )
    assert family.both() == ("2 5", child_pid, "2 5")
    assert bystander.policy() == ("interactive", 5)


def test_children_of_what_is_no_python_are_reached(ungil: Run, start: Start) -> None:
    process = start(
        "run",
        "sh",
        "-c",
        'echo $$; "$0" "$1" <&0; true',
        sys.executable,
        str(OBEYING),
        stdin=subprocess.PIPE,
    )
    assert process.stdout is not None
    shell_pid, pid = (process.stdout.readline().strip() for _ in range(2))
    outcome = ungil("policy", shell_pid)
    assert outcome.returncode == 2
    assert outcome.stderr == (
        f"ungil: process {shell_pid} has no policy: ungil is loaded into it, but it has loaded no "
        "Python, so it has no GIL\n"
    )
    outcome = ungil("policy", shell_pid, "fair", "--children")
    assert outcome.stdout.startswith(f"process {pid}: fair, quantum 5 ms (was interactive")


# Mistakes: one sentence, exit code 2.


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "Missing argument 'PID'."),
        (["x"], "PID: 'x' is not a process id"),
        (["0"], "PID: '0' is not a process id"),
        (["99999999999"], "PID: '99999999999' is not a process id"),
        (["2147483647"], "there is no process 2147483647"),
        (["2147483647", "fair", "--children"], "there is no process 2147483647"),
        (
            ["1", "fifo"],
            "NAME: 'fifo' is not a policy; the policies are stock, interactive, fair, batch, ",
        ),
        (["1", "fair", "--quantum", "0"], "--quantum: '0' is not a number of milliseconds"),
        (["1", "fair", "batch"], "Got unexpected extra argument (batch)"),
    ],
)
def test_a_mistake_is_one_sentence(ungil: Run, arguments: list[str], sentence: str) -> None:
    outcome = ungil("policy", *arguments)
    assert (outcome.returncode, outcome.stdout) == (2, "")
    assert outcome.stderr.startswith(f"ungil: {sentence.rstrip('.')}"), outcome.stderr
    assert outcome.stderr.count("\n") == 1


def test_a_process_that_does_not_run_under_ungil_has_no_policy_until_it_is_given_one(
    ungil: Run, start: Start
) -> None:
    bare = Obeying(start, args=[sys.executable, str(OBEYING)])
    for options in ([], ["--children"], ["stock", "--detach"]):
        outcome = ungil("policy", str(bare.pid), *options)
        assert (outcome.returncode, outcome.stdout) == (2, "")
        assert outcome.stderr == (
            f"ungil: process {bare.pid} has no policy: it does not run under ungil; "
            f"give it one with: ungil policy {bare.pid} interactive\n"
        )
    outcome = ungil("policy", str(bare.pid), "fair", "--quantum", "3")
    said = f"process {bare.pid}: fair, quantum 3 ms (was stock); attached by ptrace: "
    assert outcome.stdout.startswith(said)
    outcome = ungil("policy", str(bare.pid), "stock", "--detach")
    said = f"process {bare.pid}: detached (was fair, quantum 3 ms); attached by ptrace: "
    assert outcome.stdout.startswith(said)
    assert ungil("policy", str(bare.pid)).returncode == 2


def test_what_has_no_policy_is_told_why(ungil: Run, start: Start) -> None:
    recorded = Obeying(start, "check", "--max-hold", "100s", sys.executable, str(OBEYING))
    outcome = ungil("policy", str(recorded.pid))
    assert (outcome.returncode, outcome.stdout) == (2, "")
    assert outcome.stderr == (
        f"ungil: process {recorded.pid} has no policy: it is only recorded; "
        f"give it one with: ungil policy {recorded.pid} interactive\n"
    )
    ungil("policy", str(recorded.pid), "interactive")
    assert recorded.policy() == ("interactive", 5)
    with subprocess.Popen(["sleep", "1000"]) as other:
        outcome = ungil("policy", str(other.pid))
        other.kill()
    assert outcome.stderr == (
        f"ungil: process {other.pid} has no policy: it does not run under ungil, and no Python "
        "was found in it\n"
    )


def test_children_without_a_policy_get_their_first_one_by_themselves_and_lose_it_together(
    ungil: Run, start: Start
) -> None:
    command = ["sh", "-c", 'echo $$; "$0" "$1" <&0; true', sys.executable, str(OBEYING)]
    process = start(args=command, stdin=subprocess.PIPE)
    assert process.stdout is not None
    shell_pid, pid = (process.stdout.readline().strip() for _ in range(2))
    outcome = ungil("policy", shell_pid, "fair", "--children")
    assert (outcome.returncode, outcome.stderr) == (
        2,
        f"ungil: neither process {shell_pid} nor a descendant of it has a policy; give each "
        "process its first one by itself: ungil policy PID NAME\n",
    )
    assert ungil("policy", pid, "fair").returncode == 0
    outcome = ungil("policy", shell_pid, "stock", "--detach", "--children")
    assert outcome.stdout.startswith(f"process {pid}: detached (was fair, quantum 5 ms); attached ")
    assert ungil("policy", pid).returncode == 2


@pytest.mark.parametrize("words", [["--detach"], ["fair", "--detach"]])
def test_detaching_goes_with_stock_alone(ungil: Run, words: list[str]) -> None:
    outcome = ungil("policy", str(os.getpid()), *words)
    assert outcome.returncode == 2
    assert outcome.stderr.startswith("ungil: --detach works only with stock")


@pytest.mark.parametrize("python", RECORDED_ONLY, ids=str)
def test_a_process_that_cannot_be_scheduled(ungil: Run, start: Start, python: Python) -> None:
    obeying = Obeying(start, "run", python.path, str(OBEYING))
    outcome = ungil("policy", str(obeying.pid), "fair")
    assert outcome.returncode == 2
    assert outcome.stderr == (
        f"ungil: process {obeying.pid} has no policy: its Python does not call the C library where "
        "the hook expects it: CPython 3.7 and later do; 2.7 can be recorded from its start, with "
        "ungil trace PROGRAM\n"
    )
    outcome = ungil("policy", str(obeying.pid))
    # The executable, not a link to it.
    assert f"has no policy: {Path(python.path).resolve()} is older than Python" in outcome.stderr
    assert outcome.stderr.endswith("its GIL cannot be scheduled\n")


def test_a_process_that_is_not_ours(ungil: Run, start: Start) -> None:
    undumpable = "import ctypes; ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)"
    program = (
        f"import sys; sys.argv[0] = {str(OBEYING)!r}\n{undumpable}\nexec(open(sys.argv[0]).read())"
    )
    obeying = Obeying(start, "run", "-c", program)
    outcome = ungil("policy", str(obeying.pid), preexec_fn=without_capabilities)
    assert outcome.returncode == 2
    advice = "try as its user or as root"
    if os.geteuid() == 0:
        advice = "give this container CAP_SYS_PTRACE (docker run --cap-add SYS_PTRACE)"
    assert outcome.stderr == (
        f"ungil: process {obeying.pid} cannot be inspected: permission denied; {advice}\n"
    )


def test_a_page_that_somebody_removed(ungil: Run, start: Start) -> None:
    obeying = Obeying(start, "run", str(OBEYING), preexec_fn=without_capabilities)
    page_of(obeying.pid).unlink()
    outcome = ungil("policy", str(obeying.pid), preexec_fn=without_capabilities)
    assert outcome.returncode == 2
    assert "its control page was removed" in outcome.stderr


def test_a_page_goes_with_its_process(start: Start) -> None:
    obeying = Obeying(start, "run", str(OBEYING))
    assert page_of(obeying.pid).exists()
    obeying.process.communicate("")
    assert not page_of(obeying.pid).exists()


# A process can map whatever it likes under the name of a control page.

PRETENDING = """\
import mmap, os, sys
path, content = sys.argv[1:]
with open(path, "wb+") as file:
    file.write(bytes.fromhex(content))
    file.truncate(max(4096, len(content) // 2))
    file.flush()
    page = mmap.mmap(file.fileno(), 4096)
print(os.getpid(), flush=True)
sys.stdin.read()
os.unlink(path)
"""


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"damaged!", "its control page is damaged"),
        (b"ungilctl" + bytes(8), "it runs under another version of ungil"),
        (b"ungilctl\2" + bytes(7), "its control page is that of another process"),
        (bytes(8192), "its control page is not where it should be"),
    ],
)
def test_a_page_that_is_none(
    ungil: Run, start: Start, tmp_path: Path, content: bytes, sentence: str
) -> None:
    path = tmp_path / "ungil-policy-1-2-3"
    words = [sys.executable, "-c", PRETENDING, str(path), content.hex()]
    pretending = Obeying(start, args=words, preexec_fn=without_capabilities)
    outcome = ungil("policy", str(pretending.pid), "fair")
    assert outcome.returncode == 2
    assert outcome.stderr == f"ungil: process {pretending.pid} has no policy: {sentence}\n"
    assert path.read_bytes() == content.ljust(4096, b"\0")


def test_a_page_with_a_policy_that_does_not_exist_is_stock(
    ungil: Run, start: Start, tmp_path: Path
) -> None:
    fill = "content = b'ungilctl\\2\\0\\0\\0' + os.getpid().to_bytes(4, 'little') + b'\\xff' * 8"
    program = PRETENDING.replace("bytes.fromhex(content)", "content").replace(
        "with open", f"{fill}\nwith open"
    )
    path = tmp_path / "ungil-policy-1-2-3"
    pretending = Obeying(start, args=[sys.executable, "-c", program, str(path), ""])
    assert ungil("policy", str(pretending.pid)).stdout == f"process {pretending.pid}: stock\n"


def test_help_begins_with_what_to_type(ungil: Run) -> None:
    for option in ("-h", "--help"):
        outcome = ungil("policy", option)
        assert outcome.returncode == 0
        assert outcome.stdout.startswith("  ungil policy 4711")
