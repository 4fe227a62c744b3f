"""CPython's own tests of ProcessPoolExecutor pass with `share.Pool`.

`make pool-conformance` runs all of them, with every way to start processes. Here are those that
take little time, with fork, by the oldest Python of this machine that has them as a package.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pool_conformance
import pytest
from pythons import pythons
from suite import PATIENCE_S

import ungil

SCRIPT = Path(pool_conformance.__file__)
PACKAGE = Path(ungil.__file__).parent.parent


def with_suite() -> list[str]:
    return [
        python.path
        for python in pythons()
        if python.can_borrow
        and subprocess.run(
            [python.path, "-c", "import test.test_concurrent_futures.executor"],
            capture_output=True,
            check=False,
        ).returncode
        == 0
    ]


def test_the_tests_of_this_python_that_apply_pass() -> None:
    found = with_suite()
    if not found:
        pytest.fail(
            "no Python here has CPython's test.test_concurrent_futures as a package:"
            " pyenv's 3.13 has it (make pythons), and Debian's libpython3-testsuite"
        )
    done = subprocess.run(
        [found[0], str(SCRIPT), "--quick", "fork"],
        env={"PYTHONPATH": str(PACKAGE), "PATH": ""},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:] + done.stdout
    assert ": 0 failed" in done.stdout
