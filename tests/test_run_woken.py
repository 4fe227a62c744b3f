"""Who was woken by a thread that let go of a lock is in no greater hurry than that one."""

from __future__ import annotations

import pytest
from pythons import Python, pythons
from scheduling import ENDLESS_QUANTUM, run
from suite import PROGRAMS

PYTHONS = pythons("3.8", "3.11", "3.11-debian", "3.13", since=(3, 8))
PROGRAM = PROGRAMS / "woken.py"


def order(python: Python, how: str) -> str:
    """Who goes first, if nobody is asked: of two that have used as little, the first to come."""
    return run(python, PROGRAM, how, policy="fair", quantum_ms=ENDLESS_QUANTUM)


@pytest.mark.parametrize("python", PYTHONS, ids=str)
@pytest.mark.parametrize("how", ["lock", "within"])
def test_a_thread_that_was_woken_by_one_that_has_used_more_lets_others_go_first(
    python: Python, how: str
) -> None:
    assert order(python, how) == "second first\n"


@pytest.mark.parametrize("python", PYTHONS, ids=str)
def test_one_that_the_kernel_woke_keeps_its_place(python: Python) -> None:
    assert order(python, "pipe") == "first second\n"
