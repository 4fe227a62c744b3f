"""How `ungil run` becomes the program that it runs.

The process id stays, and with it who waits for whom; the exit status, signals and the terminal
are the program's own, and nothing of ungil is left but the hook.

A wrapper of a service must not be what keeps it from starting: a program that cannot be scheduled
runs unscheduled, with one sentence on stderr. Wrong options are another matter.

This stands between a shell and its program, so plain command lines are read here, which takes a
fraction of the time that click takes to be imported. `plain` gives way to click wherever it is
not sure, and so never says anything itself.
"""

from __future__ import annotations

import os
from contextlib import suppress

from ungil._native import mark_path, preload_value, remove_stale_pages, restore_signals
from ungil.cli.program import find_program
from ungil.cli.scheduling import Scheduling, warn_if_unscheduled
from ungil.cli.streams import say, settle
from ungil.environment import CHILDREN, PRELOAD, RUN, STANDBY
from ungil.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ungil.cli.program import Program

DEFAULT_POLICY = "interactive"


class Launch:
    """What a command line of `ungil run` asks for."""

    def __init__(
        self,
        scheduling: Scheduling,
        words: Sequence[str],
        *,
        children: bool,
        green: bool = False,
        standby: bool = False,
    ) -> None:
        self.scheduling = scheduling
        self.words = list(words)
        self.children = children
        self.green = green
        self.standby = standby

    def variables(self, *, written: bool = False) -> dict[str, str]:
        """The variables that schedule a program; UsageError, or what `preload_value` raises.

        If they are to be `written` somewhere, no value has to be quoted for its own sake.
        Of a green program, those that make it so; of one in standby, those that load the hook.
        """
        if self.green:
            from ungil.cli.run.green import variables

            return variables(self.scheduling)
        variables = {STANDBY: "1"} if self.standby else self.scheduling.variables(DEFAULT_POLICY)
        if not self.children:
            variables[CHILDREN] = "0"
        return {PRELOAD: preload_value(os.environ.get(PRELOAD), written=written), **variables}

    def start(self) -> None:
        """Become the program. Returns by UsageError only."""
        program = find_program(self.words, "run")
        if self.green:
            from ungil.cli.run.green import check

            environment = {**os.environ, **self.variables()}
            check(program)
            become(program, environment)
        remove_stale_pages()
        become(program, {**os.environ, **self._variables_for(program)})

    def _variables_for(self, program: Program) -> dict[str, str]:
        """What can be done for this program, with a sentence on stderr if it is not all."""
        try:
            variables = self.variables()
        except (OSError, ValueError) as error:
            say(f"{error}; the program runs unscheduled")
            return {}
        # By this variable the hook knows the program itself, which says in the end if no GIL was
        # scheduled; without /proc it is not said. Nothing is to be scheduled in standby.
        if not self.standby:
            with suppress(OSError):
                variables[RUN] = mark_path()
        return variables if warn_if_unscheduled(program) else {}


def plain(words: Sequence[str]) -> Launch | None:
    """What `words`, all that follows `run`, ask for; None if click has to look at them."""
    values: dict[str, list[str]] = {"--policy": [], "--quantum": [], "--priority": []}
    children, green = True, False
    rest = list(words)
    while rest and rest[0].startswith("-") and rest[0][:2] not in ("-m", "-c"):
        word = rest.pop(0)
        if word == "--":
            break
        name, has_value, value = word.partition("=")
        if word == "--no-children":
            children = False
        elif word == "--green":
            green = True
        elif name not in values or not (has_value or rest):
            return None
        else:
            values[name].append(value if has_value else rest.pop(0))
    # Of an option that is given twice the last one counts.
    policy, quantum = ((values[name] or [None])[-1] for name in ("--policy", "--quantum"))
    scheduling = Scheduling(policy, quantum, values["--priority"])
    return Launch(scheduling, rest, children=children, green=green)


def become(program: Program, environment: dict[str, str]) -> None:
    """Replace this process by `program`; UsageError if the system refuses."""
    restore_signals()
    settle()
    try:
        os.execve(program.executable, program.argv, environment)
    except OSError as error:
        from ungil.formatting import reason

        raise UsageError(f"cannot start {program.argv[0]!r}: {reason(error)}") from error
