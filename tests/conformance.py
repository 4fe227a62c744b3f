"""Runs CPython's own test suites bare and under ungil, and compares every single test.

    python tests/conformance.py [--with "trace --quiet"] [--suite NAME]... PYTHON...

A test that ends differently under ungil (passed, failed, skipped, missing) is printed and makes
the exit status 1. Suites run one after the other, each one bare and then under ungil.
"""

import argparse
import shlex
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path

SUITES = [
    "test_threading",
    "test_thread",
    "test_threading_local",
    "test_concurrent_futures",
    "test_queue",
    "test_signal",
    "test_asyncio",
    "test_subprocess",
    "test_fork1",
    "test_multiprocessing_spawn",
]
# Left out, with the reason.
IGNORED = {
    "test_print_exception_gh_102056": "never ends now and then, bare as well (seen on 3.13.0)",
}


def outcomes(command: list[str], suite: str) -> dict[str, str]:
    """Runs one suite with `command` as the interpreter and returns each test's outcome."""
    with tempfile.TemporaryDirectory(prefix="ungil-conformance-") as directory:
        results = Path(directory, "results.xml")
        # A suite that hangs ends with the traces of all its threads.
        options = ["--timeout", "900", "--junit-xml", str(results)]
        options += [word for name in IGNORED for word in ("--ignore", name)]
        run = subprocess.run(
            [*command, "-m", "test", *options, suite],
            cwd=directory,
            capture_output=True,
            text=True,
            check=False,
        )
        outcome = {"(exit status)": str(run.returncode)}
        if not results.exists():
            last_words = (run.stderr or run.stdout).rstrip().splitlines()[-1:]
            outcome["(no results)"] = last_words[0] if last_words else ""
            return outcome
        for case in ElementTree.parse(results).iter("testcase"):
            name = case.get("name", "?")
            bad = [child.tag for child in case if child.tag in ("failure", "error", "skipped")]
            outcome[name] = bad[0] if bad else "passed"
        return outcome


def main() -> int:
    """Compares suite by suite; returns the exit status."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("pythons", nargs="+", metavar="PYTHON")
    parser.add_argument("--with", dest="under", default="trace --quiet", help="ungil's arguments")
    parser.add_argument("--suite", action="append", help="instead of all")
    options = parser.parse_args()
    differences = 0
    for python in options.pythons:
        for suite in options.suite or SUITES:
            began = time.monotonic()
            bare = outcomes([python], suite)
            middle = time.monotonic()
            with tempfile.TemporaryDirectory(prefix="ungil-conformance-") as directory:
                trace = ["-o", str(Path(directory, "suite.pftrace"))]
                ungil = [sys.executable, "-m", "ungil", *shlex.split(options.under), *trace]
                traced = outcomes([*ungil, "--", python], suite)
            took = f"{middle - began:.0f} s bare, {time.monotonic() - middle:.0f} s under ungil"
            wrong = {
                name: (bare.get(name, "missing"), traced.get(name, "missing"))
                for name in sorted(bare.keys() | traced.keys())
                if bare.get(name) != traced.get(name)
            }
            verdict = "same" if not wrong else f"{len(wrong)} DIFFERENT"
            if "(no results)" in bare:
                verdict = f"NOT RUN: {bare['(no results)']}"
                wrong = {"(results)": ("none", "not compared")}
            passed = sum(result == "passed" for result in traced.values())
            print(f"{python} {suite}: {verdict}, {passed} passed ({took})", flush=True)
            for name, (before, after) in wrong.items():
                print(f"    {name}: {before} bare, {after} under ungil", flush=True)
            differences += len(wrong)
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
