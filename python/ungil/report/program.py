"""Which program a process belongs to, as the native part tells it in sentences."""

from __future__ import annotations

from ungil.report.model import Process

_ROLES = {
    "from multiprocessing.spawn ": "worker",
    "from multiprocessing.forkserver ": "fork server",
    "from multiprocessing.resource_tracker ": "resource tracker",
}


def program(process: Process, processes: list[Process]) -> tuple[list[str], str | None]:
    """Return the command line of its program, and what the process is there for.

    The second is `None` unless multiprocessing started it: its own command line tells nothing then.
    """
    own, child = _role(process), process
    for _ in processes if own else ():
        started = child.get("started_s", 0.0)
        parents = (
            it
            for it in processes
            if it["pid"] == child.get("parent_pid") and it.get("started_s", 0.0) <= started
        )
        parent = next(parents, None)
        if parent is None:
            break
        role = _role(parent)
        if role is None:
            return parent["argv"], own
        if role == own:
            # It was forked, and has the command line of that server.
            own = "worker"
        child = parent
    return process["argv"], None


def _role(process: Process) -> str | None:
    """What multiprocessing started it for, by the code that it was given to run."""
    words = process["argv"]
    code = words[words.index("-c") + 1] if "-c" in words[:-1] else ""
    return next((role for begin, role in _ROLES.items() if code.startswith(begin)), None)
