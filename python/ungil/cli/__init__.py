"""The command line: `ungil trace`, `ungil report`, `ungil run` and so on.

A command is a module of its name, or a folder where it has several files, whose `command.py` reads
the command line. What several commands share lies beside them; what the lab needs too, outside.

Exit codes: 0 fine, 1 the work failed, 2 wrong usage; `ungil trace` passes on the program's own,
and `ungil run` becomes the program.
A mistake of the user is one sentence on stderr, never a traceback.
"""

from __future__ import annotations

import errno
import sys

from ungil.cli.streams import fail, occupy_closed, say, settle, speak_any_language
from ungil.errors import Error, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    occupy_closed()
    speak_any_language()
    failed = None
    try:
        code = _run(words)
    except OSError as error:
        code, failed = 1, error
    problem = settle()
    if problem is None and failed is not None and _is_nowhere(failed):
        return fail("the current folder was removed; change to another one", 2)
    if problem is None and failed is not None and not _is_of_output(failed):
        where = "" if failed.filename is None else f"{failed.filename!r}: "
        return fail(f"{where}{_why(failed)}", code)
    problem = problem or failed
    if problem is None:
        return code
    if not isinstance(problem, BrokenPipeError):
        say(f"the output is incomplete: {_why(problem)}")
    return code or 1


def _is_nowhere(error: OSError) -> bool:
    """Whether the current folder is gone, which is all that Python says of it."""
    if error.errno != errno.ENOENT or error.filename is not None:
        return False
    from pathlib import Path  # not every start of a program needs it

    try:
        Path.cwd()
    except FileNotFoundError:
        return True
    return False


def _is_of_output(error: OSError) -> bool:
    """Whether a stream has refused what was printed; of all that has no name, only they do so."""
    refusals = (errno.EBADF, errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
    return error.filename is None and error.errno in refusals


def _why(error: OSError) -> str:
    from ungil.formatting import reason  # not every start of a program needs it

    return reason(error)


def _run(words: list[str]) -> int:
    """The exit code. OSError for what no command expects."""
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
    except Error as error:
        return fail(str(error), 1)
    except KeyboardInterrupt:
        print(file=sys.stderr)
        return 130
