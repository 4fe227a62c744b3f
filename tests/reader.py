"""What the reader of a document brings along: a program, hosts, and what she does to them.

README speaks of `app.py`, `hosts.txt` and process 4711. `tests/stranger.py` has them from here.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import urllib.request
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from platforms.room import Room

Entry = TypeVar("Entry")

# In the order of docs/index.md.
TUTORIALS = ("convoy", "event-loop", "production", "cache", "devices")
SERVED = "http://127.0.0.1:8000/"
ANSWERS = 50

FILES = {
    "app.py": '''\
"""A web application; run as a program, it answers beside threads that compute."""

import threading


def app(environ, start_response):
    """Adds some numbers, and says what came out."""
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [str(sum(range(100_000))).encode()]


def compute(over):
    """What a thread does beside the answers, again and again."""
    while not over.wait(0.001):
        sum(range(100_000))


def resize():
    """A long computation that keeps the GIL."""
    return sum(range(20_000_000))


def main():
    """Answers once."""
    over = threading.Event()
    for name in ("worker-1", "worker-2", "report-1"):
        threading.Thread(target=compute, args=(over,), name=name).start()
    resize()
    print(*app({}, lambda *_: None))
    over.set()


if __name__ == "__main__":
    main()
''',
    "backups.py": '''\
"""What she does to each of her hosts."""


def save(host):
    """The name of the file in which it is kept."""
    return f"{host}.conf"
''',
    "hosts.txt": "router1.example\nrouter2.example\nrouter3.example\n",
}

# What she types before she opens the first document.
FIRST = ("python3 -m venv .venv", ". .venv/bin/activate")

# What she does before a command, because it is about things of her own, by how that begins.
AHEAD = {
    "ungil trace gunicorn": ("pip install --quiet gunicorn",),
    "ungil diff before.pftrace after.pftrace  #": (
        "ungil trace -q -o before.pftrace app.py",
        "ungil trace -q -o after.pftrace app.py",
    ),
    "ungil trace --pid 4711": ("rm before.pftrace after.pftrace",),
}

# What a machine with a wheel does not have, by how a command begins.
LACKING = {
    "make ": "it builds from the sources, with Rust; she has the wheel",
    "pip install .": "it builds from the sources, with Rust; she has the wheel",
    "ungil fanout --hosts hosts.txt -- ssh": "her hosts are no machines that answer SSH",
}


def beginning(typed: str, table: Mapping[str, Entry]) -> Entry | None:
    """The entry of a table for a command: that of the longest words which it begins with."""
    found = [begin for begin in table if typed.startswith(begin)]
    return table[max(found, key=len)] if found else None


def reason(typed: str) -> str:
    """Why a command is not typed; empty if it is."""
    return beginning(typed, LACKING) or ""


def ahead(typed: str) -> tuple[str, ...]:
    """What she types before a command."""
    return beginning(typed, AHEAD) or ()


@contextmanager
def meanwhile(typed: str, shell: int, room: Room) -> Generator[None]:
    """What goes on beside a command: somebody visits a server and stops it, a service runs."""
    over = threading.Event()
    visitor = threading.Thread(target=visit_and_stop, args=(shell, over, ask, b"\0trace\0"))
    if typed.startswith("ungil trace gunicorn"):
        visitor.start()
    if typed.startswith("ungil trace --pid 4711"):
        start_service(shell, room)
    yield
    over.set()
    if visitor.ident is not None:
        visitor.join()


def visit_and_stop(
    shell: int, over: threading.Event, ask: Callable[[], None], command: bytes
) -> None:
    """Ask a server for its page some times, then press Ctrl-C in what the shell runs.

    `ask` raises OSError while the server does not answer; `command` is a part of its command line.
    A server that has ended by itself, `over`, needs neither.
    """
    answers = 0
    while answers < ANSWERS and not over.is_set():
        try:
            ask()
            answers += 1
        except OSError:
            over.wait(0.05)
    for pid in below(shell):
        with suppress(OSError):
            if command in Path(f"/proc/{pid}/cmdline").read_bytes():
                os.kill(pid, signal.SIGINT)
                return


def ask() -> None:
    """Ask her server, where it is by itself."""
    urllib.request.urlopen(SERVED, timeout=10).close()


def below(pid: int) -> Iterator[int]:
    """All processes that a process has started, and those that they have, the oldest first."""
    with suppress(OSError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            for child in (thread / "children").read_text().split():
                yield int(child)
                yield from below(int(child))


def start_service(shell: int, room: Room) -> None:
    """Start a late loop as process 4711 beside a shell, as her user."""
    first = next(below(shell))
    enter = ["nsenter", f"--target={first}", "--mount", "--pid", "--ipc"]
    home = room.environment["HOME"]
    python = f"{home}/.venv/bin/python"
    late = ["env", f"--chdir={home}", python, "examples/late_loop.py", "--seconds", "600"]
    # The next process there gets the number after this one (proc_sys_kernel(5)).
    script = 'echo 4710 > "$0/proc/sys/kernel/ns_last_pid"; "$@" >/dev/null 2>&1 & sleep 0'
    subprocess.run([*enter, "sh", "-c", script, room.root, *room.inside(*late)], check=True)
