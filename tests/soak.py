"""Random churn under a policy, watched from outside: every thread that lives must go on.

    python tests/soak.py [--seconds N] [--seed TEXT] [--policy NAME] [--python PATH]

Runs programs/churn.py again and again until the time is over. It fails if a thread does nothing
for --patience seconds, if a program does not end as it was to end, or if one that ended normally
left its page behind. On a hang it prints what all threads are doing. `--policy changing` also
changes policies all the time; `--policy bare` is CPython alone, to see whose fault something is.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import scheduling
from pythons import path_of

CHURN = scheduling.PROGRAMS / "churn.py"
POLICIES = ["bare", "stock", *scheduling.POLICIES, "changing"]
LOOK_EVERY_S = 0.05
# How long one churning program lasts, before its end and the processes it becomes by exec.
EACH_S = 8


@dataclass
class Watch:
    """When each thread was last seen to have gone on."""

    folder: Path
    patience_s: float
    seen: dict[tuple[str, int, int], tuple[int, float]] = field(
        default_factory=dict[tuple[str, int, int], tuple[int, float]]
    )
    longest_s: float = 0.0
    left: list[Path] = field(default_factory=list[Path])
    """Pages of processes that have ended."""
    ending: dict[str, float] = field(default_factory=dict[str, float])

    def look(self) -> str | None:
        """Who has not gone on for too long, if anybody has."""
        now = time.monotonic()
        current: dict[tuple[str, int, int], tuple[int, float]] = {}
        for path, process in self._processes().items():
            end, _, *slots = struct.unpack(f"<{len(process) // 8}Q", process)
            if end:
                if now - self.ending.setdefault(path.name, now) > self.patience_s:
                    return f"{path.name} does not end"
                continue
            for slot, (tid, count) in enumerate(zip(slots[::2], slots[1::2], strict=True)):
                if not tid:
                    continue
                before, since = self.seen.get((path.name, slot, tid), (0, now))
                if before != count:
                    self.longest_s = max(self.longest_s, now - since)
                    since = now
                elif now - since > self.patience_s:
                    return f"thread {tid} of {path.name} does not go on"
                current[path.name, slot, tid] = (count, since)
        self.seen = current
        return None

    def _processes(self) -> dict[Path, bytes]:
        """The beats of the processes that live, of each one's present image."""
        images: dict[int, tuple[int, Path]] = {}
        for path in self.folder.glob("*.beats"):
            pid, generation = (int(part) for part in path.name.split(".")[:2])
            if not _lives(pid):
                path.unlink()
                self.left += [page] if (page := scheduling.page_of(pid)).exists() else []
                continue
            images[pid] = max(images.get(pid, (-1, path)), (generation, path))
        found = ((path, path.read_bytes()) for _, path in images.values())
        # A file that is still empty belongs to a process that is about to fill it.
        return {path: beats for path, beats in found if beats}


def _lives(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


def members(session: int) -> Iterator[Path]:
    """The processes of a session that live, by their folders in /proc."""
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(ProcessLookupError):
            if os.getsid(int(folder.name)) == session and _lives(int(folder.name)):
                yield folder


def dump(session: int) -> None:
    """Print what all threads of all processes of a session are doing."""
    for folder in members(session):
        try:
            command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            print(f"== {folder.name}: {command}", flush=True)
            for task in sorted((folder / "task").iterdir()):
                for name in ("syscall", "wchan", "stack"):
                    try:
                        print(task.name, name, (task / name).read_text().strip())
                    except OSError as error:
                        print(task.name, name, error)
                status = (task / "status").read_text().splitlines()
                wanted = ("State", "SigPnd", "ShdPnd", "voluntary", "nonvoluntary")
                print(task.name, [line for line in status if line.startswith(wanted)], flush=True)
        except (ProcessLookupError, FileNotFoundError):
            continue
        for tool in (
            ["py-spy", "dump", "--native", "--nonblocking", "--pid", folder.name],
            ["gdb", "-batch", "-p", folder.name, "-ex", "thread apply all backtrace 12"],
        ):
            if shutil.which(tool[0]):
                subprocess.run(tool, stderr=subprocess.DEVNULL, check=False)


def churn(options: argparse.Namespace, seed: str, seconds: float, totals: Counter[str]) -> float:
    """Run one program under watch; returns the longest time in which a thread did not go on."""
    environment = dict(os.environ)
    if options.policy != "bare":
        first = "interactive" if options.policy == "changing" else options.policy
        environment = scheduling.environment(first)
    environment["UNGIL_SOAK_CHANGES"] = str(int(options.policy == "changing"))
    with tempfile.TemporaryDirectory(prefix="ungil-soak-") as name:
        folder = Path(name)
        process = subprocess.Popen(
            [options.python, CHURN, str(seconds), seed, name],
            env=environment,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        watch = Watch(folder, options.patience)
        try:
            # Whatever it started ends by itself too.
            while process.poll() is None or any(members(process.pid)):
                if hung := watch.look():
                    print(f"HANG with seed {seed!r}: {hung}", flush=True)
                    dump(process.pid)
                    sys.exit(1)
                time.sleep(LOOK_EVERY_S)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        watch.look()
        counts = folder / "counts"
        lines = counts.read_text().splitlines() if counts.exists() else []
    ways = [Counter[str](json.loads(line)) for line in lines]
    for way in ways:
        totals.update(way)
    expected = {"return": 0, "exit": 3, "_exit": 4, "raise": 1}
    status = next((code for way, code in expected.items() if ways and ways[-1][way]), None)
    if process.returncode != status:
        sys.exit(f"seed {seed!r}: ended with {process.returncode}, not with {status}")
    if watch.left:
        sys.exit(f"seed {seed!r}: left {', '.join(map(str, watch.left))}")
    return watch.longest_s


def main() -> None:
    """Churn until the time is over."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--policy", choices=POLICIES, default="interactive")
    parser.add_argument(
        "--python", type=path_of, default=sys.executable, help="a path, a command, or 3.13"
    )
    parser.add_argument("--patience", type=float, default=30, help="seconds without progress")
    options = parser.parse_args()
    until = time.monotonic() + options.seconds
    totals: Counter[str] = Counter()
    longest, programs = 0.0, 0
    while (left := until - time.monotonic()) > 0:
        seed = f"{options.seed}.{programs}"
        longest = max(longest, churn(options, seed, min(EACH_S, left), totals))
        programs += 1
    happened = ", ".join(f"{count} {what}" for what, count in sorted(totals.items()))
    print(f"{options.policy}: {programs} programs, no hang; {happened}")
    print(f"{options.policy}: longest time in which a thread did not go on: {longest:.2f} s")


if __name__ == "__main__":
    main()
