"""However deep something is nested and however small the stack: RecursionError, never a crash."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from pythons import Python, pythons

import ungil

PROGRAM = Path(__file__).parent / "programs" / "deep.py"
WHERE = Path(ungil.__file__).parent.parent
# CPython 3.14 starts no thread on so small a stack, or compiles nothing there.
KILOBYTES_BEFORE_3_14 = [48, 64]
KILOBYTES = [*KILOBYTES_BEFORE_3_14, 512, 0]
BORROWERS = [it for it in pythons("3.11", "3.12", "3.13", "this") if it.can_borrow]


def outcomes(python: Python, stack: int, depth: int, *cases: str) -> dict[str, str]:
    """What each case came to."""
    words = [python.path, str(PROGRAM), str(stack), str(depth), *cases]
    environment = os.environ | {"PYTHONPATH": str(WHERE)}
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    return dict(line.split(": ") for line in done.stdout.splitlines())


@pytest.mark.parametrize(
    ("python", "kilobytes"),
    [
        (python, kilobytes)
        for python in BORROWERS
        for kilobytes in KILOBYTES
        if python.version < (3, 14) or kilobytes not in KILOBYTES_BEFORE_3_14
    ],
    ids=str,
)
def test_what_is_too_deep_is_a_recursion_error(python: Python, kilobytes: int) -> None:
    for depth in [110, 9_000]:
        came = outcomes(python, kilobytes * 1024, depth)
        assert len(came) > 20
        bad = {case: how for case, how in came.items() if how not in ("done", "RecursionError")}
        assert not bad, depth
        # No stack is so small that these could fail.
        assert came["free"] == came["collect"] == "done"


@pytest.mark.parametrize("python", BORROWERS, ids=str)
def test_what_is_not_deep_is_done_on_the_smallest_stack(python: Python) -> None:
    came = outcomes(python, 48 * 1024 if python.version < (3, 14) else 512 * 1024, 3)
    assert set(came.values()) == {"done"}, came


@pytest.mark.parametrize("python", BORROWERS, ids=str)
def test_the_main_thread_goes_as_deep_as_the_heap_does(python: Python) -> None:
    came = outcomes(python, 0, 128, "store tuple", "store frozenset", "key tuple", "get tuple")
    assert set(came.values()) == {"done"}, came
