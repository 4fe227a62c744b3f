"""What `ungil doctor` looks at of the machine: each check tries the thing itself."""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import ungil
from ungil.cli import proc
from ungil.cli.doctor.check import Check, Status
from ungil.cli.doctor.limits_check import check_limits
from ungil.cli.doctor.process_checks import check_attaching, check_heap, kills_who_reads
from ungil.cli.doctor.remedy import (
    FILE_SIZE,
    FILES,
    PROCESSES,
    READING,
    ROOM,
    TEMPORARY,
    WRITING,
    surroundings,
)
from ungil.cli.doctor.system_file import text_of
from ungil.cli.doctor.workplace import (
    SHARED_MEMORY,
    asked_for,
    temporary_folder,
    workplace,
)
from ungil.environment import PRELOAD
from ungil.errors import Error
from ungil.formatting import MEBIBYTE, printable, reason
from ungil.recorder import new_recorder, recorded

# A ring full of events is 16 bytes each; with less than this a burst of many threads loses some.
ENOUGH_SHARED_MEMORY = 64 * MEBIBYTE
# With less than this a recording has its rings in a temporary folder (`Session::create`).
LEAST_SHARED_MEMORY = 32 * MEBIBYTE


def machine_checks() -> Iterator[Check]:
    """Everything about this machine that tracing depends on."""
    yield check_platform()
    native = check_native()
    yield native
    works = native.status is Status.OK
    if works:
        yield check_preload()
    yield check_foreign_preload(os.environ.get(PRELOAD, ""))
    if proc.is_mounted() and proc.is_of_this_namespace():
        yield _tried("read a child", check_memory_of_others)
        if works:
            yield _tried("attach", lambda: check_attaching(surroundings()))
            yield check_heap(surroundings())
    else:
        yield check_proc()
    yield check_shared_memory()
    yield check_temporary_folder()
    yield check_limits(surroundings())


def _tried(name: str, check: Callable[[], Check]) -> Check:
    """What `check` finds, also where it cannot even be made: no process, no file can be opened."""
    try:
        return check()
    except OSError as error:
        return Check(Status.WARN, name, f"ungil cannot try it: {reason(error)}", _remedy_of(error))


def check_platform() -> Check:
    """Linux, glibc or musl, and a processor whose relocations the hook knows."""
    system, machine = platform.system(), platform.machine()
    libc, version = platform.libc_ver()
    if libc != "glibc":
        libc, version = ("musl", "") if _has_musl() else ("unknown libc", "")
    text = f"{system} {platform.release()}, {' '.join((libc, version)).strip()}, {machine}"
    if system != "Linux":
        return Check(Status.FAIL, "platform", text, "ungil needs Linux")
    if libc not in ("glibc", "musl"):
        return Check(Status.FAIL, "platform", text, "use an image with glibc or musl")
    if machine not in ("x86_64", "aarch64"):
        return Check(Status.FAIL, "platform", text, "ungil supports x86-64 and aarch64")
    return Check(Status.OK, "platform", text)


def check_native() -> Check:
    """The native part can be imported, and the hook lies beside it."""
    try:
        from ungil._native import hook_path
    except ImportError as error:
        return Check(Status.FAIL, "native part", str(error), "reinstall ungil")
    hook = hook_path()
    if not Path(hook).is_file():
        return Check(Status.FAIL, "native part", f"the hook {hook} is missing", "reinstall ungil")
    return Check(Status.OK, "native part", f"version {ungil.__version__}, hook {hook}")


def check_preload() -> Check:
    """The dynamic loader accepts the stub from where it is installed."""
    try:
        with workplace() as folder:
            recorder = new_recorder(str(folder / "doctor.pftrace"))
            outcome = _shell(recorded(recorder, os.environ))
            bare = _shell(dict(os.environ))
    except Error as error:
        # It says what to do.
        return Check(Status.FAIL, "preload", str(error))
    except subprocess.TimeoutExpired as error:
        return Check(Status.FAIL, "preload", str(error), "try again when the machine is less busy")
    except OSError as error:
        return Check(Status.FAIL, "preload", reason(error), _remedy_of(error))
    # What the loader, or a library of others, says of something else is no matter of the hook's.
    said = [line for line in _lines(outcome) if "ungil" in line and line not in _lines(bare)]
    if outcome.returncode != bare.returncode or said:
        text = f"/bin/sh ended with {outcome.returncode} and said: {' '.join(said)}"
        return Check(Status.FAIL, "preload", text, "the loader refused the stub; reinstall ungil")
    return Check(Status.OK, "preload", "/bin/sh runs with the stub, which leaves it alone")


def check_foreign_preload(value: str) -> Check:
    """Libraries that others preload stay in place, and must be ones that the loader takes."""
    libraries = value.replace(":", " ").split()
    if not libraries:
        return Check(Status.OK, PRELOAD, "not set")
    # The loader completes those with a dollar sign.
    paths = [name for name in libraries if "/" in name and "$" not in name]
    missing = [name for name in paths if not Path(name).exists()]
    advice = f"the loader complains in every program; take it out of {PRELOAD}"
    if missing:
        text = f"names files that do not exist: {' '.join(missing)}"
        return Check(Status.WARN, PRELOAD, text, advice)
    try:
        # Such a library may say something itself.
        said = [line for line in _lines(_shell({**os.environ, PRELOAD: value})) if PRELOAD in line]
    except (OSError, subprocess.TimeoutExpired) as error:
        said = [str(error)]
    if said:
        return Check(Status.WARN, PRELOAD, f"{value}: {' '.join(said)}", advice)
    return Check(Status.OK, PRELOAD, f"{value}, which stays in place behind the hook")


def _shell(environment: dict[str, str]) -> subprocess.CompletedProcess[bytes]:
    """A shell that does nothing, run to its end."""
    return subprocess.run(
        ["/bin/sh", "-c", ":"],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        check=False,
    )


def _lines(outcome: subprocess.CompletedProcess[bytes]) -> list[str]:
    """What a program said on stderr."""
    return [printable(line) for line in outcome.stderr.decode(errors="replace").splitlines()]


def _remedy_of(error: OSError) -> str:
    """What to do about an error of the system."""
    place = surroundings()
    if _is_limited():
        return FILE_SIZE.sentence(place)
    match error.errno:
        case errno.EMFILE | errno.ENFILE:
            return FILES.sentence(place)
        case errno.EAGAIN:
            return PROCESSES.sentence(place)
        case errno.ENOSPC | errno.EDQUOT | errno.EROFS:
            return TEMPORARY.sentence(place)
        case _:
            return "check whether this user may start programs and write files here"


def check_memory_of_others() -> Check:
    """Reading the memory of a child, which is how Python stacks of long holds are taken."""
    name = "read a child"
    # A filter may kill who makes the call, so another process makes it first.
    if _is_filtered() and kills_who_reads():
        text = (
            "a seccomp filter kills a process that reads its child, so long holds have no Python "
            "stacks"
        )
        return Check(Status.WARN, name, text, READING.sentence(surroundings()))
    problem = read_a_child()
    if problem is None:
        return Check(Status.OK, name, "allowed: long holds have their Python stacks")
    scope = text_of("/proc/sys/kernel/yama/ptrace_scope").strip()
    text = f"{reason(problem)}: long holds have no Python stacks"
    if scope == "2":
        advice = (
            f"sysctl kernel.yama.ptrace_scope=1 (it is 2), or {READING.sentence(surroundings())}"
        )
        return Check(Status.WARN, name, text, advice)
    if scope == "3":
        advice = "kernel.yama.ptrace_scope is 3, which can be changed only at boot"
        return Check(Status.WARN, name, text, advice)
    return Check(Status.WARN, name, text, READING.sentence(surroundings()))


def read_a_child() -> OSError | None:
    """Read the memory of a child; what forbids it, None if it worked."""
    with subprocess.Popen(
        [sys.executable, "-S", "-c", "input()"], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as child:
        try:
            return _read_memory(child.pid, _readable_address(child.pid))
        except OSError as error:
            return error
        finally:
            child.kill()


def _is_filtered() -> bool:
    """Whether a seccomp filter is in force: see "Seccomp" in proc_pid_status(5)."""
    return "\nSeccomp:\t2" in text_of("/proc/self/status")


def check_proc() -> Check:
    """What does not work without /proc, or with that of others."""
    if proc.is_mounted():
        lost = "reports have no Python stacks, and ungil policy and trace --pid do not work"
        text = f"belongs to another PID namespace, where process ids differ: {lost}"
        return Check(Status.WARN, "/proc", text, proc.ADVICE)
    lost = "reports have no thread names and no Python stacks, and ungil.share does not work"
    text = f"not mounted: {lost}, nor do ungil policy and trace --pid"
    return Check(Status.WARN, "/proc", text, proc.ADVICE)


def check_temporary_folder() -> Check:
    """A place for temporary files, as Python looks for one."""
    name, found, wanted = "temporary files", temporary_folder(), asked_for()
    advice = TEMPORARY.sentence(surroundings())
    if found is None:
        if _is_limited():
            text = "no file can be written: the limit on file sizes is 0 (RLIMIT_FSIZE)"
            return Check(Status.WARN, name, text, FILE_SIZE.sentence(surroundings()))
        return Check(Status.WARN, name, "no folder for them is writable", advice)
    if wanted is not None and Path(wanted).absolute() != Path(found):
        text = f"{wanted} is not writable, so they are in {found}"
        return Check(Status.WARN, name, text, TEMPORARY.sentence(None))
    return Check(Status.OK, name, found)


def _is_limited() -> bool:
    """Whether files may not even have the few bytes by which Python tries a folder."""
    return 0 <= resource.getrlimit(resource.RLIMIT_FSIZE)[0] < 16


def check_shared_memory() -> Check:
    """Room for the rings, and for the pages through which policies are changed."""
    place = surroundings()
    elsewhere = "the buffers of a recording are in a temporary folder"
    if temporary_folder() is None:
        elsewhere = "no place is left for the buffers of a recording"
    alone = "ungil policy and standby cannot reach programs that ungil run started"
    try:
        facts = os.statvfs(SHARED_MEMORY)
    except OSError as error:
        text = f"{reason(error)}: {elsewhere}, and {alone}"
        return Check(Status.WARN, SHARED_MEMORY, text, WRITING.sentence(place))
    size, free = facts.f_frsize * facts.f_blocks, facts.f_frsize * facts.f_bavail
    text = f"{size // MEBIBYTE:,} MiB, {free // MEBIBYTE:,} MiB free"
    if not os.access(SHARED_MEMORY, os.W_OK | os.X_OK):
        text = f"{text}, not writable: {elsewhere}, and {alone}"
        return Check(Status.WARN, SHARED_MEMORY, text, WRITING.sentence(place))
    if free < ENOUGH_SHARED_MEMORY:
        lost = elsewhere if free < LEAST_SHARED_MEMORY else "many busy threads may lose events"
        return Check(Status.WARN, SHARED_MEMORY, f"{text}: {lost}", ROOM.sentence(place))
    return Check(Status.OK, SHARED_MEMORY, text)


def _has_musl() -> bool:
    """Whether this process has musl, which tells neither its name nor its version."""
    # A part of its loader, which finds it by this name itself.
    return hasattr(ctypes.CDLL(None), "__dls3")


def _readable_address(pid: int) -> int:
    for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
        span, permissions = line.split()[:2]
        if permissions.startswith("r"):
            return int(span.split("-")[0], 16)
    raise PermissionError(1, "Operation not permitted")


class _IoVector(ctypes.Structure):
    """`struct iovec` of <sys/uio.h>."""

    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


def _read_memory(pid: int, address: int) -> OSError | None:
    """Try the system call that py-spy uses; None if it worked."""
    libc = ctypes.CDLL(None, use_errno=True)
    buffer = ctypes.create_string_buffer(16)
    local = _IoVector(ctypes.addressof(buffer), len(buffer))
    remote = _IoVector(address, len(buffer))
    libc.process_vm_readv.restype = ctypes.c_ssize_t
    count = libc.process_vm_readv(pid, ctypes.byref(local), 1, ctypes.byref(remote), 1, 0)
    if count == len(buffer):
        return None
    return OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
