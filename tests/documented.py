"""The commands of a document: what it tells a reader to type, and what it says that this prints.

A block of ```console has lines that begin with `$ `, and below each what it prints. A comment
before the block, which readers do not see, says what is not as usual:

    <!-- not run: it takes a minute -->
    <!-- compare: a phrase | another one -->    only these must be printed, as they stand there
    <!-- exit: 1 -->                            the status of its last command
    <!-- exit: 1; compare: a phrase -->         both

Without `compare` every line has to be printed, with other numbers; `...` stands for any lines.
What a reader is told in passing counts for `everything_typed`, too: `pip install waitress` in a
sentence, and the blocks without prompts that README and the help of commands have. Usage lines,
with `[OPTIONS]` in them, are no commands.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

from suite import PATIENCE_S

BLOCK = re.compile(r"(?:<!-- (?P<said>[^<]*?) -->\n)?^```console\n(?P<text>.*?)^```", re.M | re.S)
# A block of commands without a prompt, each with a comment.
STARTS = r"(?:(?:ungil|pip|make|python3?|git|cd|grep|source) .*|ungil|#.*)"
PLAIN = re.compile(rf"^```\n(?P<text>(?:{STARTS}\n)+)^```", re.M)
# What explains a command in the help of ungil, which needs no `#`.
EXPLAINED = re.compile(r" {2,}(?![ #]).*")
IN_PASSING = re.compile(r"`(?P<text>(?:pip install |python examples/)[^`\n]+)`")
NUMBER = re.compile(r"(?<![\w.])\d[\d,.]*(?: ?(?:ns|us|µs|ms|s|min|%|[kKMG]i?B|B)(?!\w))?")
# Between the output of a command and its status; no program prints it.
END = "\x1e"


class Command(NamedTuple):
    """A command, what the document says that it prints, and with which status it ends."""

    line: int
    typed: str
    shown: list[str]
    phrases: list[str]
    """Of `shown`; empty if every line counts."""
    status: int


def everything_typed(text: str) -> list[Command]:
    """All commands that a reader may type, in their order: also what no test runs."""
    found = commands(text, also_not_run=True)
    outside = BLOCK.sub(lambda block: "\n" * block[0].count("\n"), text)
    for pattern in (PLAIN, IN_PASSING):
        for block in pattern.finditer(outside):
            line = outside.count("\n", 0, block.start("text")) + 1
            for number, typed in enumerate(block["text"].splitlines()):
                if not typed.startswith("#") and "[OPTIONS]" not in typed:
                    found.append(Command(line + number, EXPLAINED.sub("", typed), [], [], 0))
        outside = pattern.sub(lambda block: "\n" * block[0].count("\n"), outside)
    return sorted(found)


def commands(text: str, also_not_run: bool = False) -> list[Command]:
    """All commands of a document that are run, in their order."""
    found: list[Command] = []
    for block in BLOCK.finditer(text):
        parts = re.split(r"; (?=compare: |exit: )", block["said"] or "")
        said = {kind: rest for kind, _, rest in (part.partition(": ") for part in parts)}
        if "not run" in said and not also_not_run:
            continue
        line = text.count("\n", 0, block.start("text")) + 1
        typed = re.split(r"^\$ ", block["text"], flags=re.MULTILINE)[1:]
        for number, part in enumerate(typed):
            command, *shown = part.rstrip("\n").split("\n")
            while shown and shown[0].startswith("> "):
                command += "\n" + shown.pop(0).removeprefix("> ")
            ends = said.get("exit", "0") if number == len(typed) - 1 else "0"
            phrases = said["compare"].split(" | ") if "compare" in said else []
            here = [it for it in phrases if it in flat("\n".join(shown))]
            found.append(Command(line, command, shown, here, int(ends)))
            line += part.count("\n")
    return found


def missing(command: Command, printed: str) -> list[str]:
    """What a command should have printed and has not."""
    if command.phrases:
        return [phrase for phrase in command.phrases if phrase not in flat(printed)]
    there = {without_numbers(line) for line in printed.splitlines()}
    shown = [line for line in command.shown if line.strip() not in ("", "...")]
    return [line for line in shown if without_numbers(line) not in there]


def flat(text: str) -> str:
    """Text without its lines, which are broken where a terminal ends."""
    return " ".join(text.split())


def without_numbers(line: str) -> str:
    """A line with `#` for each number and its unit, and single blanks."""
    return NUMBER.sub("#", flat(line))


BASH = ("bash", "--noprofile", "--norc")


class Shell:
    """One bash for all commands of a document, as a reader has one."""

    def __init__(
        self, folder: Path, environment: dict[str, str], words: Sequence[str] = BASH
    ) -> None:
        """Start it in a folder; `words` begin one that is elsewhere, such as in a root."""
        self._bash = subprocess.Popen(
            words,
            cwd=folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            start_new_session=True,
        )

    def __enter__(self) -> Shell:
        return self

    @property
    def pid(self) -> int:
        """The process that was started."""
        return self._bash.pid

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Ends it, with whatever still runs in the background."""
        with self._bash, contextlib.suppress(ProcessLookupError):
            os.killpg(self._bash.pid, signal.SIGKILL)

    def run(self, typed: str) -> tuple[int, str]:
        """What a command ends with, and all that it has printed."""
        watchdog = threading.Timer(PATIENCE_S, os.killpg, [self._bash.pid, signal.SIGKILL])
        watchdog.start()
        try:
            return self._run(typed)
        finally:
            watchdog.cancel()

    def _run(self, typed: str) -> tuple[int, str]:
        assert self._bash.stdin
        assert self._bash.stdout
        self._bash.stdin.write(f"{typed}\nprintf '{END}%d\\n' $?\n")
        self._bash.stdin.flush()
        printed: list[str] = []
        for line in self._bash.stdout:
            before, end, status = line.partition(END)
            printed.append(before)
            if end:
                return int(status), "".join(printed)
        raise EOFError(f"the shell ended, or was ended, in: {typed}\n{''.join(printed)}")


def surroundings(python: Path) -> dict[str, str]:
    """A reader's environment: `python` and `ungil` are on the path, the terminal has 92 columns."""
    own = {"LINES", "NO_COLOR", "FORCE_COLOR", "TERM", "TTY_COMPATIBLE", "PYTHONUNBUFFERED"}
    kept = {name: value for name, value in os.environ.items() if name not in own}
    return kept | {"PATH": f"{python.parent}:{os.environ['PATH']}", "COLUMNS": "92"}
