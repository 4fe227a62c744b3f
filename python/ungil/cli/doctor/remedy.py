"""What to change where ungil may not do something: the words of what started it.

Docker and Podman have flags, Kubernetes a pod's specification, systemd a unit's properties.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ungil.cli.doctor.system_file import text_of

PLACES = ("docker", "podman", "kubernetes", "systemd")
"""What can have started a program, as `surroundings` says it."""


@dataclass(frozen=True)
class Remedy:
    """The same change for each of `PLACES`; Podman has Docker's flags."""

    flag: str
    """Of `docker run`."""
    pod: str
    """What to do to a pod."""
    unit: str
    """Properties of a unit of systemd."""
    otherwise: str
    """What to do where none of them is seen."""

    def sentence(self, place: str | None) -> str:
        """What to do in `place`, one of `PLACES` or None, without a final dot."""
        match place:
            case "docker" | "podman":
                return f"start the container with {place} run {self.flag}"
            case "kubernetes":
                return f"in the pod's specification, {self.pod}"
            case "systemd":
                return f"in the unit, set {self.unit}"
            case _:
                return self.otherwise


def surroundings(root: Path = Path("/"), environment: Mapping[str, str] = os.environ) -> str | None:
    """Which of `PLACES` this process runs in, the innermost first; None if it cannot be seen."""
    if "KUBERNETES_SERVICE_HOST" in environment:
        return "kubernetes"
    if (root / "run/.containerenv").exists():
        return "podman"
    if (root / ".dockerenv").exists():
        return "docker"
    # Terminals of a desktop inherit the variable, and are in a scope of their own.
    if "INVOCATION_ID" in environment and _is_a_service(root):
        return "systemd"
    return None


def _is_a_service(root: Path) -> bool:
    """Whether the control group of this process is that of a unit."""
    lines = text_of(root / "proc/self/cgroup").splitlines()
    return any(line.endswith(".service") for line in lines)


READING = Remedy(
    "--cap-add SYS_PTRACE",
    "add SYS_PTRACE to securityContext.capabilities.add",
    "SystemCallFilter= to allow @debug and @ipc",
    "add the capability SYS_PTRACE, or a seccomp filter that allows ptrace and process_vm_readv",
)
ROOM = Remedy(
    "--shm-size 256m",
    "mount an emptyDir with medium: Memory at /dev/shm",
    "TemporaryFileSystem=/dev/shm:rw,size=256m",
    "mount -o remount,size=256m /dev/shm",
)
WRITING = Remedy(
    "--tmpfs /dev/shm",
    "mount an emptyDir with medium: Memory at /dev/shm",
    "ReadWritePaths=/dev/shm",
    "mount -o remount,rw,mode=1777 /dev/shm",
)
TEMPORARY = Remedy(
    "--tmpfs /tmp",
    "mount an emptyDir at /tmp",
    "PrivateTmp=yes",
    "set TMPDIR to a writable folder",
)
SHARING = Remedy(
    "--security-opt seccomp=PROFILE, with a profile that allows memfd_create",
    "set securityContext.seccompProfile to one that allows memfd_create",
    "SystemCallFilter= to allow @ipc",
    "allow memfd_create and fallocate in the seccomp filter",
)
FILE_SIZE = Remedy(
    "--ulimit fsize=-1",
    "start the program with: sh -c 'ulimit -f unlimited && exec PROGRAM'",
    "LimitFSIZE=infinity",
    "ulimit -f unlimited",
)
FILES = Remedy(
    "--ulimit nofile=1024",
    "start the program with: sh -c 'ulimit -n 1024 && exec PROGRAM'",
    "LimitNOFILE=1024",
    "ulimit -n 1024",
)
ADDRESSES = Remedy(
    "--memory instead of a limit on address space (ulimit -v)",
    "set resources.limits.memory instead of ulimit -v",
    "MemoryMax= instead of LimitAS=",
    "ulimit -v unlimited",
)
PROCESSES = Remedy(
    "--pids-limit -1 --ulimit nproc=-1",
    "ask for a higher podPidsLimit on its node",
    "TasksMax=infinity and LimitNPROC=infinity",
    "ulimit -u unlimited",
)
