"""Runs the concurrent tests of the heap again and again, beside programs that take the processor.

    python tests/stress.py [--times N] [--quick] [--only WORD]

A test is concurrent if its source starts a thread or a process beside itself. Each run of a test
of Rust is a process of its own; a file of tests of Python runs a few dozen times in one. `--quick`
leaves out the tests of Python, and those of Rust that take longer than a tenth of a second when
nothing else runs. Exits with 1 if any run failed, and shows what it said.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain, count
from pathlib import Path
from types import MappingProxyType
from typing import Any

from suite import RUST_FEATURES

PROJECT = Path(__file__).parent.parent
HEAP = PROJECT / "crates" / "ungil-heap"
# What starts a thread or a process in a test of Rust.
STARTS = re.compile(r"thread::(spawn|scope|Builder)|Child::fork|fork\(|lingering\(")
# These fork a process, often one that dies at a step, and wait for it: one runs at a time.
ONE_AT_A_TIME = (
    "arbitrary_bytes::",
    "collect_damage::",
    "collect_kill::",
    "kill::",
    "operations::parts_that_fail",
    "statistics::a_thousand_processes_attach_one_after_the_other",
)
# Some tests do by themselves what is done here: kill 150 workers, let a hundred processes in ten
# times. Here they do it once, or a few times, with another seed each time.
ONCE = {"UNGIL_KILLS": "15", "UNGIL_PROCESSES": "100"}
PYTHON = ["contended", "processes", "sync", "tasks", "create", "full", "atomic"]
BUSY_LOOPS = 3
# More than there are processors: the tests also take turns with each other.
AT_ONCE = 8
# Python's start takes longer than a test: so many times a process runs a file of tests.
PYTHON_TIMES = 10
SHORT_S = 0.1
# No test takes a tenth of this, even here, so one that does hangs. Those of Python have a watchdog
# of their own, and this is for a file of them, repeated.
HANGS_S = 300.0
PYTHON_HANGS_S = 3_000.0


@dataclass(frozen=True)
class Test:
    """A test, as the command that runs it alone."""

    name: str
    command: tuple[str, ...]
    times: int = 1
    hangs_s: float = HANGS_S

    def failure(self, seed: int) -> str | None:
        """Run it; what it said if it failed."""
        done = self.run(self.hangs_s, {**ONCE, "UNGIL_SEED": str(seed)})
        if done is None:
            return f"{self.name} hangs: it is not over after {self.hangs_s:.0f} s"
        status, said = done
        # One that is not found is not run, and would never fail.
        if status == 0 and re.search(r"\b[1-9]\d* passed", said):
            return None
        return f"{self.name} ended with {status}\n{said}"

    def is_short(self) -> bool:
        """Whether it takes little time when nothing else runs."""
        return self.run(SHORT_S) is not None

    def run(
        self, timeout_s: float, variables: Mapping[str, str] = MappingProxyType({})
    ) -> tuple[int, str] | None:
        """Run it; its status, and what it said. None: it and what it started were killed."""
        with subprocess.Popen(
            self.command,
            cwd=PROJECT,
            env={**os.environ, **variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        ) as process:
            try:
                said, _ = process.communicate(timeout=timeout_s)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                return None
        return process.returncode, said


def main() -> None:
    """Run all, and say how it went."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--times", type=int, default=1_000, help="how often each test runs [1000]")
    parser.add_argument("--quick", action="store_true", help="only what takes less than 0.1 s")
    parser.add_argument(
        "--only", default="", metavar="WORD", help="only tests with it in their names"
    )
    options = parser.parse_args()
    tests = list(rust_tests() if options.quick else chain(rust_tests("--release"), python_tests()))
    tests = [test for test in tests if options.only in test.name]
    if not tests:
        sys.exit(f"no concurrent test has {options.only!r} in its name")
    if options.quick:
        tests = [test for test in tests if test.is_short()]
    failures: list[str] = []
    begun = time.monotonic()
    with busy_loops(), ThreadPoolExecutor(AT_ONCE) as pool:
        runs = [
            test for number in range(options.times) for test in tests if number % test.times == 0
        ]
        for number, failure in enumerate(pool.map(Test.failure, runs, count()), 1):
            if failure is not None:
                failures.append(failure)
                print(failure, flush=True)
            if sys.stderr.isatty():
                print(f"\r{number} of {len(runs)}", end="", file=sys.stderr)
    took_s = time.monotonic() - begun
    print(
        f"{len(tests)} tests, {options.times} times each beside {BUSY_LOOPS} busy loops: "
        f"{len(failures)} of {len(runs)} processes failed, in {took_s:.0f} s"
    )
    sys.exit(bool(failures))


def rust_tests(*options: str) -> Iterator[Test]:
    """Build the tests of ungil-heap, and find the concurrent ones."""
    # Without options, what is built is what `make rust-test` has built.
    package = ["--package", "ungil-heap", "--features", "fault"] if options else RUST_FEATURES
    build = ["cargo", "test", "--quiet", "--no-run", *package, *options]
    built = subprocess.run(
        [*build, "--message-format", "json"], cwd=PROJECT, stdout=subprocess.PIPE, check=True
    )
    for line in built.stdout.splitlines():
        message: dict[str, Any] = json.loads(line)
        program = message.get("executable")
        if program is None or not message["manifest_path"].startswith(str(HEAP)):
            continue
        # Those of the library itself with threads in them are models, which loom runs.
        source = Path(message["target"]["src_path"])
        if "test" in message["target"]["kind"]:
            for test in concurrent(source.read_text()):
                name = f"{source.stem}::{test}"
                if not name.startswith(ONE_AT_A_TIME):
                    yield Test(name, (program, "--exact", test))


def concurrent(source: str) -> Iterator[str]:
    """Name the tests in a source that start something, by themselves or through its functions."""
    function = r"^ *(?:pub )?fn (\w+)(.*?)(?=^ *(?:pub )?fn |\Z)"
    functions = dict(re.findall(function, source, re.MULTILINE | re.DOTALL))
    starts = {name for name, body in functions.items() if STARTS.search(body)}
    for name in re.findall(r"#\[test\]\n(?: *#.*\n)* *fn (\w+)", source):
        calls = set(re.findall(r"\b(\w+)\(", functions[name]))
        if name in starts or calls & starts:
            yield name


def python_tests() -> Iterator[Test]:
    """Find the tests of `ungil.share` with threads and processes."""
    for name in PYTHON:
        file = PROJECT / "tests" / f"test_share_{name}.py"
        again = ("--count", str(PYTHON_TIMES), "--repeat-scope", "session")
        command = (sys.executable, "-m", "pytest", "-q", "-x", *again, str(file))
        yield Test(file.name, command, PYTHON_TIMES, PYTHON_HANGS_S)


@contextmanager
def busy_loops() -> Generator[None]:
    """Have programs run that only take the processor."""
    start: Callable[[], subprocess.Popen[bytes]] = partial(
        subprocess.Popen, [sys.executable, "-c", "while True: pass"]
    )
    loops = [start() for _ in range(BUSY_LOOPS)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


if __name__ == "__main__":
    main()
