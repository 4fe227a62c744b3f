"""Schedules a process whose environment asks for it, without `ungil run`.

    UNGIL_POLICY=interactive python app.py

For services that can set a variable but not change their command line. `ungil_policy.pth`, in the
`site-packages` that ungil is installed in, imports this if the variable is set and the hook was
not preloaded.
"""

import os
import sys

# `ungil.gil` would bring dataclasses, which cost more than all the rest.
from ungil import _native
from ungil.environment import CHILDREN, POLICY, PREFIX, PRIORITY, QUANTUM
from ungil.startup import ungil_thread_levels


def obey() -> None:
    """Do what UNGIL_POLICY, UNGIL_QUANTUM, UNGIL_PRIORITY and UNGIL_CHILDREN say.

    What cannot be done is one sentence on stderr, and the program runs unscheduled.
    """
    try:
        _obey(os.environ[POLICY], os.environ.get(QUANTUM))
    except (ValueError, RuntimeError) as error:
        sys.stderr.write(f"ungil: {POLICY} is ignored: {error}\n")


def _obey(name: str, quantum: str | None) -> None:
    quantum_ms = None if quantum is None else _milliseconds(quantum)
    # The first time to find out what is wrong with the variables before anything is installed.
    _native.gil_set_policy(name, quantum_ms)
    _native.gil_install()
    _native.gil_set_policy(name, quantum_ms)
    if rules := os.environ.get(PRIORITY):
        ungil_thread_levels.obey(rules, _native.hook_path())
    if os.environ.get(CHILDREN) == "0":
        for variable in [it for it in os.environ if it.startswith(PREFIX)]:
            del os.environ[variable]


def _is_ungil_itself() -> bool:
    """Whether this is `ungil ...` or `python -m ungil ...`: it passes the variables on."""
    return sys.orig_argv[1:3] == ["-m", "ungil"] or any(
        os.path.basename(word) == "ungil" for word in sys.orig_argv[1:2]
    )


def _milliseconds(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{QUANTUM} is a number of milliseconds, not {text!r}") from None


# Once, although `site` reads the .pth files of a virtual environment twice.
if os.environ.get(POLICY) and not _is_ungil_itself():
    obey()
