"""What `ungil fanout` prints of outcomes as they come: tagged lines or JSON; and how many of which.

The answer of a host goes to stdout: what the command has printed there, or what the function has
returned. All else goes to stderr: what commands say there, failures, the summary. What is gathered
until the end is in `gathered.py`, the table in `table.py`.
"""

from __future__ import annotations

import json
import math
import sys
from typing import TYPE_CHECKING, Any, Protocol, TextIO, TypeGuard, cast

from ungil.cli.fanout.hosts import Host, NoHost
from ungil.cli.fanout.template import CommandError, Unfinished
from ungil.fanout import CutOff, Stopped
from ungil.fanout.frontend import failure, sentence
from ungil.formatting import plural, printable

if TYPE_CHECKING:
    from ungil.fanout import Outcome

_KINDS = 3

NAMES = 3
"""How many hosts are named where many are counted."""


class Printer(Protocol):
    """Prints outcomes."""

    def add(self, outcome: Outcome) -> None:
        """One more has come."""
        ...

    def end(self, summary: str) -> None:
        """That were all."""
        ...


class Tally:
    """How many hosts ended in which way."""

    def __init__(self) -> None:
        self.ok = 0
        self.resumed = 0
        self.retried = 0
        self.not_run = 0
        """Waited to be tried again when everything was stopped."""
        self.not_started = 0
        """Had been read, and had not begun."""
        self.first_not_started: list[str] = []
        self.cut = 0
        """Were cancelled while they ran."""
        self.abandoned = 0
        self.came = 0
        self.failures: dict[str, int] = {}

    @property
    def failed(self) -> int:
        """How many failed."""
        return sum(self.failures.values())

    @property
    def finished(self) -> int:
        """How many ended by themselves."""
        return self.ok + self.failed

    def add(self, outcome: Outcome) -> None:
        """One more has come."""
        error = outcome.exception
        self.came += 1
        self.retried += outcome.attempts > 1
        self.abandoned += outcome.abandoned
        if error is None:
            self.ok += 1
            self.resumed += outcome.resumed
        elif isinstance(error, CutOff):
            self.cut += 1
        elif has_not_started(outcome):
            self.not_started += 1
            if self.not_started <= NAMES:
                self.first_not_started.append(outcome.item.name)
        elif isinstance(error, Stopped):
            self.not_run += 1
        else:
            name = failure(error)
            self.failures[name] = self.failures.get(name, 0) + 1

    def __str__(self) -> str:
        parts = [f"{self.ok:,} ok{f' ({self.resumed:,} of them before)' if self.resumed else ''}"]
        if self.failed:
            by_count = sorted(self.failures.items(), key=lambda entry: (-entry[1], entry[0]))
            kinds = [f"{count:,} {name}" for name, count in by_count[:_KINDS]]
            if others := sum(count for _, count in by_count[_KINDS:]):
                kinds.append(f"{others:,} in other ways")
            parts.append(f"{self.failed:,} failed ({', '.join(kinds)})")
        if self.retried:
            parts.append(f"{self.retried:,} tried more than once")
        if self.abandoned:
            parts.append(f"{plural(self.abandoned, 'thread')} abandoned")
        return ", ".join(parts)


class JsonLines:
    """An object in a line on stdout for each, as it comes."""

    def add(self, outcome: Outcome) -> None:
        """Print one."""
        error = outcome.exception
        told: dict[str, Any] = {"host": outcome.item.name, "ok": outcome.ok}
        if error is None:
            told["value"] = outcome.value
        else:
            if isinstance(error, CommandError):
                told["exit"] = error.exit
            if (texts := printed(outcome)) is not None:
                told["stdout"], told["stderr"] = texts
            told |= {"kind": failure(error), "error": said(outcome, error)}
        told["attempts"] = outcome.attempts
        told["started"] = round(outcome.started, 3)
        told["finished"] = round(outcome.finished, 3)
        told["seconds"] = round(outcome.seconds, 6)
        for flag in ("abandoned", "resumed"):
            if getattr(outcome, flag):
                told[flag] = True
        item: Host | NoHost = outcome.item
        if isinstance(item, Host) and isinstance(item.value, dict):
            told["item"] = item.value
        print(_json(told), flush=True)

    def end(self, summary: str) -> None:
        """Say how many on stderr: stdout is for programs."""
        print(summary, file=sys.stderr)


class Tagged:
    """Every line of output with the name of its host before it, as it comes."""

    def add(self, outcome: Outcome) -> None:
        """Print one."""
        name, error = outcome.item.name, outcome.exception
        self._print(name, answer(outcome) or "", sys.stdout)
        self._print(name, remarks(outcome), sys.stderr)
        if error is not None:
            # Of a command that failed, what it says of it has just been printed.
            text = "" if isinstance(error, CommandError) else details(outcome, error)
            self._print(name, f"{failure(error)}: {text}" if text else failure(error), sys.stderr)

    def end(self, summary: str) -> None:
        """Say how many on stderr."""
        print(summary, file=sys.stderr)

    def _print(self, name: str, text: str, file: TextIO) -> None:
        lines = [f"{name}: {line}" for line in text.splitlines()]
        if lines and file.isatty():
            lines = map(printable, lines)
        for line in lines:
            print(line, file=file)
        file.flush()


def answer(outcome: Outcome) -> str | None:
    """What a host has answered: the output of a command, what a function has returned, or None."""
    value = outcome.value
    if (texts := printed(outcome)) is not None:
        return texts[0] if outcome.ok else texts[0] or None
    if not outcome.ok:
        return None
    return "" if value is None else text_of(value)


def remarks(outcome: Outcome) -> str:
    """What a command has written to stderr."""
    texts = printed(outcome)
    return "" if texts is None else texts[1]


def printed(outcome: Outcome) -> tuple[str, str] | None:
    """What a command has written to stdout and stderr, also if it failed or was ended."""
    error, value = outcome.exception, outcome.value
    if error is None:
        return (value["stdout"], value["stderr"]) if is_of_command(value) else None
    # A timeout has what was ended as its cause.
    for said in (error, error.__cause__):
        if isinstance(said, CommandError | Unfinished):
            return said.stdout, said.stderr
    return None


def has_not_started(outcome: Outcome) -> bool:
    """Whether everything was stopped before it could begin."""
    return isinstance(outcome.exception, Stopped) and not outcome.attempts


def said(outcome: Outcome, error: BaseException) -> str:
    """What its exception says, with its name unless the text says it all."""
    if isinstance(error, Stopped):
        return "not started" if has_not_started(outcome) else "waiting for another try"
    if isinstance(error, CutOff):
        return "still running when the fan-out stopped"
    return sentence(error)


def details(outcome: Outcome, error: BaseException) -> str:
    """What it says beside the name of the failure."""
    name, text = failure(error), said(outcome, error)
    return "" if text == name else text.removeprefix(f"{name}: ")


def is_of_command(value: Any) -> TypeGuard[dict[str, Any]]:
    """Whether a value is what a command gives."""
    return isinstance(value, dict) and value.keys() == {"exit", "stdout", "stderr"}  # pyright: ignore[reportUnknownMemberType]


def text_of(value: object) -> str:
    """What a function has returned, as JSON or, where that cannot hold it, as Python writes it."""
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return repr(value)


def _json(told: dict[str, Any]) -> str:
    """A line of JSON, with the `repr` of what that cannot hold."""
    try:
        return json.dumps(told, default=repr, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return json.dumps({name: _held(it) for name, it in told.items()})


def _held(value: Any) -> Any:
    """The same in JSON, with texts for what that has no place for: NaN and tuples as keys, say."""
    try:
        return json.loads(json.dumps(_parts_held(value), default=repr))
    except (TypeError, ValueError, RecursionError):  # it contains itself
        return repr(value)


def _parts_held(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else repr(value)
    if isinstance(value, dict):
        fields = cast("dict[Any, Any]", value)
        return {
            key if isinstance(key, str | int | None) else repr(key): _parts_held(it)
            for key, it in fields.items()
        }
    if isinstance(value, list | tuple):
        return [_parts_held(it) for it in cast("list[Any]", value)]
    return value
