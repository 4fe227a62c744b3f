"""Runs nornir's own test suite with `UngilRunner` in the place of nornir's runners.

    python tests/nornir_suite.py CHECKOUT [PYTEST_ARGUMENT]...

CHECKOUT is a copy of nornir's repository, as `git clone --branch v3.6.0
https://github.com/nornir-automation/nornir` makes it, because what is on PyPI has no tests. They
test the nornir that is installed. Everything runs with nornir's own runners, with ours in threads,
and with ours in green threads. A test that ends differently with ours is printed, and makes the
exit status 1.
"""

import json
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

if TYPE_CHECKING:
    from ungil.fanout import Mode

# Left out, with the reason.
LEFT_OUT = {
    "tests/core/test_registered_plugins.py::Test::test_registered_runners": "it wants nornir's "
    "two runners to be the only ones that are installed, and fails with any plugin there is",
}
OWN = "nornir's own runners"


class InTheirPlace:
    """Has ours where the tests have ThreadedRunner, or name no runner; keeps how each test ends."""

    def __init__(self, mode: str) -> None:
        import nornir.plugins.runners as theirs

        from ungil.fanout.nornir import UngilRunner

        self.outcomes: dict[str, str] = {}
        self._ours = None if mode == OWN else partial(UngilRunner, mode=cast("Mode", mode))
        if self._ours is not None:
            theirs.ThreadedRunner = self._ours  # pyright: ignore[reportAttributeAccessIssue]

    def pytest_collection_finish(self) -> None:
        """The tests that name no runner take one from their conftest.py."""
        if self._ours is not None:
            sys.modules["tests.conftest"].SerialRunner = self._ours  # pyright: ignore

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A test that fails before or after itself has failed."""
        if report.when == "call" or not report.passed:
            self.outcomes[report.nodeid] = report.outcome


def run(mode: str, outcomes: str, arguments: list[str]) -> None:
    """The suite in this process; its outcomes come into a file."""
    if mode == "green":
        from gevent import monkey

        monkey.patch_all()
    plugin = InTheirPlace(mode)  # imports the nornir that is installed, not the one of the checkout
    left_out = [word for test in LEFT_OUT for word in ("--deselect", test)]
    status = pytest.main(["-q", "-p", "no:cacheprovider", *left_out, *arguments], plugins=[plugin])
    plugin.outcomes["(exit status)"] = str(int(status))
    Path(outcomes).write_text(json.dumps(plugin.outcomes))


def main() -> int:
    """Each way in a process of its own."""
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        print(__doc__, file=sys.stderr)
        return 2
    if sys.argv[1] == "in":
        run(sys.argv[2], sys.argv[3], sys.argv[4:])
        return 0
    checkout, *arguments = sys.argv[1:]
    outcomes: dict[str, dict[str, str]] = {}
    with tempfile.TemporaryDirectory(prefix="ungil-nornir-") as folder:
        for mode in (OWN, "threads", "green"):
            file = Path(folder, "outcomes.json")
            command = [sys.executable, __file__, "in", mode, str(file), *arguments]
            print(f"{mode}:", flush=True)
            subprocess.run(command, cwd=checkout, check=True)
            outcomes[mode] = json.loads(file.read_text())
    own = outcomes.pop(OWN)
    differences = [
        f"{mode}: {test}: {ended.get(test, 'missing')}, with {OWN} {own.get(test, 'missing')}"
        for mode, ended in outcomes.items()
        for test in sorted(own.keys() | ended.keys())
        if own.get(test) != ended.get(test)
    ]
    print(*differences, f"{len(own) - 1} tests, {len(differences)} differences", sep="\n")
    return int(bool(differences))


if __name__ == "__main__":
    sys.exit(main())
