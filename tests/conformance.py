"""Runs CPython's own test suites bare and under ungil, and compares every single test.

    python tests/conformance.py [--with "trace --quiet"] [--policy NAME,...] [--suite NAME]...
        PYTHON...

A test that ends differently under ungil (passed, failed, skipped, missing) is printed and makes
the exit status 1. Suites run one after the other, each one bare, traced, and under each policy;
`--with ""` leaves out the tracing. A Python may lack a suite (an installed 3.11.7 has no
test_concurrent_futures), but one of those that are named must have it.
"""

import argparse
import shlex
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from functools import partial
from pathlib import Path

import scheduling
from pythons import path_of

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
    "test_processes_terminate": "a deadlock of 3.13.0's own (cpython gh-125451, mended in 3.13.1)",
}


# Exits with 1 if the interpreter has no such suite.
HAS_SUITE = (
    "import sys, importlib.util as it; sys.exit(it.find_spec('test.' + sys.argv[1]) is None)"
)


def has(python: str, suite: str) -> bool:
    """Whether a suite is installed with an interpreter."""
    return subprocess.run([python, "-c", HAS_SUITE, suite], check=False).returncode == 0


def outcomes(
    command: list[str], suite: str, environment: dict[str, str] | None = None
) -> dict[str, str]:
    """Runs one suite with `command` as the interpreter and returns each test's outcome."""
    with tempfile.TemporaryDirectory(prefix="ungil-conformance-") as directory:
        results = Path(directory, "results.xml")
        # A suite that hangs ends with the traces of all its threads.
        options = ["--timeout", "900", "--junit-xml", str(results)]
        options += [word for name in IGNORED for word in ("--ignore", name)]
        # A file, and no pipe: what a suite that hung leaves running would keep a pipe open.
        said = Path(directory, "said")
        with said.open("w") as output:
            run = subprocess.run(
                [*command, "-m", "test", *options, suite],
                cwd=directory,
                env=environment,
                stdout=output,
                stderr=subprocess.STDOUT,
                check=False,
            )
        outcome = {"(exit status)": str(run.returncode)}
        if not results.exists():
            last_words = said.read_text(errors="replace").rstrip().splitlines()[-1:]
            outcome["(no results)"] = last_words[0] if last_words else ""
            return outcome
        for case in ElementTree.parse(results).iter("testcase"):
            name = case.get("name", "?")
            bad = [child.tag for child in case if child.tag in ("failure", "error", "skipped")]
            outcome[name] = bad[0] if bad else "passed"
        return outcome


def traced(python: str, suite: str, arguments: str) -> dict[str, str]:
    """The outcomes under `ungil ARGUMENTS`."""
    with tempfile.TemporaryDirectory(prefix="ungil-conformance-") as directory:
        output = ["-o", str(Path(directory, "suite.pftrace"))]
        ungil = [sys.executable, "-m", "ungil", *shlex.split(arguments), *output]
        return outcomes([*ungil, "--", python], suite)


def compare(python: str, suite: str, ways: dict[str, Callable[[], dict[str, str]]]) -> int:
    """Runs a suite bare and in several ways; prints and counts the differences."""
    began = time.monotonic()
    bare = outcomes([python], suite)
    bare_s = time.monotonic() - began
    differences = 0
    for way, run in ways.items():
        began = time.monotonic()
        other = run()
        took = f"{bare_s:.0f} s bare, {time.monotonic() - began:.0f} s {way}"
        wrong = {
            name: (bare.get(name, "missing"), other.get(name, "missing"))
            for name in sorted(bare.keys() | other.keys())
            if bare.get(name) != other.get(name)
        }
        verdict = "same" if not wrong else f"{len(wrong)} DIFFERENT"
        if "(no results)" in bare:
            verdict = f"NOT RUN: {bare['(no results)']}"
            wrong = {"(results)": ("none", "not compared")}
        passed = sum(result == "passed" for result in other.values())
        print(f"{python} {suite} {way}: {verdict}, {passed} passed ({took})", flush=True)
        for name, (before, after) in wrong.items():
            print(f"    {name}: {before} bare, {after} {way}", flush=True)
        differences += len(wrong)
    return differences


def main() -> int:
    """Compares suite by suite; returns the exit status."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument(
        "pythons", nargs="+", metavar="PYTHON", type=path_of, help="a path, a command, or 3.13"
    )
    parser.add_argument("--with", dest="under", default="trace --quiet", help="ungil's arguments")
    parser.add_argument("--policy", default="", help="names, separated by commas")
    parser.add_argument("--suite", action="append", help="instead of all")
    options = parser.parse_args()
    policies = [name for name in options.policy.split(",") if name]
    for name in policies:
        if name not in scheduling.NUMBERS:
            parser.error(f"there is no policy {name!r}: use {', '.join(scheduling.NUMBERS)}")
    differences = 0
    lacking = dict.fromkeys(options.suite or SUITES)
    for python in options.pythons:
        for suite in options.suite or SUITES:
            if not has(python, suite):
                print(f"{python} {suite}: this Python lacks it", flush=True)
                continue
            lacking.pop(suite, None)
            ways: dict[str, Callable[[], dict[str, str]]] = {}
            if options.under:
                ways["traced"] = partial(traced, python, suite, options.under)
            for name in policies:
                scheduled = scheduling.environment(name)
                ways[name] = partial(outcomes, [python], suite, scheduled)
            differences += compare(python, suite, ways)
    for suite in lacking:
        print(f"{suite}: none of these Pythons has it")
    return 1 if differences or lacking else 0


if __name__ == "__main__":
    sys.exit(main())
