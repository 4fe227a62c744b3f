"""Standard streams that are closed, full, or read by nobody: they change what is said, and no more.

Every start of a program under `ungil run` imports this module, so it imports nothing that takes
long.
"""

from __future__ import annotations

import io
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TextIO


def occupy_closed() -> None:
    """See that the numbers 0, 1 and 2 are taken, so that no file of ungil's own is one of them.

    A program that is started finds closed what was closed. Here a closed stdout refuses what is
    printed, as a full one does. What is printed to a closed stderr goes nowhere: nobody can be told
    of it.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            # The first end is the lowest number that is free. Writing to it fails as before.
            os.close(os.pipe()[1])
        if getattr(sys, name) is None:
            setattr(sys, name, _refusing() if number == 1 else io.StringIO())


def _refusing() -> TextIO:
    """A stdout that keeps what is printed, and cannot write it. Without one, Python is silent."""
    return open(1, "w", encoding="utf-8", errors="replace", closefd=False)


def speak_any_language() -> None:
    """See that what stdout cannot encode is printed as an escape, and fails nothing."""
    # What stands in for it in a test may have no such method.
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if not _is_utf8() and reconfigure is not None:
        reconfigure(errors="backslashreplace")


def print_json(text: str) -> None:
    """Print JSON: with escapes where stdout is not UTF-8, as JSON has to be."""
    if not _is_utf8() and not text.isascii():
        import json  # not every start of a program needs it

        text = json.dumps(json.loads(text))
    print(text)


def _is_utf8() -> bool:
    return (sys.stdout.encoding or "utf-8").lower().replace("_", "-") in ("utf-8", "utf8")


def say(sentence: str) -> None:
    """Print a sentence of ungil's own on stderr, if it can be printed there."""
    try:
        # Three dots belong to what is said.
        ended = sentence if sentence.endswith("...") else sentence.removesuffix(".")
        print(f"ungil: {ended}", file=sys.stderr, flush=True)
    except OSError:
        _empty(2)


def fail(sentence: str, code: int) -> int:
    """Say what went wrong and return the exit code."""
    say(sentence)
    return code


def end_with_reader() -> None:
    """End quietly from now on when nobody reads on, as in `ungil report FILE | head`."""
    import signal  # not every start of a program needs it

    signal.signal(signal.SIGPIPE, signal.SIG_DFL)


def settle() -> OSError | None:
    """Write what is still to be written to stdout and stderr; why that was not possible, if so.

    What cannot be written is dropped, so that Python does not fail on it once more when it ends,
    and make 120 of an exit status.
    """
    problem = None
    for number, stream in ((1, sys.stdout), (2, sys.stderr)):
        try:
            stream.flush()
        except OSError as error:
            problem = problem or error
            _empty(number)
    return problem


def _empty(number: int) -> None:
    """Write what a stream has in its buffer to where there is always room, and forget it."""
    kept, nowhere = os.dup(number), os.memfd_create("ungil-nowhere")
    try:
        os.dup2(nowhere, number)
        (sys.stdout if number == 1 else sys.stderr).flush()
    except OSError:
        pass
    finally:
        os.dup2(kept, number)
        os.close(kept)
        os.close(nowhere)
