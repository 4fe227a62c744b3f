"""`ungil trace --pid`: a process that runs is recorded for a while, and let go as it was."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

from ungil._native import Recorder
from ungil.cli import proc
from ungil.cli.attaching import in_turn, refusal, refuse_if_recorded, way_in
from ungil.cli.streams import say

ENDS_BY = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""What ends the recording, and not its process."""


def name_of(pid: int) -> str:
    """What process `pid` runs, for the name of a file: its script, its module, or its program."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[:-1]
    except OSError as error:
        raise refusal(pid, error, "recorded") from error
    program, *rest = [os.fsdecode(word) for word in words] or ["process"]
    if Path(program).name.startswith("python"):
        for word, after in zip(rest, [*rest[1:], ""], strict=True):
            if word == "-m" and after:
                return after
            if word.startswith("-c"):
                break
            if not word.startswith("-"):
                return Path(word).name
    return Path(program).name


def attach(recorder: Recorder, pid: int) -> str:
    """Have process `pid` join the recording; how. UsageError with a sentence if it cannot."""
    with in_turn(pid):
        refuse_if_recorded(pid, "ungil trace --pid")
        try:
            return way_in(recorder.attach(pid))
        except (OSError, RuntimeError) as error:
            raise refusal(pid, error, "recorded") from error


def await_end(pid: int, for_ns: int | None, told: int) -> None:
    """Wait until the time is over, process `pid` has ended, or `told` can be read."""
    try:
        life = proc.life_of(pid)
    except ProcessLookupError:
        return
    try:
        timeout_s = None if for_ns is None else for_ns / 1e9
        select.select([life, told], [], [], timeout_s)
    finally:
        os.close(life)


def announce(pid: int, for_ns: int | None, way: str) -> None:
    """Say what is going on, and which way in was taken."""
    until = "until Ctrl-C or its end" if for_ns is None else f"for {for_ns / 1e9:g} s"
    say(f"recording process {pid} ({name_of(pid)}) {until}; attached {way}")


@contextmanager
def told_by_signals() -> Generator[int]:
    """A descriptor that becomes readable when one of `ENDS_BY` has come."""
    readable, writable = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)

    def tell(_signal: int, _frame: FrameType | None) -> None:
        with suppress(OSError):
            os.write(writable, b"!")

    before = {number: signal.signal(number, tell) for number in ENDS_BY}
    try:
        yield readable
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(readable)
        os.close(writable)
