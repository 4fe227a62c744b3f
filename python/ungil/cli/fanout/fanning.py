"""One run of `ungil fanout`: from its first outcome to its summary, and what signals do to it."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from itertools import islice
from types import FrameType

from ungil.cli.fanout.hosts import Hosts, Interrupted
from ungil.cli.fanout.outcomes import NAMES, JsonLines, Printer, Tally, has_not_started
from ungil.cli.fanout.targets import is_in_function
from ungil.cli.streams import fail, settle
from ungil.errors import Error
from ungil.fanout import Outcomes
from ungil.formatting import clock_duration, plural, reason

_AT_ONCE = (signal.SIGTERM, signal.SIGHUP)


class Fanning:
    """Runs everything and prints it."""

    def __init__(
        self,
        outcomes: Outcomes,
        hosts: Hosts,
        printer: Printer,
        *,
        commands: bool,
        engine: str | None,
        journaled: bool,
    ) -> None:
        self._outcomes = outcomes
        self._hosts = hosts
        self._printer = printer
        self._engine = engine
        self._journaled = journaled
        self._tally = Tally()
        self._signals = _Signals(outcomes, hosts, commands=commands, with_engine=engine is not None)

    def run(self) -> int:
        """The exit status."""
        began = time.monotonic()
        problem: Exception | None = None
        at_once = False
        try:
            with self._signals.handled():
                try:
                    self._take()
                except KeyboardInterrupt:
                    at_once = True
                    self._signals.interrupted()
                    self._outcomes.close()
                    self._take()
        except BrokenPipeError:
            return self._nobody_reads()
        except Interrupted:
            pass
        except (Error, OSError) as error:
            problem = error
            # If it could not be printed, hosts still run.
            self._leave()
        try:
            status = self._end(time.monotonic() - began, problem)
        except BrokenPipeError:
            return self._nobody_reads()
        except Error as error:
            status = _told(problem or error)
        if at_once:
            # Threads that run, and threads of the user's, keep nobody from leaving.
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
        return status

    def _take(self) -> None:
        for outcome in self._outcomes:
            self._tally.add(outcome)
            # They are counted at the end, as those that were not read. A program gets each of them.
            if has_not_started(outcome) and not isinstance(self._printer, JsonLines):
                continue
            with _printing():
                self._printer.add(outcome)

    def _end(self, seconds: float, problem: Exception | None) -> int:
        """Print the rest; the exit status."""
        hosts, tally = self._hosts, self._tally
        if tally.came == 0 and problem is None and self._signals.status is None:
            fail(f"{hosts.name} has no hosts", 2)
            return 0 if hosts.was_named else 2
        if tally.came == 0 and problem is not None:
            return _told(problem)  # before anything ran: a cluster that does not answer
        mode = f", {self._outcomes.mode}"
        if self._engine is not None:
            mode += f" by {self._engine}"
        rate = tally.finished / seconds if seconds > 0 else 0
        told = f"{plural(tally.finished, 'host')} in {clock_duration(seconds)}{mode}"
        if rate >= 1 and tally.finished > 1:
            told += f", {rate:,.0f}/s"
        told += f": {tally}"
        if self._signals.status is not None:
            told += f"\n{self._not_done()}"
        with _printing():
            self._printer.end(told)
        if hosts.repeated:
            print(
                f"ungil: {hosts.name}: {plural(hosts.repeated, 'repeated host')} left out, first "
                f"{hosts.first_repeated}",
                file=sys.stderr,
            )
        if problem is not None:
            return _told(problem)
        if self._signals.status is not None:
            return self._signals.status
        return 1 if tally.failed else 0

    def _not_done(self) -> str:
        """What is not done after a signal."""
        tally = self._tally
        parts: list[str] = []
        # Threads that were left alone have no outcome.
        if cut := tally.cut + self._outcomes.running:
            parts.append(f"{cut:,} stopped while they ran")
        if tally.not_run:
            parts.append(f"{tally.not_run:,} waiting for another try")
        parts.append(self._not_started())
        again = "; run the same command again to do the rest" if self._journaled else ""
        return f"stopped; not done: {', '.join(parts)}{again}"

    def _not_started(self) -> str:
        hosts, tally = self._hosts, self._tally
        if hosts.path == "-":
            unread = "hosts that ungil had not read yet"
            return f"{tally.not_started:,} not started, {unread}" if tally.not_started else unread
        unread = [host.name for host in islice(hosts, NAMES)]
        rest = tally.not_started + len(unread) + sum(1 for _ in hosts)
        if not rest:
            return "every host had started"
        names = [*tally.first_not_started, *unread][:NAMES]
        which = ", ".join(names) + (", …" if rest > len(names) else "")
        return f"{rest:,} not started ({which})"

    def _nobody_reads(self) -> int:
        """`ungil fanout --json … | head` ends as other commands do."""
        self._leave()
        # What is still in the buffer would raise again when Python ends.
        with suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 1

    def _leave(self) -> None:
        """Ends what runs, without waiting for threads."""
        self._outcomes.stop()
        self._outcomes.close()


@contextmanager
def _printing() -> Generator[None]:
    """Error, with a sentence, where something cannot be written."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        settle()  # it is told once
        # Files have names. What cannot be written to stderr cannot be told there either.
        where = "the standard output" if error.filename is None else repr(error.filename)
        raise Error(f"cannot write {where}: {reason(error)}") from error


def _told(problem: Exception) -> int:
    """Say what went wrong; the exit status."""
    if isinstance(problem, OSError):
        where = "" if problem.filename is None else f": {problem.filename!r}"
        return fail(f"{reason(problem)}{where}", 1)
    return fail(str(problem), 1)


class _Signals:
    """Which signals have come, and what they do to a fan-out.

    | signal          | the first                               | the second        | a third |
    |-----------------|-----------------------------------------|-------------------|---------|
    | SIGINT          | nothing more starts; what runs may end  | KeyboardInterrupt | death   |
    | SIGTERM, SIGHUP | nothing more starts; KeyboardInterrupt  | death             |         |

    KeyboardInterrupt ends a function of the user's wherever it is. In the middle of anything else
    it would do harm: lose a process that has just begun, or break an event loop that is about to
    stop. So there it waits for the next outcome.
    """

    def __init__(
        self, outcomes: Outcomes, hosts: Hosts, *, commands: bool, with_engine: bool
    ) -> None:
        self._outcomes = outcomes
        self._hosts = hosts
        self._commands = commands
        self._with_engine = with_engine
        self.status: int | None = None
        """What the command exits with if a signal has come."""

    def interrupted(self) -> None:
        """A KeyboardInterrupt has come, from a handler or from a function of the user's."""
        self.status = self.status or 128 + signal.SIGINT

    @contextmanager
    def handled(self) -> Generator[None]:
        """Treat signals as the table says for as long as the context lasts."""
        before = {number: signal.getsignal(number) for number in (signal.SIGINT, *_AT_ONCE)}
        # Who starts this in the background, or with nohup, has them ignored.
        changed = [number for number in before if before[number] is not signal.SIG_IGN]
        for number in changed:
            signal.signal(number, self._handle)
        try:
            yield
        finally:
            for number in changed:
                signal.signal(number, before[number])

    def _handle(self, number: int, frame: FrameType | None) -> None:
        first = self.status is None
        self.status = 128 + number
        if first:
            self._outcomes.stop()
        if not first or number in _AT_ONCE:
            signal.signal(number, signal.SIG_DFL)
            if self._outcomes.mode == "lean" or (not self._commands and is_in_function(frame)):
                raise KeyboardInterrupt
            self._outcomes.interrupt()
        else:
            self._tell()
        self._hosts.interrupt()

    def _tell(self) -> None:
        still = f"{self._outcomes.running:,} still run; Ctrl-C again ends them now"
        if self._with_engine:  # only the workers know how many
            still = "what runs goes on; Ctrl-C again ends it now"
        sentence = f"\nungil: nothing more starts; {still}\n"
        # Where a bar is drawn, this goes above it. Elsewhere stderr may be in the middle of a
        # write, which a handler must not enter again.
        if type(sys.stderr).__name__ == "FileProxy":
            sys.stderr.write(sentence)
        else:
            os.write(2, sentence.encode())
