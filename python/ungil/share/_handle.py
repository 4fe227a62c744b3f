"""What is pickled of shared objects: handles, by which another process finds the same object.

A handle holds its object until it is unpickled for the first time, or until the process that
pickled it has ended; unpickled again, it leads to the object as long as any process holds it or it
is in another object. It says where the object is, and nothing of what is in it: no process ever
unpickles what another one wrote into a heap.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from ungil import _native


def received(place: str, handle: bytes) -> object:
    """Return the shared object of a handle; what a pickled one calls.

    Raises FileNotFoundError if the heap is gone, ReferenceError if the object is.
    """
    return _native.receive_handle(place, handle)


class Handled:
    """A shared object, which is pickled as a handle."""

    __slots__ = ()

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return received, _native.send_handle(self)


class Container(Handled):
    """A shared object with others in it; its copies are ordinary objects."""

    __slots__ = ()

    def __copy__(self) -> Any:
        shared: Any = self
        return shared.copy()

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        copied = self.__copy__()
        # Before what is in it, which it may be itself.
        memo[id(self)] = copied
        if hasattr(copied, "keys"):
            deep = [(copy.deepcopy(k, memo), copy.deepcopy(v, memo)) for k, v in copied.items()]
        else:
            deep = [copy.deepcopy(item, memo) for item in copied]
        copied.clear()
        # Lists and deques are extended, dicts and sets updated.
        add = copied.extend if hasattr(copied, "extend") else copied.update
        add(deep)
        return copied


def named(class_: type, name: str) -> None:
    """Name a class as its users do, in messages too: the name of a builtin one would mislead."""
    class_.__module__ = "ungil.share"
    class_.__name__ = f"share.{name}"


def type_name(given: object) -> str:
    """The name of the type of an object, as its users would write it: `int`, `queue.Queue`."""
    class_ = type(given)
    # The name of a shared one has its module.
    is_short = class_.__module__ in ("builtins", "ungil.share")
    return class_.__name__ if is_short else f"{class_.__module__}.{class_.__name__}"
