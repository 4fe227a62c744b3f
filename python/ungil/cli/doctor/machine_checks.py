"""What `ungil doctor` looks at of the machine: each check tries the thing itself."""

from __future__ import annotations

import ctypes
import os
import platform
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import ungil
from ungil.cli import proc
from ungil.cli.doctor.check import Check, Status
from ungil.cli.doctor.workplace import (
    ADVICE,
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


def machine_checks() -> Iterator[Check]:
    """Everything about this machine that tracing depends on."""
    yield check_platform()
    native = check_native()
    yield native
    if native.status is Status.OK:
        yield check_preload()
    yield check_foreign_preload(os.environ.get(PRELOAD, ""))
    if proc.is_mounted():
        yield check_memory_of_others()
    else:
        yield check_proc()
    yield check_shared_memory()
    yield check_temporary_folder()


def check_platform() -> Check:
    """Linux, glibc, and a processor whose relocations the hook knows."""
    system, machine = platform.system(), platform.machine()
    libc, version = platform.libc_ver()
    text = f"{system} {platform.release()}, {libc or 'unknown libc'} {version}, {machine}"
    if system != "Linux":
        return Check(Status.FAIL, "platform", text, "ungil needs Linux")
    if libc != "glibc":
        return Check(Status.FAIL, "platform", text, "use an image with glibc, such as Debian's")
    if machine not in ("x86_64", "aarch64"):
        return Check(Status.FAIL, "platform", text, "ungil knows x86-64 and aarch64")
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
            outcome = subprocess.run(
                ["/bin/sh", "-c", ":"],
                env=recorded(recorder, os.environ),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=60,
                check=False,
            )
    except Error as error:
        # It says what to do.
        return Check(Status.FAIL, "preload", str(error))
    except (OSError, subprocess.TimeoutExpired) as error:
        return Check(Status.FAIL, "preload", str(error), "see whether the disk is full")
    said = printable(outcome.stderr.decode(errors="replace").strip())
    if outcome.returncode != 0 or said:
        text = f"/bin/sh ended with {outcome.returncode} and said: {said}"
        return Check(Status.FAIL, "preload", text, "the loader refused the stub; reinstall ungil")
    return Check(Status.OK, "preload", "/bin/sh runs with the stub, which leaves it alone")


def check_foreign_preload(value: str) -> Check:
    """Libraries that others preload stay in place, and must exist."""
    libraries = value.replace(":", " ").split()
    if not libraries:
        return Check(Status.OK, PRELOAD, "not set")
    missing = [name for name in libraries if "/" in name and not Path(name).exists()]
    if missing:
        text = f"names files that do not exist: {' '.join(missing)}"
        return Check(Status.WARN, PRELOAD, text, "the loader will complain in every program")
    return Check(Status.OK, PRELOAD, f"{value}, which stays in place behind the hook")


def check_memory_of_others() -> Check:
    """Reading the memory of a child, which is how Python stacks of long holds are taken."""
    name = "read a child"
    with subprocess.Popen(
        [sys.executable, "-S", "-c", "input()"], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as child:
        try:
            address = _readable_address(child.pid)
            problem = _read_memory(child.pid, address)
        except OSError as error:
            problem = error
        finally:
            child.kill()
    if problem is None:
        return Check(Status.OK, name, "allowed: long holds come with their Python stacks")
    scope = _first_line("/proc/sys/kernel/yama/ptrace_scope")
    text = f"{reason(problem)}: long holds come without Python stacks"
    if scope and scope not in ("0", "1"):
        return Check(Status.WARN, name, text, f"kernel.yama.ptrace_scope is {scope}; set it to 1")
    return Check(Status.WARN, name, text, "in a container, add the capability SYS_PTRACE")


def check_proc() -> Check:
    """What does not work without /proc."""
    lost = "reports have no names of threads and no Python stacks, and ungil.share does not work"
    text = f"not mounted: {lost}, nor ungil policy"
    return Check(Status.WARN, "/proc", text, proc.ADVICE)


def check_temporary_folder() -> Check:
    """A place for temporary files, as Python looks for one."""
    name, found, wanted = "temporary files", temporary_folder(), asked_for()
    if found is None:
        return Check(Status.WARN, name, "no folder for them can be written to", ADVICE)
    if wanted is not None and Path(wanted).absolute() != Path(found):
        text = f"{wanted} cannot be written to, so they are in {found}"
        return Check(Status.WARN, name, text, ADVICE)
    return Check(Status.OK, name, found)


def check_shared_memory() -> Check:
    """Room for the rings."""
    try:
        facts = os.statvfs(SHARED_MEMORY)
    except OSError as error:
        advice = "mount a tmpfs there"
        return Check(Status.WARN, SHARED_MEMORY, reason(error), advice)
    size, free = facts.f_frsize * facts.f_blocks, facts.f_frsize * facts.f_bavail
    text = f"{size // MEBIBYTE:,} MiB, {free // MEBIBYTE:,} MiB free"
    if not os.access(SHARED_MEMORY, os.W_OK | os.X_OK):
        return Check(Status.WARN, SHARED_MEMORY, f"{text}, not writable", "make it writable")
    if free < ENOUGH_SHARED_MEMORY:
        advice = "many busy threads may lose events; in a container, raise --shm-size"
        return Check(Status.WARN, SHARED_MEMORY, text, advice)
    return Check(Status.OK, SHARED_MEMORY, text)


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


def _first_line(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""
