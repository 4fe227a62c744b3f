"""A policy leaves a program alone until it has a second thread."""

from __future__ import annotations

import pytest
from pythons import Python, pythons
from scheduling import run
from suite import PROGRAMS

PYTHONS = pythons("3.8", "3.9", "3.10", "3.11", "3.11-debian", "3.12", "3.13", since=(3, 8))


@pytest.mark.parametrize("how", ["python", "pthread_create", "thrd_create"])
@pytest.mark.parametrize("python", PYTHONS, ids=str)
def test_calls_are_redirected_when_the_first_thread_is_created(python: Python, how: str) -> None:
    told = run(python, PROGRAMS / "first_thread.py", how, policy="interactive")
    assert told == "False\nTrue\n"


@pytest.mark.parametrize("python", PYTHONS, ids=str)
def test_a_child_of_a_single_thread_has_a_page_of_its_own(python: Python) -> None:
    code = (
        "import glob, os\n"
        "child = os.fork()\n"
        "if child: os.waitpid(child, 0)\n"
        "else: print(len(glob.glob('/dev/shm/ungil-policy-*-%d' % os.getpid())), flush=True)"
    )
    assert run(python, "-c", code, policy="fair") == "1\n"
