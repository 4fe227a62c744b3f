"""What `ungil run --green` puts into the environment of a program.

`ungil/startup/ungil_green.py` does the work, inside of the program's interpreter.
"""

from __future__ import annotations

import sys

from ungil.environment import GREEN, with_startup
from ungil.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ungil.cli.program import Program
    from ungil.cli.scheduling import Scheduling


def variables(scheduling: Scheduling) -> dict[str, str]:
    """The variables that make a program green; UsageError if it was also to be scheduled."""
    for option, value in (
        ("--policy", scheduling.policy),
        ("--quantum", scheduling.quantum),
        ("--priority", scheduling.priorities),
    ):
        if value:
            raise UsageError(
                f"green threads share one real thread and wait for no GIL, so there is nothing "
                f"to schedule: leave out {option} or --green"
            )
    return {GREEN: "1", "PYTHONPATH": with_startup("--green")}


def check(program: Program) -> None:
    """UsageError if `program` is for this Python and gevent is missing.

    Other interpreters say so themselves when they start.
    """
    from importlib.util import find_spec

    if program.executable == sys.executable and find_spec("gevent") is None:
        raise UsageError('--green needs gevent: pip install "ungil[green]"')
