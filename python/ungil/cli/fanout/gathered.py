"""What hosts have answered, equal answers once, with the hosts before them."""

from __future__ import annotations

import sys
from bisect import insort
from typing import TYPE_CHECKING, TextIO

from ungil.cli.fanout.outcomes import answer, remarks
from ungil.formatting import plural, printable

if TYPE_CHECKING:
    from ungil.fanout import Outcome

# Of hosts that printed the same so many are named; of different outputs so many are kept.
_NAMES = 8
_OUTPUTS = 10_000


class Outputs:
    """Texts of hosts; `where` says where they were printed, if not on stdout."""

    def __init__(self, where: str = "") -> None:
        self._where = where
        self._hosts: dict[str, list[tuple[int, str]]] = {}
        self._counts: dict[str, int] = {}
        self._left_out = 0
        self.count = 0
        """Of how many hosts."""
        self.has_lines = False
        """Whether one of them is more than a line."""

    def add(self, index: int, host: str, text: str) -> None:
        """One more has come, of the host at `index` of those that were given."""
        self.count += 1
        text = text.rstrip("\n")
        if text not in self._counts and len(self._counts) >= _OUTPUTS:
            self._left_out += 1
            return
        self.has_lines |= "\n" in text
        self._counts[text] = self._counts.get(text, 0) + 1
        hosts = self._hosts.setdefault(text, [])
        insort(hosts, (index, host))
        del hosts[_NAMES:]

    def print(self, file: TextIO) -> None:
        """Print them, those of most hosts first, and hosts in the order that they were given in."""
        where = f"{self._where}: " if self._where else ""
        for text in sorted(self._counts, key=lambda text: (-self._counts[text], self._hosts[text])):
            count = self._counts[text]
            lines = [printable(line) for line in text.split("\n")] if text else ["(no output)"]
            names = ", ".join(printable(host) for _, host in self._hosts[text])
            if count == 1 and len(lines) == 1:
                print(f"{where}{names}: {lines[0]}", file=file)
                continue
            others = f" and {count - _NAMES:,} more" if count > _NAMES else ""
            print(f"{where}{plural(count, 'host')}: {names}{others}", file=file)
            for line in lines:
                print(f"  {line}", file=file)
        if self._left_out:
            print(
                f"{where}{plural(self._left_out, 'host')} with other outputs: --outdir keeps all "
                "of them",
                file=file,
            )


class Gathered:
    """Equal answers once, when all have come; then on stderr what went wrong."""

    def __init__(self) -> None:
        # It imports this module, and rich, which is slow to import.
        from ungil.cli.fanout.table import Failures

        self._answers = Outputs()
        self._remarks = Outputs("stderr")
        self._failures = Failures()

    def add(self, outcome: Outcome) -> None:
        """One more has come."""
        error, name = outcome.exception, outcome.item.name
        if (text := answer(outcome)) is not None:
            self._answers.add(outcome.index, name, text)
        if error is not None:
            self._failures.add(outcome, error)
        elif text := remarks(outcome):
            self._remarks.add(outcome.index, name, text)

    def end(self, summary: str) -> None:
        """Print them."""
        self._answers.print(sys.stdout)
        sys.stdout.flush()
        self._remarks.print(sys.stderr)
        self._failures.print(sys.stderr)
        print(summary, file=sys.stderr)
        if self._failures.are_many:
            print("--table --all shows every host, --json prints them as JSON", file=sys.stderr)
