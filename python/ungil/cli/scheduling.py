"""What the command line says about scheduling, and the environment that makes it so.

| option       | variable           | without both                     |
|--------------|--------------------|----------------------------------|
| `--policy`   | `UNGIL_POLICY`     | the command's default            |
| `--quantum`  | `UNGIL_QUANTUM`    | the policy's own                 |
| `--priority` | `UNGIL_PRIORITY`   | every thread has level normal    |
|              | `UNGIL_SLICE`      | some threads get a short slice   |

An option wins over the variable. The hook reads all but `UNGIL_PRIORITY` in the program; that one,
a `PATTERN=LEVEL` a line, the module in `ungil/startup` reads, which Python imports by itself.

Every start of a program under `ungil run` imports this module, so it imports nothing that takes
long: typing alone takes as long as the interpreter itself.
"""

from __future__ import annotations

import os

from ungil._native import LEVELS, POLICIES, unscheduled
from ungil.cli.streams import say
from ungil.environment import POLICY, PRIORITY, QUANTUM, SLICE, with_startup
from ungil.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ungil.cli.program import Program

# What UNGIL_SLICE can be: slices are left alone, or set even in a seccomp sandbox.
SLICES = ("own", "short")
LONGEST_QUANTUM_MS = 3_600_000
# Said of --priority under `stock`: CPython knows no levels.
NEEDS_A_POLICY = "--priority has no effect under CPython's own rules: add --policy priority"


class Scheduling:
    """The options of one command line, as they were written."""

    def __init__(
        self,
        policy: str | None = None,
        quantum: str | None = None,
        priorities: Sequence[str] = (),
    ) -> None:
        self.policy = policy
        self.quantum = quantum
        self.priorities = tuple(priorities)

    def variables(self, default: str) -> dict[str, str]:
        """The variables that a program needs besides the hook; `default` is the default policy.

        UsageError if an option or a variable makes no sense.
        """
        chosen = {POLICY: default}
        if self.policy is not None:
            chosen[POLICY] = known_policy("--policy", self.policy)
        elif os.environ.get(POLICY):
            chosen[POLICY] = known_policy(POLICY, os.environ[POLICY])
        if self.quantum is not None:
            chosen[QUANTUM] = f"{milliseconds('--quantum', self.quantum):.12g}"
        elif os.environ.get(QUANTUM):
            chosen[QUANTUM] = f"{milliseconds(QUANTUM, os.environ[QUANTUM]):.12g}"
        rules = [level_rule("--priority", rule) for rule in self.priorities] or [
            level_rule(PRIORITY, rule) for rule in os.environ.get(PRIORITY, "").splitlines() if rule
        ]
        if os.environ.get(SLICE):
            chosen[SLICE] = known_slice(os.environ[SLICE])
        # A variable may be there for the sake of another program.
        if self.priorities and chosen[POLICY] == "stock":
            raise UsageError(NEEDS_A_POLICY)
        if rules:
            chosen[PRIORITY] = "\n".join(rules)
            chosen["PYTHONPATH"] = with_startup("--priority")
        return chosen


def known_policy(source: str, name: str) -> str:
    """`name`; UsageError, which begins with `source`, if no policy has that name."""
    if name not in POLICIES:
        raise UsageError(
            f"{source}: {name!r} is not a policy; the policies are {', '.join(POLICIES)}"
        )
    return name


def known_slice(name: str) -> str:
    """`name`, which `UNGIL_SLICE` has; UsageError if it means nothing."""
    if name not in SLICES:
        raise UsageError(
            f"{SLICE} is {name!r}; set it to 'own' to leave every thread its own slice of the "
            "processor, to 'short' to shorten slices in a seccomp sandbox too, or unset it"
        )
    return name


def milliseconds(source: str, text: str) -> float:
    """The quantum that `text` writes; UsageError, which begins with `source`, if it is none."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number <= LONGEST_QUANTUM_MS:
        raise UsageError(
            f"{source}: {text!r} is not a number of milliseconds above 0 and at most 3,600,000 "
            "(one hour)"
        )
    return number


def level_rule(source: str, text: str) -> str:
    """`text`, which is PATTERN=LEVEL; UsageError, which begins with `source`, if it is not."""
    pattern, _, level = text.rpartition("=")
    if not pattern or level not in LEVELS or "\n" in text:
        raise UsageError(
            f"{source}: {text!r} is not PATTERN=LEVEL with one of the levels {', '.join(LEVELS)}, "
            "for example: 'worker-*=low'"
        )
    return text


def warn_if_unscheduled(program: Program) -> bool:
    """Say on stderr what speaks against scheduling `program`, if something does.

    Returns whether the hook can be loaded into it all the same: the programs that it starts may be
    ones that can be scheduled.
    """
    problem = unscheduled(program.executable)
    if problem is None:
        return True
    why, can_preload, surely = problem
    if surely:
        say(f"{why}; it runs unscheduled")
    elif not _asks_for_a_gil(program):
        say(why)
    return can_preload


def _asks_for_a_gil(program: Program) -> bool:
    """Whether a free-threaded Python will have its GIL on from the start."""
    return os.environ.get("PYTHON_GIL") == "1" or not {"-Xgil=1", "gil=1"}.isdisjoint(program.argv)
