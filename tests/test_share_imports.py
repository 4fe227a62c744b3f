"""`import ungil.share` is quick, and whatever it leaves out comes when it is asked for."""

import os
import pickle
import subprocess
import sys
from datetime import date

import pytest

from ungil import share

# Modules of Python's that take long to import, and that few programs with a heap need.
LONG = ("concurrent.futures", "dataclasses", "decimal", "hashlib", "inspect", "logging", "zoneinfo")


def imported(code: str) -> set[str]:
    """The modules that a new interpreter has after this code."""
    told = f"{code}\nimport sys\nprint(*sys.modules)"
    # What a tool that measures tests imports does not count.
    environment = {name: value for name, value in os.environ.items() if "COV" not in name}
    return {
        *subprocess.run(
            [sys.executable, "-c", told],
            env=environment,
            check=True,
            capture_output=True,
            text=True,
        ).stdout.split()
    }


@pytest.mark.parametrize("code", ["import ungil.share", "import ungil.share._pool.worker"])
def test_a_process_that_only_uses_a_heap_imports_nothing_that_takes_long(code: str) -> None:
    assert not imported(code) & {*LONG} - imported("pass")


def test_every_public_name_is_there_when_it_is_asked_for() -> None:
    for name in share.__all__:
        assert getattr(share, name) is not None
        assert name in dir(share)


def test_a_name_that_does_not_exist_is_no_attribute() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Dict'"):
        _ = share.Dict  # type: ignore[attr-defined]  # pyright: ignore


READER = """
import pickle, sys
root = pickle.load(sys.stdin.buffer)
assert "datetime" not in sys.modules
print(repr(root["day"]))
"""


def test_a_value_can_be_read_before_its_type_is_imported() -> None:
    heap = share.Heap()
    heap.root["day"] = date(2026, 11, 25)
    told = subprocess.run(
        [sys.executable, "-c", READER],
        input=pickle.dumps(heap.root),
        check=True,
        capture_output=True,
    ).stdout
    assert told == b"datetime.date(2026, 11, 25)\n"
