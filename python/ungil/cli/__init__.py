"""The command line: `ungil trace`, `ungil report`, `ungil run` and so on.

A command is a module of its name, or a folder where it has several files, whose `command.py` reads
the command line. What several commands share lies beside them; what the lab needs too, outside.

Exit codes: 0 fine, 1 the work failed, 2 wrong usage; `ungil trace` passes on the program's own,
and `ungil run` becomes the program.
A mistake of the user is one sentence on stderr, never a traceback.
"""

from __future__ import annotations

import sys

from ungil.cli.streams import fail, occupy_closed, say, settle
from ungil.errors import Error, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    occupy_closed()
    code = _run(words)
    problem = settle()
    if problem is None:
        return code
    if not isinstance(problem, BrokenPipeError):
        say(f"the output is incomplete: {str(problem.strerror).lower()}")
    return code or 1


def _run(words: list[str]) -> int:
    try:
        if words[:1] == ["run"]:
            from ungil.cli.run.launch import plain

            if launch := plain(words[1:]):
                launch.start()
        from ungil.cli.commands import invoke

        return invoke(words)
    except UsageError as error:
        return fail(str(error), 2)
    except ImportError as error:
        if error.name != "ungil._native":
            raise
        return fail(f"the native part of ungil cannot be loaded ({error}); reinstall ungil", 1)
    except (Error, OSError) as error:
        return fail(str(error), 1)
    except KeyboardInterrupt:
        print(file=sys.stderr)
        return 130
