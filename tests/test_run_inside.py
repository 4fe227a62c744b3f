"""A thread that is asked to let go of the GIL while it has a lock does so after it."""

from __future__ import annotations

import json

import pytest
from pythons import Python, pythons
from scheduling import POLICIES, run
from suite import PROGRAMS

PYTHONS = pythons("3.8", "3.11", "3.11-debian", "3.13", since=(3, 8))
PROGRAM = PROGRAMS / "inside.py"


@pytest.mark.parametrize(
    ("python", "policy"),
    [
        *((PYTHONS[-1], policy) for policy in POLICIES),
        # Where a lock is held does not hang on the policy.
        *((python, POLICIES[0]) for python in PYTHONS[:-1]),
    ],
    ids=str,
)
def test_a_thread_that_has_to_let_go_is_seldom_inside_of_a_lock(
    python: Python, policy: str
) -> None:
    result = json.loads(run(python, PROGRAM, policy=policy, quantum_ms=2))
    # CPython interrupts it there in three of four turns, as it is there for so much of its time.
    assert result["looks"] == 200
    assert result["inside"] <= 50
