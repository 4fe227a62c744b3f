"""`ungil policy` and a process that is still starting, stopped at each point of its start.

The command waits for such a process. What it does while it waits is here the test's: it lets the
process go on, so that nothing depends on who is quicker.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from embedding import embedding, scheduled_libraries
from scheduling import OBEYING, Obeying, page_of
from stubs import mapped_stub
from tracing import compile_library

from ungil import _native
from ungil.cli import policy
from ungil.errors import UsageError

Run = Callable[..., subprocess.CompletedProcess[str]]
Start = Callable[..., subprocess.Popen[str]]

STUB = _native.preload_value(None)
STOP = "import os, signal; os.kill(os.getpid(), signal.SIGSTOP)"


def stopped(process: subprocess.Popen[str]) -> int:
    """The process, once it has stopped itself."""
    _, status = os.waitpid(process.pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status), status
    return process.pid


class Patience:
    """Stands in for the clock and the pause of the command: `go_on` happens in the first pause."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, go_on: Callable[[], object]) -> None:
        self.pauses = 0
        self._go_on = go_on
        monkeypatch.setattr(time, "sleep", self._pause)

    def _pause(self, seconds: float) -> None:
        self.pauses += 1
        if self.pauses == 1:
            self._go_on()
        # The process needs the processor more than this test does.
        os.sched_yield()


def reached(monkeypatch: pytest.MonkeyPatch, pid: int, go_on: Callable[[], object]) -> None:
    """Show that the command waits for the process, and then gives it a policy."""
    with pytest.raises(UsageError) as refusal:
        policy.answer(pid, lambda: _native.process_policy(pid), patience_s=0)
    assert isinstance(refusal.value.__cause__, _native.StillStarting), refusal.value
    patience = Patience(monkeypatch, go_on)
    outcome = policy.shown_or_changed(pid, "batch", None)
    assert patience.pauses >= 1
    assert outcome["before"] == {"policy": "fair", "quantum_ms": 5.0}
    assert _native.process_policy(pid) == ("batch", 100_000_000)


def cont(pid: int) -> Callable[[], None]:
    """Lets a stopped process go on."""
    return lambda: os.kill(pid, signal.SIGCONT)


WAITING = [sys.executable, "-c", "import sys; sys.stdin.read()"]


def test_before_ungil_becomes_the_program(
    start: Start, environment: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Once, in ungil itself.
    (tmp_path / "sitecustomize.py").write_text(
        f"import sys\nif 'ungil' in sys.orig_argv[1:3]:\n    {STOP}\n", encoding="utf-8"
    )
    changed = {**environment, "PYTHONPATH": str(tmp_path)}
    words = ["run", "--policy", "fair", *WAITING]
    pid = stopped(start(*words, env=changed, stdin=subprocess.PIPE))
    with pytest.raises(_native.StillStarting, match="has not become its program yet"):
        _native.process_policy(pid)
    reached(monkeypatch, pid, cont(pid))


def test_before_the_stub_is_loaded(
    start: Start, environment: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The loader opens what is to be preloaded in order, and waits for a writer of this one.
    pipe = tmp_path / "pipe.so"
    os.mkfifo(pipe)
    changed = {**environment, "LD_PRELOAD": f"{pipe}:{STUB}", "UNGIL_POLICY": "fair"}
    process = start(args=WAITING, env=changed, stdin=subprocess.PIPE)
    executable = Path(f"/proc/{process.pid}/exe")
    while executable.resolve() != Path(sys.executable).resolve():
        os.sched_yield()  # It is not yet the program that the test is about.
    while True:
        with pytest.raises(_native.StillStarting) as told:
            _native.process_policy(process.pid)
        # The kernel sets up its memory after that.
        if "is just executing another program" not in str(told.value):
            break
    assert "its environment names is not loaded" in str(told.value)
    # What is no library is left out, with a warning.
    reached(monkeypatch, process.pid, lambda: pipe.write_text("no library", encoding="ascii"))


def test_before_the_stub_has_opened_the_hook(
    start: Start, environment: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Constructors run in the reverse order of loading.
    library = compile_library(tmp_path, "stopping")
    changed = {**environment, "LD_PRELOAD": f"{STUB}:{library}", "UNGIL_POLICY": "fair"}
    pid = stopped(start(args=WAITING, env=changed, stdin=subprocess.PIPE))
    assert mapped_stub(Path(f"/proc/{pid}/maps").read_text(encoding="utf-8"))
    with pytest.raises(_native.StillStarting, match="its environment names is not loaded"):
        _native.process_policy(pid)
    reached(monkeypatch, pid, cont(pid))


def test_before_the_page_is_filled_in(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "ungil-policy-1-2-3"
    program = (
        "import mmap, os, sys\n"
        f"with open({str(path)!r}, 'wb+') as file:\n"
        "    file.truncate(4096)\n"
        "    page = mmap.mmap(file.fileno(), 4096)\n"
        "print(flush=True); sys.stdin.readline()\n"
        "page[8:16] = (2).to_bytes(4, 'little') + os.getpid().to_bytes(4, 'little')\n"
        "page[16:24] = (5_000_000 << 8 | 2).to_bytes(8, 'little')\n"
        "page[:8] = b'ungilctl'\n"
        "sys.stdin.read()\n"
    )
    process = start(args=[sys.executable, "-c", program], stdin=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdin is not None
    process.stdout.readline()
    with pytest.raises(_native.StillStarting, match="its control page is empty"):
        _native.process_policy(process.pid)
    say = process.stdin

    def go_on() -> None:
        say.write("\n")
        say.flush()

    reached(monkeypatch, process.pid, go_on)


def test_before_a_variable_alone_is_obeyed(
    start: Start, environment: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = compile_library(tmp_path, "stopping")
    changed = {**environment, "LD_PRELOAD": str(library), "UNGIL_POLICY": "fair"}
    pid = stopped(start(args=WAITING, env=changed, stdin=subprocess.PIPE))
    with pytest.raises(_native.StillStarting, match="its environment has UNGIL_POLICY, but"):
        _native.process_policy(pid)
    reached(monkeypatch, pid, cont(pid))


def test_before_a_library_is_initialised(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = scheduled_libraries()[-1]
    code = "import sys; sys.stdin.read()"
    words = embedding(tmp_path, library, "local stop", code)
    process = start("run", "--policy", "fair", *words, stdin=subprocess.PIPE)
    pid = stopped(process)
    # Before it has opened the library, and after.
    with pytest.raises(RuntimeError, match="it has loaded no Python, so it has no GIL"):
        _native.process_policy(pid)
    os.kill(pid, signal.SIGCONT)
    stopped(process)
    with pytest.raises(_native.StillStarting, match="its Python has not started yet"):
        _native.process_policy(pid)
    reached(monkeypatch, pid, cont(pid))


def test_one_that_does_not_go_on_is_told(
    ungil: Run, start: Start, environment: dict[str, str], tmp_path: Path
) -> None:
    library = compile_library(tmp_path, "stopping")
    changed = {**environment, "LD_PRELOAD": f"{STUB}:{library}", "UNGIL_POLICY": "fair"}
    pid = stopped(start(args=WAITING, env=changed, stdin=subprocess.PIPE))
    outcome = ungil("policy", str(pid), "batch")
    assert (outcome.returncode, outcome.stdout) == (2, "")
    assert outcome.stderr == (
        f"ungil: process {pid} has no policy: the hook that its environment names is not loaded; "
        "it is still starting, or the loader has refused it\n"
    )


# Processes that have the hook in another way than by `ungil run`.


def test_a_variable_alone(ungil: Run, start: Start, environment: dict[str, str]) -> None:
    changed = {**environment, "UNGIL_POLICY": "fair"}
    obeying = Obeying(start, args=[sys.executable, str(OBEYING)], env=changed)
    outcome = ungil("policy", str(obeying.pid), "batch")
    assert outcome.stdout.startswith(f"process {obeying.pid}: batch, quantum 100 ms (was fair, ")
    assert obeying.policy() == ("batch", 100)
    assert page_of(obeying.pid).exists()
    obeying.process.communicate("")
    assert not page_of(obeying.pid).exists()


def test_a_call_of_install(ungil: Run, start: Start) -> None:
    program = f"from ungil import gil; gil.install(); exec(open({str(OBEYING)!r}).read())"
    obeying = Obeying(start, args=[sys.executable, "-c", program])
    outcome = ungil("policy", str(obeying.pid), "fair")
    assert outcome.stdout == f"process {obeying.pid}: fair, quantum 5 ms (was stock)\n"
    assert obeying.policy() == ("fair", 5)


def test_what_a_variable_alone_does_not_reach(
    ungil: Run, start: Start, environment: dict[str, str]
) -> None:
    changed = {**environment, "UNGIL_POLICY": "fair"}
    process = start(args=["cat"], env=changed, stdin=subprocess.PIPE)
    outcome = ungil("policy", str(process.pid))
    assert "UNGIL_POLICY works only in a Python that has ungil in" in outcome.stderr


def test_a_hook_that_nobody_asked(ungil: Run, start: Start, environment: dict[str, str]) -> None:
    changed = {**environment, "LD_PRELOAD": STUB}
    obeying = Obeying(start, args=[sys.executable, str(OBEYING)], env=changed)
    outcome = ungil("policy", str(obeying.pid))
    assert outcome.stderr.endswith("ungil is loaded into it, but does not schedule its GIL\n")


def test_ungil_trace_itself(ungil: Run, start: Start) -> None:
    obeying = Obeying(start, "trace", "--quiet", sys.executable, str(OBEYING))
    outcome = ungil("policy", str(obeying.process.pid))
    assert "it is ungil trace itself; give the process id of the program" in outcome.stderr


def test_a_process_that_has_ended(ungil: Run, start: Start) -> None:
    process = start(args=["true"])
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    outcome = ungil("policy", str(process.pid))
    assert outcome.stderr == f"ungil: process {process.pid} has no policy: it has ended\n"
