"""`ungil trace --last`: what is kept, when it is written, and what is said of it."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread
from types import FrameType
from typing import Any, TypeVar

import click

from ungil._native import Recorder, Snapshots, block_all_signals
from ungil.cli.streams import say
from ungil.durations import parse_duration
from ungil.errors import UsageError
from ungil.formatting import plural
from ungil.recorder import Flight
from ungil.snapshots import sentence, written

F = TypeVar("F", bound=Callable[..., Any])

MAX_FILES = 10
A_CONDITION = re.compile(r"\s*(wait|hold)\s*>\s*(\S.*)")
# The end of the recording ends the pause.
PAUSE_S = 60.0


def flight_options(function: F) -> F:
    """The options `last`, `conditions` and `max_files`, as `new_flight` takes them."""
    options = (
        click.option(
            "--last",
            metavar="TIME",
            help="Flight recorder: keep only the last 30s or 5min in memory, and write a snapshot "
            "when you ask.",
        ),
        click.option(
            "--on",
            "conditions",
            metavar="CONDITION",
            multiple=True,
            help="With --last: also write a snapshot after a wait ('wait>50ms') or a hold "
            "('hold>100ms') that is longer.",
        ),
        click.option(
            "--max-files",
            metavar="N",
            help=f"Keep the newest N snapshots of this run [default: {MAX_FILES}].",
        ),
    )
    for option in reversed(options):
        function = option(function)
    return function


def new_flight(
    last: str | None, conditions: tuple[str, ...], max_files: str | None
) -> Flight | None:
    """What these options mean; None: record it all. UsageError says what is wrong with them."""
    if last is None:
        for option, value in (("--on", conditions), ("--max-files", max_files)):
            if value:
                raise UsageError(f"{option} needs --last, which says how much to keep")
        return None
    return Flight(
        last_s=parse_duration(last, "--last") / 1e9,
        conditions=tuple(_condition(it) for it in conditions),
        max_files=MAX_FILES if max_files is None else _files(max_files),
    )


def _condition(text: str) -> tuple[str, float]:
    """What is limited, and to how many milliseconds."""
    match = A_CONDITION.fullmatch(text)
    if match is None:
        raise UsageError(f"--on {text!r} is not a condition such as 'wait>50ms' or 'hold>100ms'")
    return match[1], parse_duration(match[2], f"--on {text!r}") / 1e6


def _files(text: str) -> int:
    if not re.fullmatch("[0-9]{1,9}", text) or int(text) == 0:
        raise UsageError(f"--max-files {text!r} is not a number of files above zero")
    return int(text)


@dataclass
class Said:
    """What was said of snapshots."""

    paths: list[str] = field(default_factory=list[str])
    """Where each was written, the oldest first."""
    failed: int = 0
    """How many could not be written."""

    def sentence(self) -> str:
        """How many there were, and how many of them are still there."""
        if not self.paths and self.failed:
            return f"no snapshot was written: {plural(self.failed, 'attempt')} failed"
        if not self.paths:
            return "no snapshot was written: no condition was met, and nobody asked for one"
        are_there = [Path(it).exists() for it in self.paths]
        left = sum(are_there)
        kept = ""
        if left < len(are_there):
            # One that was asked for under a name of its own outlives later ones.
            are_newest = all(are_there[len(are_there) - left :])
            kept = f", {'the newest ' if are_newest and left else ''}{left} kept"
        return f"{plural(len(are_there), 'snapshot')} written{kept}; ungil report FILE reads one"


@contextmanager
def snapshots_told(recorder: Recorder, *, quiet: bool, on_signal: bool) -> Generator[None]:
    """Say a line for each snapshot that is written inside, and at the end how many there were.

    Inside, the recorder has to be stopped. `on_signal`: SIGUSR2 to this process asks for one.
    """
    over, said = Event(), Said()
    snapshots = recorder.snapshots()
    if on_signal:

        def ask(_signal: int, _frame: FrameType | None) -> None:
            snapshots.ask()

        signal.signal(signal.SIGUSR2, ask)
    thread = Thread(target=_tell, args=(snapshots, over, said, quiet), daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
    if not quiet:
        say(said.sentence())


def _tell(snapshots: Snapshots, over: Event, said: Said, quiet: bool) -> None:
    # What comes is for the thread that stands between the program and whoever started it.
    block_all_signals()
    while True:
        text = snapshots.next(PAUSE_S)
        if text is not None:
            snapshot = written(text)
            if snapshot["path"] is not None:
                said.paths.append(snapshot["path"])
            else:
                said.failed += 1
            if not quiet or snapshot["path"] is None:
                say(sentence(snapshot))
        elif over.is_set():
            return
