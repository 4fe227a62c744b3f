"""How often Python's collector of cycles looks, while very many items run at once.

It looks whenever 700 objects (2,000 from 3.12 on) are there that were not before. Ten thousand
coroutines that begin are a hundred thousand such objects, none of which is garbage, and looking at
them again and again costs a fifth to a third of the time that it takes to run them. So while so
many run, it waits for more: gc.set_threshold, which is for the whole process, and is put back when
they have ended. A program that has switched the collector off, or has set a higher threshold, is
left alone.
"""

import gc
from _thread import RLock

# Coroutine, task, future, timer and what these refer to.
_OBJECTS_OF_AN_ITEM = 20
_MOST_OBJECTS = 1_000_000

# The collector may run in here, and close a fan-out that somebody forgot.
_lock = RLock()
_crowds: "dict[int, int]" = {}
_usual = 0  # what the program itself has set
_ours = -1  # what was set here


def expect(owner: object, items: int) -> None:
    """From now on `items` run at once in `owner`; when they have ended it is 0."""
    global _ours, _usual
    with _lock:
        if items:
            _crowds[id(owner)] = items
        elif _crowds.pop(id(owner), None) is None:
            return
        before = _ours
        first, *others = gc.get_threshold()
        if first not in (before, _ours):
            _usual = first
        if _usual == 0:  # switched off
            return
        _ours = max(_usual, min(_OBJECTS_OF_AN_ITEM * sum(_crowds.values()), _MOST_OBJECTS))
        if _ours != first:
            gc.set_threshold(_ours, *others)
