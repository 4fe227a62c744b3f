"""The environment variables of ungil: what a program's environment says that ungil is to do in it.

| variable         | what it says                                             | who obeys it       |
|------------------|----------------------------------------------------------|--------------------|
| `UNGIL_POLICY`   | the policy                                               | the hook, start-up |
| `UNGIL_QUANTUM`  | the policy's quantum, in milliseconds                    | the hook, start-up |
| `UNGIL_PRIORITY` | levels of threads by their names, a PATTERN=LEVEL a line | start-up           |
| `UNGIL_GREEN`    | threads are to be green threads                          | start-up           |
| `UNGIL_SLICE`    | which slices of the processor threads get                | the hook           |
| `UNGIL_CHILDREN` | `0`: programs that it starts are left alone              | the hook, start-up |
| `UNGIL_STANDBY`  | `1`: the hook is loaded, and waits until it is asked for | the hook           |
| `UNGIL_RUN`      | the file in which it is noted that a GIL is scheduled    | the hook           |
| `UNGIL_SESSION`  | the folder of the recording that it is part of           | the hook           |
| `UNGIL_CLOCK`    | the clock that times are taken from                      | `ungil trace`      |
| `UNGIL_GORNIR`   | the program of gornir that is to be measured             | `ungil lab`        |

Start-up is what runs in `startup/` before the program.
What a recorder needs besides (the session, too), `Recorder.environment` sets and the hook reads.

The hook and what runs on other Pythons (`startup/sitecustomize.py` and what it imports) cannot
import this: they have the same names once more, which a test compares.

Every start of a program under `ungil run` imports this module, so it imports nothing that takes
long.
"""

from __future__ import annotations

import os

from ungil.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

PREFIX = "UNGIL_"
"""What the names of all of them begin with."""
POLICY = "UNGIL_POLICY"
QUANTUM = "UNGIL_QUANTUM"
PRIORITY = "UNGIL_PRIORITY"
GREEN = "UNGIL_GREEN"
SLICE = "UNGIL_SLICE"
CHILDREN = "UNGIL_CHILDREN"
STANDBY = "UNGIL_STANDBY"
RUN = "UNGIL_RUN"
SESSION = "UNGIL_SESSION"
CLOCK = "UNGIL_CLOCK"
GORNIR = "UNGIL_GORNIR"

PRELOAD = "LD_PRELOAD"
"""What the dynamic loader loads before anything else: the hook, and what others have there."""

STARTUP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "startup")
"""The folder of the modules that an interpreter imports while it starts, if PYTHONPATH names it."""


def with_startup(option: str) -> str:
    """PYTHONPATH with `STARTUP`, which `option` needs, in front.

    UsageError, which begins with `option`, if PYTHONPATH cannot name that folder.
    """
    if os.pathsep in STARTUP:
        raise UsageError(f"{option}: PYTHONPATH cannot name {STARTUP!r}, which has a colon")
    path = os.environ.get("PYTHONPATH", "")
    others = [folder for folder in path.split(os.pathsep) if folder != STARTUP] if path else []
    return os.pathsep.join([STARTUP, *others])


def about_the_hook(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables of `environment` that concern the hook; others may be any bytes."""
    return {
        name: value
        for name, value in environment.items()
        if name == PRELOAD or name.startswith(PREFIX)
    }
