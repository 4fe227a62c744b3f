"""What commands have printed: on the screen equal outputs once, in a folder a file for each."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from ungil.fanout import Outcome
from ungil.fanout._command import CommandError
from ungil.report.units import plain, plural

if TYPE_CHECKING:
    from ungil.cli.outcomes import Printer

# Of hosts that printed the same so many are named; of different outputs so many are kept.
_NAMES = 8
_OUTPUTS = 10_000


class Outputs:
    """Those of hosts where the command did well."""

    def __init__(self) -> None:
        self._hosts: dict[str, list[str]] = {}
        self._counts: dict[str, int] = {}
        self._left_out = 0
        self.has_lines = False
        """Whether one of them is more than a line."""

    def add(self, host: str, text: str) -> None:
        """One more has come."""
        text = text.rstrip("\n")
        if text not in self._counts and len(self._counts) >= _OUTPUTS:
            self._left_out += 1
            return
        self.has_lines |= "\n" in text
        self._counts[text] = self._counts.get(text, 0) + 1
        hosts = self._hosts.setdefault(text, [])
        if len(hosts) < _NAMES:
            hosts.append(host)

    def print(self) -> None:
        """Print them, those of most hosts first."""
        for text, count in sorted(self._counts.items(), key=lambda entry: -entry[1]):
            lines = [plain(line) for line in text.split("\n")] if text else ["(no output)"]
            names = ", ".join(map(plain, self._hosts[text]))
            if count == 1 and len(lines) == 1:
                print(f"{names}: {lines[0]}")
                continue
            others = f" and {count - _NAMES:,} more" if count > _NAMES else ""
            print(f"{plural(count, 'host')}: {names}{others}")
            for line in lines:
                print(f"  {line}")
        if self._left_out:
            print(
                f"{plural(self._left_out, 'host')} with other outputs: --outdir keeps all of them"
            )


class Saved:
    """Each host's output in files of a folder, `HOST.out` and, if there is some, `HOST.err`."""

    def __init__(self, folder: str, printer: Printer) -> None:
        """OSError if there is no such folder and none can be made."""
        self._folder = Path(folder)
        self._printer = printer
        self._folder.mkdir(parents=True, exist_ok=True)

    def add(self, outcome: Outcome) -> None:
        """Write one down. OSError if that fails."""
        said: dict[str, Any] | None = outcome.value
        error = outcome.exception
        if isinstance(error, CommandError):
            said = {"exit": error.exit, "stdout": error.stdout, "stderr": error.stderr}
        if said is not None:
            name = quote(outcome.item.name, safe=" @:+,=[]")
            self._write(f"{name}.out", said["stdout"])
            if said["stderr"]:
                self._write(f"{name}.err", said["stderr"])
        self._printer.add(outcome)

    def end(self, summary: str) -> None:
        """Print the end."""
        self._printer.end(summary)

    def _write(self, name: str, text: str) -> None:
        whole = self._folder / name
        # Whole or not at all, under this name.
        part = self._folder / f".{name}.{os.getpid()}"
        try:
            part.write_text(text, encoding="utf-8", errors="surrogateescape")
            part.replace(whole)
        except OSError:
            part.unlink(missing_ok=True)
            raise
