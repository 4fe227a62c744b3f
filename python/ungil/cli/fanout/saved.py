"""What commands have printed, in a folder: files for each host, as soon as it has ended."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from ungil.cli.fanout.outcomes import printed

if TYPE_CHECKING:
    from ungil.cli.fanout.outcomes import Printer
    from ungil.fanout import Outcome


class Saved:
    """Each host's output in files of a folder, `HOST.out` and, if there is some, `HOST.err`."""

    def __init__(self, folder: str, printer: Printer) -> None:
        """OSError if there is no such folder and none can be made."""
        self._folder = Path(folder)
        self._printer = printer
        self._folder.mkdir(parents=True, exist_ok=True)

    def add(self, outcome: Outcome) -> None:
        """Write one down. OSError if that fails."""
        if (texts := printed(outcome)) is not None:
            stdout, stderr = texts
            name = quote(outcome.item.name, safe=" @:+,=[]")
            self._write(f"{name}.out", stdout)
            if stderr:
                self._write(f"{name}.err", stderr)
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
        except OSError as error:
            part.unlink(missing_ok=True)
            raise OSError(error.errno, error.strerror, str(whole)) from error
