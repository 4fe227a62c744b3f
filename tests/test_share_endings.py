"""Objects that are left at the end of a program use what is shared while they go."""

from __future__ import annotations

import subprocess
import sys

import pytest
from suite import PATIENCE_S

# What an object does that a module still has when the interpreter ends, and what comes of it.
ENDINGS = {
    "d['one']": "1",
    "d['missing']": "KeyError",
    "d.pop('missing')": "KeyError",
    "d.update(inner={'a': [1]}) or d['inner']['a'][0]": "1",
    "d.update(x='x' * 100, y=2 ** 100) or len(d['x'])": "100",
    "l[5]": "IndexError",
    "l.append([1]) or len(l)": "1",
    "lock.acquire()": "True",
    "lock.acquire() and lock.release()": "None",
    "q.get_nowait()": "Empty",
    "q.get(timeout=0.01)": "Empty",
    "q.put(7) or q.get()": "7",
    "repr(d)": "\"share.dict({'one': 1})\"",
}
PROGRAM = """\
import sys
from ungil import share

heap = share.Heap(max_size=1 << 24)
d, l = heap.share({"one": 1}), heap.share([])
lock, q = heap.share(share.Lock()), heap.share(share.Queue())

class Left:
    def __del__(self, do=eval, what=sys.argv[1], names=dict(globals()), type=type, print=print):
        try:
            told = repr(do(what, names))
        except Exception as error:
            told = type(error).__name__
        print(told)

left = Left()
"""


@pytest.mark.parametrize("what", ENDINGS)
def test_what_an_object_does_with_shared_ones_as_the_interpreter_ends_is_done(what: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, what],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert (ended.returncode, ended.stdout.strip(), ended.stderr) == (0, ENDINGS[what], "")
