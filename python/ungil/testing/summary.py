"""What `--gil` says at the end of a run."""

from __future__ import annotations

from typing import Any

import pytest

from ungil.formatting import duration, plural

ROWS = 10
NOTICED_MS = 1.0
"""Tests that waited less are not listed."""


class Summary:
    """Collects what reports say, also those of pytest-xdist's workers, and prints it."""

    def __init__(self) -> None:
        self._waits: list[tuple[float, float, str]] = []
        self._lines: dict[str, list[tuple[float, str]]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Takes in one report."""
        judged: dict[str, Any] | None = getattr(report, "ungil_gil", None)
        if judged is None:
            return
        test = report.nodeid if report.when == "call" else f"{report.nodeid} ({report.when})"
        if judged["waited_ms"] >= NOTICED_MS:
            self._waits.append((judged["own_ms"], judged["waited_ms"], test))
        for hold in judged["holds"]:
            if hold["known"]:
                self._lines.setdefault(hold["line"], []).append((hold["own_ms"], test))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Prints the tests that waited most, and the lines that kept the GIL longest."""
        terminalreporter.section("GIL")
        write = terminalreporter.write_line
        if not self._waits and not self._lines:
            write("no test waited for the GIL, and no line of code kept it, for long")
            return
        if self._waits:
            write(f"{'waited':>8} {'ran':>8}  tests that waited longest, and what the holders ran")
            for own_ms, waited_ms, test in sorted(self._waits, reverse=True)[:ROWS]:
                write(f"{_ms(waited_ms):>8} {_ms(own_ms):>8}  {test}")
        if self._lines:
            write(f"{'longest':>8} {'times':>8}  lines of code that kept the GIL longest")
            worst = sorted(self._lines.items(), key=lambda it: -max(it[1])[0])
            for line, holds in worst[:ROWS]:
                own_ms, test = max(holds)
                write(f"{_ms(own_ms):>8} {len(holds):>8}  {line}, in {test}")
            if len(worst) > ROWS:
                write(f"and {plural(len(worst) - ROWS, 'more line')}")


def _ms(milliseconds: float) -> str:
    return duration(milliseconds / 1e3)
