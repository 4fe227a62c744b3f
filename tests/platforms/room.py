"""Runs words in a root, in namespaces of their own: nothing stays mounted, nothing goes on.

A mount is seen in the namespace alone, and the kernel ends all processes in it with their first.
"""

from __future__ import annotations

import shlex
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from platforms.systems import ALONE

# What every program in a room has in its environment, and nothing else.
ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/tmp",
    "LC_ALL": "C.UTF-8",
    "PYTHONDONTWRITEBYTECODE": "1",
}
NOBODY = 65534


@dataclass(frozen=True)
class Place:
    """How narrow it is where a program runs."""

    name: str = ""
    has_proc: bool = True
    shm_mib: int = 1024
    shm_is_writable: bool = True
    may_trace: bool = True
    uid: int = 0
    told: tuple[str, ...] = ()
    """The checks of `ungil doctor` that must not be `ok` there."""


WIDE = Place()
NARROW = [
    Place("an unprivileged user", uid=NOBODY),
    Place("without `/proc`", has_proc=False, told=("/proc",)),
    Place("`ptrace` forbidden by seccomp", may_trace=False, told=("attach",)),
    Place("64 MiB of `/dev/shm`", shm_mib=64),
    Place("4 MiB of `/dev/shm`", shm_mib=4, told=("/dev/shm",)),
    Place("read-only `/dev/shm`", shm_is_writable=False, told=("/dev/shm",)),
]


class Late(Exception):
    """A program did not end in time."""


@dataclass(frozen=True)
class Ended:
    """What came of a program."""

    status: int
    out: str
    err: str

    @property
    def said(self) -> str:
        """The last line that it printed, and its status: for who wonders what went wrong."""
        lines = (self.err.strip() or self.out.strip()).splitlines()
        return f"{lines[-1] if lines else 'it said nothing'} (exit code {self.status})"


@dataclass(frozen=True)
class Room:
    """A root, what of this machine is seen in it, and how narrow it is."""

    root: Path
    binds: dict[str, Path]
    """What is mounted, by where in the root."""
    place: Place = WIDE
    without_ptrace: tuple[str, ...] = ()
    """The words that run others where they may trace nobody."""
    patience_s: float = 300
    environment: dict[str, str] = field(default_factory=dict[str, str])

    def run(self, *words: str | Path, **variables: str) -> Ended:
        """Run words to their end; `Late` if there is none in time."""
        try:
            done = subprocess.run(
                self.command(*words, **variables),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=self.patience_s,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            last = (error.stderr or error.stdout or b"").decode(errors="replace").strip()
            raise Late(f"not over after {self.patience_s:.0f} s: {last[-200:]}") from None
        out, err = (it.decode(errors="replace") for it in (done.stdout, done.stderr))
        return Ended(done.returncode, out, err)

    def command(self, *words: str | Path, **variables: str) -> list[str]:
        """What runs words in the room, to be started by others."""
        # A shell stays the first process there: the first one gets no signal that it does not want.
        inside = shlex.join(self.inside(*words, **variables))
        return [*ALONE, "sh", "-ec", "\n".join([*self._mounts(), inside, "exit $?"])]

    def inside(self, *words: str | Path, **variables: str) -> list[str]:
        """The same for who is in its namespaces already."""
        named = {**ENVIRONMENT, **self.environment, **variables}
        command = ["chroot", f"--userspec={self.place.uid}:{self.place.uid}", str(self.root)]
        command += ["/usr/bin/env", "-i", *(f"{name}={value}" for name, value in named.items())]
        if not self.place.may_trace:
            command += self.without_ptrace
        return [*command, *map(str, words)]

    def _mounts(self) -> list[str]:
        """The lines of a shell that mount what a program needs; `set -e` ends it if one fails."""
        lines: list[str] = []
        for where, what in self.binds.items():
            inside = shlex.quote(f"{self.root}/{where.lstrip('/')}")
            lines += [f"mkdir -p {inside}", f"mount --bind {shlex.quote(str(what))} {inside}"]
        shm = shlex.quote(f"{self.root}/dev/shm")
        size = f"size={self.place.shm_mib}m,mode=1777"
        lines += [f"mkdir -p {shm}", f"mount -t tmpfs -o {size} tmpfs {shm}"]
        if not self.place.shm_is_writable:
            lines.append(f"mount -o remount,ro {shm}")
        if self.place.has_proc:
            lines.append(f"mount -t proc proc {shlex.quote(f'{self.root}/proc')}")
        return ["set -e", *lines, "set +e"]
