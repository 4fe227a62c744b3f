"""What is taken out of a container becomes an object here, or stays where it is."""

from __future__ import annotations

import json
import os
from collections.abc import Generator
from pathlib import Path

import pytest
from suite import PROGRAMS, run_python

from ungil import share

# Classes that only a process has which finds this module.
MODULE = """
from enum import Enum
from ungil import share

class Colour(Enum):
    RED = 1

@share.struct
class Point:
    x: int
"""
VALUES = {
    "member of an Enum": "colours.Colour.RED",
    "struct": "colours.Point(x=1)",
    "tuple with one": "(1, colours.Colour.RED)",
    "tuple of tuples with one": "(1, (2, colours.Colour.RED))",
    "frozenset with one": "frozenset([colours.Colour.RED])",
}
KEYS = {name: value for name, value in VALUES.items() if name != "struct"}

FILL = """
import collections, colours, sys
from ungil import share
root, value = share.Heap.open(sys.argv[1]).root, {value}
root["list"] = [value, 0, value]
root["deque"] = collections.deque([value, 0, value])
root["dict"] = {{0: 0, "key": value}}
if {is_key}:
    root["set"] = {{value}}
    root["keys"] = {{value: 1}}
"""

# Each removal, in a process without the module.
REMOVE = PROGRAMS / "share_removals.py"

# In a process with the module everything is there, and can be taken out.
EMPTY = """
import colours, sys
from ungil import share
root, value = share.Heap.open(sys.argv[1]).root, {value}
same = lambda found: getattr(found, "x", found) == getattr(value, "x", value)
if {is_key}:
    assert root["keys"].popitem() == (value, 1)
    assert root["set"].pop() == value
assert same(root["list"].pop()) and same(root["list"].pop(0)) and root["list"][:] == [0]
assert same(root["deque"].pop()) and same(root["deque"].popleft()) and list(root["deque"]) == [0]
key, found = root["dict"].popitem()
assert key == "key" and same(found) and root["dict"].copy() == {{0: 0}}
"""


@pytest.fixture
def name() -> Generator[str]:
    """The name of an empty heap."""
    heap = share.Heap(f"test.{os.getpid()}_removals", max_size=1 << 22)
    assert heap.name is not None
    yield heap.name
    heap.unlink()


def run(program: str | Path, name: str, folder: Path) -> str:
    """What a process prints that uses the heap; code finds the modules in the folder."""
    words = [program, name] if isinstance(program, Path) else ["-c", program, name]
    done = run_python(*words, cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("kind", VALUES)
def test_what_cannot_be_made_here_stays_where_it_is(kind: str, name: str, tmp_path: Path) -> None:
    knowing, ignorant = tmp_path / "knowing", tmp_path / "ignorant"
    knowing.mkdir()
    ignorant.mkdir()
    (knowing / "colours.py").write_text(MODULE, encoding="utf-8")
    of_value = {"value": VALUES[kind], "is_key": kind in KEYS}
    run(FILL.format(**of_value), name, knowing)
    tried = [json.loads(line) for line in run(REMOVE, name, ignorant).splitlines()]
    assert len(tried) == (9 if kind in KEYS else 7)
    for where, error, removed in tried:
        assert error is not None, where
        assert removed == 0, where
    run(EMPTY.format(**of_value), name, knowing)


def test_what_is_taken_out_in_a_transaction_that_fails_stays_too(name: str, tmp_path: Path) -> None:
    (tmp_path / "colours.py").write_text(MODULE, encoding="utf-8")
    of_value = {"value": VALUES["struct"], "is_key": False}
    run(FILL.format(**of_value), name, tmp_path)
    heap = share.Heap.open(name)
    items = heap.root["list"]
    with heap.atomic():
        items.append("ours")
        assert items.pop() == "ours"
        # The class is not known here: the removal alone has not happened.
        with pytest.raises(Exception, match="colours"):
            items.pop()
        items.append("last")
    assert len(items) == 4
    assert items[3] == "last"
