"""Whether tests that judge the GIL fail when they must, and only then, on a busy machine.

    python bench/plugin.py [--right 1000] [--wrong 200] [--load 4]

Beside busy loops, four times as many as the machine has processors, runs a suite that keeps its
limits and one that breaks them in every test. The first one has, for comparison, assertions by the
clock on the wall that hold on an idle machine.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

from surroundings import print_environment

PROGRAMS = Path(__file__).with_name("programs")
RUNS_A_PROCESS = 50


def main() -> None:
    """Measure, and say what came out."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--right", type=int, default=1000, help="runs of the right suite")
    parser.add_argument("--wrong", type=int, default=200, help="runs of the wrong suite")
    parser.add_argument("--load", type=int, default=4, help="busy loops for each processor")
    options = parser.parse_args()
    print_environment(["ungil", "pytest"])
    loops = options.load * (os.cpu_count() or 1)
    print(f"{os.cpu_count()} processors, {loops} busy loops", flush=True)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(loops)]
    try:
        for name, runs in (("right", options.right), ("wrong", options.wrong)):
            tell(name, runs, *repeated(PROGRAMS / f"plugin_{name}.py", runs, busy))
    finally:
        for loop in busy:
            loop.kill()
            loop.wait()


def repeated(
    suite: Path, runs: int, busy: list[subprocess.Popen[bytes]]
) -> tuple[Counter[str], Counter[str], str]:
    """How often each test of a suite ran and failed, and how one of them said so."""
    ran, failed = Counter[str](), Counter[str]()
    sentence = ""
    while runs > 0:
        for test, said in results(suite, min(runs, RUNS_A_PROCESS)):
            ran[test] += 1
            if said:
                failed[test] += 1
                if test.startswith("test_limits"):
                    print(f"{test}: {said}", file=sys.stderr)
                sentence = sentence if "wall_clock" in test else said
        runs -= RUNS_A_PROCESS
        if any(loop.poll() is not None for loop in busy):
            sys.exit("a busy loop has ended: the machine was not as busy as it should have been")
        print(f"{ran.total():,} tests ran, failed: {dict(failed)}", flush=True, file=sys.stderr)
    return ran, failed, sentence


def results(suite: Path, count: int) -> list[tuple[str, str]]:
    """Each test that ran, and what it said if it failed; one process for `count` runs."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "results.xml")
        pytest = [sys.executable, "-m", "pytest", "-q", "-c", os.devnull, "-p", "no:cacheprovider"]
        options = [f"--count={count}", "--repeat-scope=session", f"--junitxml={path}"]
        ran = subprocess.run(
            [*pytest, *options, suite], cwd=folder, check=False, capture_output=True
        )
        if ran.returncode not in (0, 1):
            sys.exit(f"pytest ended with {ran.returncode}: {ran.stderr.decode()}")
        cases = ElementTree.parse(path).iter("testcase")
        return [(test_of(case.get("name", "")), message(case)) for case in cases]


def message(case: ElementTree.Element) -> str:
    """What a test said that failed, else nothing."""
    for kind in ("failure", "error"):
        if (found := case.find(kind)) is not None:
            return found.get("message", kind)
    return ""


def test_of(name: str) -> str:
    """The name of a test without the number of its run, which pytest-repeat adds."""
    test, _, parameters = name.rstrip("]").partition("[")
    return f"{test}[{'-'.join(it for it in parameters.split('-') if not it.isdigit())}]"


def tell(name: str, runs: int, ran: Counter[str], failed: Counter[str], sentence: str) -> None:
    """What came out of one suite."""
    print(f"the {name} suite, {runs} runs:")
    for test in sorted(ran):
        print(f"  {test:<36} ran {ran[test]:>6,}  failed {failed[test]:>6,}")
    if sentence:
        print(f"  one of them said: {sentence}")


if __name__ == "__main__":
    main()
