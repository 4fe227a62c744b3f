"""A command for each host: words with the host's fields filled in, run without a shell.

`CommandTemplate(["ssh", "{host}", "uptime"])` is an `async def` function of a host's fields.
What it gives is a dict that a journal can hold: `exit`, `stdout` and `stderr`.
"""

import os
import re
import signal
from contextlib import suppress

from ungil.cli import proc
from ungil.fanout import CutOff
from ungil.fanout.frontend import NamedFailure
from ungil.formatting import killed_by

TYPE_CHECKING = False
if TYPE_CHECKING:
    import asyncio
    from collections.abc import Mapping, Sequence

# Of a longer output the begin and the end are kept, half of this each.
KEPT_BYTES = 1 << 16

# Between SIGTERM and SIGKILL, and for the end after that. Together they are less than a mode waits
# for a coroutine that it cancelled.
_TERM_SECONDS = 0.5
_KILL_SECONDS = 0.3

# A command that has ended may have left a process behind that keeps its output open.
_OUTPUT_SECONDS = 1.0

# {field} and {} are filled in; {{field}} is for who needs the braces. Others mean nothing here.
_PLACE = re.compile(r"\{\{(\w*)\}\}|\{([A-Za-z_]\w*|)\}")


class CommandError(NamedFailure):
    """A command has ended with another exit status than 0; a negative one is a signal's number."""

    def __init__(self, exit: int, stdout: str, stderr: str) -> None:
        super().__init__(exit, stdout, stderr)
        self.exit = exit
        self.stdout = stdout
        self.stderr = stderr

    @property
    def failure(self) -> str:
        """How it ended, in a few words."""
        return f"exit {self.exit}" if self.exit >= 0 else killed_by(-self.exit)

    def __str__(self) -> str:
        said = last_line(self.stderr) or last_line(self.stdout)
        return f"{self.failure}: {said}" if said else self.failure


class Unfinished(CutOff):
    """A command was ended before it ended by itself; what it had printed by then."""

    def __init__(self, stdout: str, stderr: str) -> None:
        super().__init__(stdout, stderr)
        self.stdout = stdout
        self.stderr = stderr

    def __str__(self) -> str:
        return "cut off: the command was ended"


class CommandTemplate:
    """A command with places for a host's fields: `{host}`, or `{}` for the same."""

    def __init__(self, words: "Sequence[str]") -> None:
        self.words = list(words)

    @property
    def fields(self) -> set[str]:
        """The names of the fields that it needs."""
        found = [place for word in self.words for place in _PLACE.finditer(word)]
        return {place[2] or "host" for place in found if place[1] is None}

    def argv(self, fields: "Mapping[str, str]") -> list[str]:
        """The words for one host; KeyError for a field that it does not have."""

        def fill(place: re.Match[str]) -> str:
            return f"{{{place[1]}}}" if place[1] is not None else fields[place[2] or "host"]

        return [_PLACE.sub(fill, word) for word in self.words]

    async def __call__(self, fields: "Mapping[str, str]") -> dict[str, object]:
        """Runs it. CommandError if it fails, OSError if it cannot be started.

        When it is cancelled, all processes of its group end, and it raises Unfinished.
        """
        # Whoever only wants to know how commands fail does not wait for these imports.
        import asyncio

        process = _Process(asyncio.get_running_loop(), self.argv(fields))
        try:
            # A cancelled task cancels what it awaits, and this has to tell the end afterwards.
            await asyncio.shield(process.over)
        except asyncio.CancelledError as cancelled:
            await process.end()
            printed = process.stdout.text(), process.stderr.text()
            raise Unfinished(*printed) from cancelled
        finally:
            process.close()
        exit = process.exit
        stdout, stderr = process.stdout.text(), process.stderr.text()
        if exit != 0:
            raise CommandError(exit, stdout, stderr)
        return {"exit": exit, "stdout": stdout, "stderr": stderr}


class Kept:
    """The begin and the end of what a process writes."""

    def __init__(self, most: int = KEPT_BYTES) -> None:
        self._half = most // 2
        self._begin = bytearray()
        self._end = bytearray()
        self._left_out = 0

    def add(self, data: bytes) -> None:
        """More has been written."""
        room = self._half - len(self._begin)
        self._begin += data[:room] if room > 0 else b""
        self._end += data[max(room, 0) :]
        if (over := len(self._end) - self._half) > 0:
            del self._end[:over]
            self._left_out += over

    def text(self) -> str:
        """What was kept, and how much was not. Bytes that are no UTF-8 are replaced."""
        begin, end = (bytes(it).decode(errors="replace") for it in (self._begin, self._end))
        if not self._left_out:
            return (self._begin + self._end).decode(errors="replace")
        return f"{begin}\n[... {self._left_out:,} bytes left out ...]\n{end}"


class _Process:
    """A process that runs, and what it has written so far.

    Popen starts one in a tenth of the time of uvloop's subprocesses, which copy the page tables of
    this process, and the kernel tells the end of each by a descriptor of its own (pidfd).
    """

    def __init__(self, loop: "asyncio.AbstractEventLoop", argv: list[str]) -> None:
        import subprocess

        self._loop = loop
        # In a session of its own: Ctrl-C is not for it, and ssh does not ask at the terminal.
        self._process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )
        self.over: asyncio.Future[None] = loop.create_future()
        self.stdout = Kept()
        self.stderr = Kept()
        self._pipes: dict[int, Kept] = {}
        for pipe, kept in (
            (self._process.stdout, self.stdout),
            (self._process.stderr, self.stderr),
        ):
            assert pipe is not None, "it was asked for"
            os.set_blocking(pipe.fileno(), False)
            self._pipes[pipe.fileno()] = kept
            loop.add_reader(pipe.fileno(), self._read, pipe.fileno())
        self._end: int | None = None
        self._has_ended = False
        self._watch_end()

    @property
    def exit(self) -> int:
        """The exit status, or minus the number of the signal that killed it."""
        return self._process.wait()

    async def end(self) -> None:
        """Ends it and its group: SIGTERM, and SIGKILL to what has not ended soon."""
        import asyncio

        try:
            self._signal(signal.SIGTERM)
            await asyncio.wait([self.over], timeout=_TERM_SECONDS)
        finally:
            self._signal(signal.SIGKILL)
        await asyncio.wait([self.over], timeout=_KILL_SECONDS)

    def close(self) -> None:
        """Lets go of what it had open."""
        for fd in self._pipes:
            self._loop.remove_reader(fd)
        self._pipes.clear()
        if self._end is not None:
            self._loop.remove_reader(self._end)
            os.close(self._end)
            self._end = None
        for pipe in (self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()
        self._process.poll()

    def _read(self, fd: int) -> None:
        try:
            data = os.read(fd, KEPT_BYTES)
        except BlockingIOError:
            return
        if data:
            self._pipes[fd].add(data)
            return
        self._loop.remove_reader(fd)
        del self._pipes[fd]
        self._look()

    def _watch_end(self) -> None:
        try:
            self._end = proc.life_of(self._process.pid)
        except OSError:
            # Linux before 5.3, or a container that forbids it.
            from threading import Thread

            Thread(target=self._wait, daemon=True).start()
        else:
            self._loop.add_reader(self._end, self._ended)

    def _wait(self) -> None:
        # It is not reaped: its number would be free for another one, and its group is signalled.
        with suppress(ChildProcessError):  # SIGCHLD is ignored
            os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT)
        with suppress(RuntimeError):  # the loop is gone
            self._loop.call_soon_threadsafe(self._ended)

    def _ended(self) -> None:
        self._has_ended = True
        if self._end is not None:
            self._loop.remove_reader(self._end)
        self._look()
        self._loop.call_later(_OUTPUT_SECONDS, self._finish)

    def _look(self) -> None:
        if self._has_ended and not self._pipes:
            self._finish()

    def _finish(self) -> None:
        if not self.over.done():
            self.over.set_result(None)

    def _signal(self, number: int) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)


def last_line(text: str) -> str:
    """The last line that says something: where programs say why they failed."""
    lines = text.rstrip().splitlines()
    return lines[-1].strip() if lines else ""
