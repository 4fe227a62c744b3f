"""The systems: a root of each Debian, made by debootstrap.

A root of another processor runs under qemu, which the kernel starts for the programs in it
(binfmt_misc).
"""

from __future__ import annotations

import fcntl
import os
import platform
import shutil
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

# What Debian calls a processor, and what Python, Rust and wheels do.
MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}
BINFMT = Path("/proc/sys/fs/binfmt_misc")
QEMU = "/usr/bin/qemu-aarch64-static"
# The beginning of an executable or a library for aarch64 (<elf.h>), and the bits of it that count.
MAGIC = r"\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00"
MASK = r"\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff"
OURS = "ungil-aarch64"
# In namespaces of its own: the kernel unmounts and ends all that is left in them.
ALONE = ("unshare", "--mount", "--pid", "--ipc", "--fork", "--kill-child")


class Unmade(Exception):
    """Something that the rows need could not be made; the text says what, and why."""


@dataclass(frozen=True)
class System:
    """A Debian on a processor."""

    suite: str
    release: str
    """As people call it: `Debian 12`."""
    number: int
    """Its place among the others."""
    arch: str
    packages: tuple[str, ...]

    @property
    def name(self) -> str:
        """What its folder is called."""
        return f"{self.suite}-{self.arch}"

    @property
    def machine(self) -> str:
        """Its processor, as wheels name it."""
        return MACHINES[self.arch]

    @property
    def is_emulated(self) -> bool:
        """Whether its programs run under qemu."""
        return self.machine != platform.machine()

    def root(self, folder: Path) -> Path:
        """Its root below a folder, made now if it is not there; `Unmade` if that fails."""
        root = folder / self.name
        folder.mkdir(parents=True, exist_ok=True)
        with changing(root):
            if not root.exists():
                self._make(root)
            made = root / ".packages"
            if not made.exists() or made.read_text().split() != list(self.packages):
                install(root, *self.packages)
                made.write_text(" ".join(self.packages))
        return root

    def _make(self, root: Path) -> None:
        debootstrap = shutil.which("debootstrap", path=f"{os.environ['PATH']}:/usr/sbin")
        if debootstrap is None:
            raise Unmade("debootstrap makes the roots: apt-get install debootstrap")
        partial = root.with_name(f"{root.name}.partial")
        shutil.rmtree(partial, ignore_errors=True)
        words = ["--variant=minbase", f"--arch={self.arch}", self.suite, str(partial)]
        # What it mounts is gone with its namespace, also if it is interrupted.
        done = quiet([*ALONE, "--mount-proc", debootstrap, *words], log_of(root))
        if done:
            raise Unmade(f"debootstrap of {self.name} has failed: {done}")
        partial.rename(root)


@contextmanager
def changing(root: Path) -> Generator[None]:
    """Nobody else makes or changes a root meanwhile: rows may be tried by several at once."""
    with root.with_name(f"{root.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def install(root: Path, *packages: str) -> None:
    """Install packages of Debian in a root; `Unmade` if that fails."""
    # The mirror may be a snapshot of an older day; what it has is still signed.
    apt = ["apt-get", "-qq", "-o", "APT::Sandbox::User=root", "-o", "Acquire::Check-Valid-Until=no"]
    variables = ["DEBIAN_FRONTEND=noninteractive", "LC_ALL=C", "PATH=/usr/sbin:/usr/bin:/sbin:/bin"]
    # Services have no business in a root, and some packages want /proc.
    mounts = f'mount -t proc proc "{root}/proc" && exec chroot "{root}" env -i "$@"'
    alone = [*ALONE, "sh", "-c", mounts, "sh"]
    for words in (["update"], ["install", "-y", "--no-install-recommends", *packages]):
        done = quiet([*alone, *variables, *apt, *words], log_of(root))
        if done:
            raise Unmade(f"apt-get {words[0]} in {root.name} has failed: {done}")


def log_of(root: Path) -> Path:
    """What the making of a root has printed."""
    return root.with_name(f"{root.name}.log")


def quiet(words: list[str], log: Path) -> str:
    """Run a program that prints into a file; the end of that if it fails, otherwise nothing."""
    with log.open("a") as file:
        done = subprocess.run(
            words, stdout=file, stderr=file, stdin=subprocess.DEVNULL, check=False
        )
    if done.returncode == 0:
        return ""
    last = log.read_text(errors="replace").strip().splitlines()[-3:]
    return f"{' / '.join(last)} (all of it is in {log})"


@contextmanager
def emulation() -> Generator[None]:
    """The kernel starts qemu for programs of aarch64; `Unmade` if it cannot be told to.

    What was registered here is taken back in the end.
    """
    if platform.machine() == "aarch64":
        yield
        return
    mounted = not (BINFMT / "register").exists()
    if mounted:
        done = subprocess.run(["mount", "-t", "binfmt_misc", "none", BINFMT], check=False)
        if done.returncode:
            raise Unmade("the kernel has no binfmt_misc, by which it would start qemu")
    registered = False
    try:
        if not any(_is_aarch64(it) for it in BINFMT.iterdir()):
            if not Path(QEMU).exists():
                raise Unmade(f"{QEMU} runs aarch64: apt-get install qemu-user-static")
            # F: the file is opened now, so a root needs no copy of it.
            (BINFMT / "register").write_text(f":{OURS}:M::{MAGIC}:{MASK}:{QEMU}:F")
            registered = True
        yield
    finally:
        if registered:
            (BINFMT / OURS).write_text("-1")
        if mounted:
            subprocess.run(["umount", BINFMT], check=False)


def _is_aarch64(entry: Path) -> bool:
    """Whether an entry of binfmt_misc serves roots without a qemu of their own."""
    if entry.name in ("register", "status"):
        return False
    said = entry.read_text()
    flags = next((it for it in said.splitlines() if it.startswith("flags:")), "")
    return "enabled" in said and "qemu-aarch64" in said and "F" in flags.removeprefix("flags:")


OF_SID = ("python3.13", "python3.14", "python3.15")
BULLSEYE = System("bullseye", "Debian 11", 11, "amd64", ("python3",))
# What the interpreters of `make built-pythons` need: musl's loader, and what Tk draws by.
OF_BOOKWORM = ("python3", "musl", "libxft2", "libxss1")
BOOKWORM = System("bookworm", "Debian 12", 12, "amd64", OF_BOOKWORM)
TRIXIE = System("trixie", "Debian 13", 13, "amd64", ("python3",))
SID = System("sid", "Debian sid", 99, "amd64", OF_SID)
BOOKWORM_ARM = System("bookworm", "Debian 12", 12, "arm64", ("python3",))
TRIXIE_ARM = System("trixie", "Debian 13", 13, "arm64", ("python3",))
SID_ARM = System("sid", "Debian sid", 99, "arm64", OF_SID)
