"""How a task, and what became of it, is written into a heap.

What is small is one pickle, with a tail of fixed length behind it: a block of the heap is quicker
than a tuple of cells. Large strings and bytes, and shared objects, are values of the heap: they
are copied once, or not at all. A list or a dict is always a pickle, as the heap would share it.

A pickle is only ever read by the pool that wrote it, and by its own workers.
"""

from __future__ import annotations

import io
import pickle
from collections import ChainMap
from importlib import import_module
from multiprocessing.reduction import ForkingPickler
from struct import Struct
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any, Final, TypeAlias

from ungil import _native

# What a result is about.
VALUE: Final = 0
ERROR: Final = 1
BEGUN: Final = 2
"""A task with a time limit has begun; its value is the number of its worker."""
NO_START: Final = 3
"""The initialiser of a worker failed; the value says how."""
NESTED: Final = 4
"""A task has submitted another one; its value is (worker, its number there, payload)."""

Item: TypeAlias = bytes | tuple[Any, ...]

# Seconds that a task may take (0: any), and its number.
_TASK_TAIL: Final = Struct("<dq")
# Number and kind.
_RESULT_TAIL: Final = Struct("<qB")
_TASK_TAIL_SIZE: Final = _TASK_TAIL.size
_RESULT_TAIL_SIZE: Final = _RESULT_TAIL.size
# From this size on the copy into the pickle costs more than a tuple of cells.
_LARGE: Final = 1 << 14
# What cloudpickle would make something else of: a copy of the text, bytes.
_NOT_OTHERWISE: Final = (io.TextIOWrapper, memoryview)
_SMALL: Final = frozenset((int, float, bool, type(None), complex))
_NO_KEYWORDS: Final[dict[str, Any]] = {}
_pickled = pickle.dumps
_unpickled = pickle.loads
_pack_task = _TASK_TAIL.pack
_pack_result = _RESULT_TAIL.pack
_unpack_task = _TASK_TAIL.unpack_from
_unpack_result = _RESULT_TAIL.unpack_from


def dumps(value: object) -> bytes:
    """Pickle anything; what pickle cannot, multiprocessing or cloudpickle may."""
    try:
        return pickle.dumps(value, 5)
    except Exception as error:
        return _otherwise(value, error)


def _otherwise(value: object, error: Exception) -> bytes:
    try:
        return bytes(ForkingPickler.dumps(value, 5))
    except Exception:
        pass
    try:
        cloudpickle: Any = import_module("cloudpickle")
    except ImportError:
        raise error from None
    try:
        return _with_functions(value, cloudpickle)
    except Exception as why:
        # The first error may be of a function, which would go by it.
        raise why from None


def _with_functions(value: object, cloudpickle: Any) -> bytes:
    """Pickle functions and classes that have no name to be imported by, too."""
    table = ChainMap(dict.fromkeys(_NOT_OTHERWISE, _refuse), cloudpickle.Pickler.dispatch_table)
    pickler = type("Pickler", (cloudpickle.Pickler,), {"dispatch_table": table})
    file = io.BytesIO()
    pickler(file, 5).dump(value)
    return file.getvalue()


def _refuse(value: object) -> Any:
    raise TypeError(f"cannot pickle {type(value).__name__!r} object")


def is_of_the_heap(value: object) -> bool:
    """Whether the heap holds it better than a pickle does, and gives back the same."""
    kind = type(value)
    if kind in _SMALL:
        return False
    if kind is str or kind is bytes:
        return len(value) >= _LARGE  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    return _native.is_shared(value)


def by_reference(fn: object) -> bool:
    """Whether the pickle of `fn` can only be its name, so that it need not be made again."""
    kind = type(fn)
    if kind is BuiltinFunctionType:
        return isinstance(fn.__self__, ModuleType)  # type: ignore[attr-defined]  # pyright: ignore
    return kind is FunctionType or kind is type


def call(function: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Item:
    """Write a call down of a function that is registered."""
    for value in args:
        if type(value) not in _SMALL and is_of_the_heap(value):
            return _in_cells(function, args, kwargs)
    return pickled_call(function, args, kwargs)


def pickled_call(function: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bytes:
    """Write a call down as one pickle, whatever its arguments are."""
    called = (function, args, kwargs) if kwargs else (function, args)
    try:
        return _pickled(called, 5)
    except Exception as error:
        return _otherwise(called, error)


def _in_cells(function: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Item:
    """Each argument is a value of the heap, or a pickle: which, tells a string of letters."""
    kinds = "".join("h" if is_of_the_heap(value) else "p" for value in args)
    cells = [v if kind == "h" else dumps(v) for v, kind in zip(args, kinds, strict=True)]
    return (function, kinds, dumps(kwargs) if kwargs else None, *cells)


def whole_call(fn: object, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bytes:
    """Write a call down with its function."""
    return dumps((fn, args, kwargs))


def addressed(called: Item, limit: float, number: int) -> Item:
    """Make a call a task: it may take `limit` seconds (0: any), and has a number."""
    if type(called) is bytes:
        return called + _pack_task(limit, number)
    return (number, limit, *called)


def address_of(item: Item) -> tuple[float, int]:
    """Return the time limit and the number of a task, without unpickling anything."""
    if type(item) is bytes:
        return _unpack_task(item, len(item) - _TASK_TAIL_SIZE)
    return item[1], item[0]  # type: ignore[return-value]  # pyright: ignore[reportReturnType]


def call_of(item: Item) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """Return the function, or its number, and the arguments of a task."""
    if type(item) is bytes:
        called = _unpickled(item)
        return called if len(called) == 3 else (*called, _NO_KEYWORDS)
    _, _, function, kinds, keywords, *cells = item
    args = [v if kind == "h" else _unpickled(v) for v, kind in zip(cells, kinds, strict=True)]  # type: ignore[arg-type]  # pyright: ignore
    return function, tuple(args), _unpickled(keywords) if keywords else {}  # type: ignore[arg-type]  # pyright: ignore


def result(number: int, kind: int, value: object) -> Item:
    """Write down what became of a task."""
    if type(value) not in _SMALL and kind == VALUE and is_of_the_heap(value):
        return (number, kind, value)
    return pickled_result(number, kind, value)


def pickled_result(number: int, kind: int, value: object) -> bytes:
    """Write down what became of a task as a pickle, whatever it is."""
    try:
        return _pickled(value, 5) + _pack_result(number, kind)
    except Exception as error:
        return _otherwise(value, error) + _pack_result(number, kind)


def failure(error: BaseException) -> object:
    """Make an exception that tells, where it is raised again, what its traceback was."""
    # What takes long to import, and most workers never need.
    from concurrent.futures.process import (
        _ExceptionWithTraceback,  # pyright: ignore[reportPrivateUsage]
    )

    traceback: Any = error.__traceback__
    return _ExceptionWithTraceback(error, traceback)


def about(item: Item) -> tuple[int, int]:
    """Return the number of the task of a result, and the kind."""
    if type(item) is bytes:
        return _unpack_result(item, len(item) - _RESULT_TAIL_SIZE)
    return item[0], item[1]  # type: ignore[return-value]  # pyright: ignore[reportReturnType]


def value_of(item: Item) -> Any:
    """Return the value of a result; raises what unpickling it raises."""
    return _unpickled(item) if type(item) is bytes else item[2]
