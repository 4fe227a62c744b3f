"""What `ungil doctor` tries in processes of their own: attaching to one, and a shared heap."""

from __future__ import annotations

import platform
import signal
import subprocess
import sys

from ungil.cli.doctor.check import Check, Status
from ungil.cli.doctor.remedy import ADDRESSES, FILE_SIZE, READING, SHARING
from ungil.formatting import killed_by, printable

PATIENCE_S = 60
KILLED = "a seccomp filter kills a process that tries (SIGSYS)"
WAITS = "import sys; print(flush=True); sys.stdin.read()"
# In a process that is no ancestor of that one: Yama lets a process trace its descendants.
ATTACHES = """\
import sys
from ungil._native import attach_policy
try:
    attach_policy(int(sys.argv[1]), "stock")
except (OSError, RuntimeError) as error:
    sys.exit(str(error))
"""
READS = """\
from ungil.cli.doctor.machine_checks import read_a_child
read_a_child()
"""
SHARES = """\
import sys
from ungil import share
try:
    share.Heap().root["tried"] = [1]
except (OSError, RuntimeError, MemoryError) as error:
    sys.exit(str(error))
"""
# By a word of what the heap says.
HEAP_REMEDIES = {
    "RLIMIT_FSIZE": FILE_SIZE,
    "memfd_create": SHARING,
    "seccomp": SHARING,
    "address space": ADDRESSES,
    "mmap": ADDRESSES,
}


def check_attaching(place: str | None) -> Check:
    """Whether a running process that is no child can be recorded (`--pid`, dump, top, policy)."""
    name = "attach"
    if platform.machine() != "x86_64":
        text = "ungil can attach to running processes on x86-64 only"
        return Check(Status.WARN, name, text, "start the program with: ungil run --standby")
    with subprocess.Popen(
        [sys.executable, "-S", "-c", WAITS],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as target:
        try:
            assert target.stdout is not None
            target.stdout.readline()
            problem = _said(ATTACHES, str(target.pid))
            # It ends by itself, and takes its control page with it.
            target.communicate(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            problem = f"a process did not end within {PATIENCE_S} s after that"
        finally:
            target.kill()
    if problem is None:
        return Check(Status.OK, name, "allowed: ungil trace --pid, dump, top and policy work")
    if "/dev/shm" in problem:
        # It got in, and was asked for a policy, which alone needs that folder.
        text = "allowed: ungil trace --pid, dump and top work; policy needs /dev/shm"
        return Check(Status.OK, name, text)
    return refused(problem, place)


def refused(problem: str, place: str | None) -> Check:
    """What follows from a refusal, which the native part tells with what helps in general."""
    why, _, helps = problem.partition("; ")
    text = printable(f"{why}: ungil trace --pid, dump and top do not work")
    advice = ""
    if "may not be traced" in why or why == KILLED:
        # A switch of the kernel is no matter of a container's.
        standby = f"{READING.sentence(place)}, or start the program with: ungil run --standby"
        advice = helps if "yama" in why else standby
    return Check(Status.WARN, "attach", text, advice)


def kills_who_reads() -> bool:
    """Whether a seccomp filter kills a process that reads the memory of a child."""
    return _said(READS) == KILLED


def check_heap(place: str | None) -> Check:
    """Whether a shared heap can be made and used."""
    problem = _said(SHARES)
    if problem is None:
        return Check(Status.OK, "shared heap", "ungil.share works")
    text = f"{problem}: ungil.share does not work"
    remedies = [remedy for word, remedy in HEAP_REMEDIES.items() if word in problem]
    advice = remedies[0].sentence(place) if remedies else ""
    return Check(Status.WARN, "shared heap", printable(text), advice)


def _said(code: str, *arguments: str) -> str | None:
    """Run Python code of ours; None if it worked, else what it said, or how it ended."""
    try:
        outcome = subprocess.run(
            [sys.executable, "-c", code, *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PATIENCE_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"it took longer than {PATIENCE_S} s"
    except OSError as error:
        return str(error.strerror).lower()
    if outcome.returncode == 0:
        return None
    if outcome.returncode == -signal.SIGSYS:
        return KILLED
    if outcome.returncode < 0:
        return f"it was {killed_by(-outcome.returncode)}"
    lines = outcome.stderr.decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else f"it ended with {outcome.returncode}"
