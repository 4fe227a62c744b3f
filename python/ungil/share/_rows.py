"""Rows that an array gets when it is there: of its shape, and of numbers that it can hold.

A number that does not fit is an error, whether it comes alone, in a list or in an array.
"""

import reprlib
from array import array, typecodes
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeGuard

from ungil.share import _formats

# The kinds of numbers, as numpy calls them.
_NUMBERS: Final = frozenset("buifc")
_INTEGERS: Final = frozenset("bui")


def row(
    given: object, shape: tuple[int, ...], wanted: _formats.Format, dtype: Callable[[], Any]
) -> Any:
    """Return the items of one row of this shape and format, with the buffer protocol.

    `dtype` returns the format as numpy has it. Raises ValueError for another shape, TypeError and
    OverflowError for what cannot be of this format.
    """
    made = _made(given, wanted, dtype)
    if made is None:
        items = _empty(wanted)
        _collect(given, shape, items)
        return items
    if made.shape != shape:
        raise ValueError(
            f"a row of shape {made.shape} does not fit the rows of the array, which have {shape}"
        )
    return made


def rows(
    given: object, shape: tuple[int, ...], wanted: _formats.Format, dtype: Callable[[], Any]
) -> tuple[Any, int]:
    """Return the items of rows of this shape, and how many rows there are; else as `row`."""
    made = _made(given, wanted, dtype)
    if made is None:
        if not _is_list(given):
            name = type(given).__name__
            raise TypeError(f"rows come in an array, or in a list or tuple, not as {name}")
        items = _empty(wanted)
        _collect_all(given, shape, items)
        return items, len(given)
    if made.shape[1:] != shape or not made.shape:
        raise ValueError(
            f"rows of shape {made.shape[1:]} do not fit the rows of the array, which have {shape}"
        )
    return made, made.shape[0]


def _made(given: Any, wanted: _formats.Format, dtype: Callable[[], Any]) -> Any:
    """Return what is given as an array of this format; None for plain numbers that are in none."""
    view = _formats.viewed(given)
    if view is not None and _formats.of_view(view) == wanted:
        return view
    if view is None and wanted[0] in typecodes and not hasattr(given, "__array__"):
        return None
    np = _formats.numpy("an array of anything but plain numbers, or of another dtype than theirs,")
    target: Any = np.dtype(dtype())
    if target.kind not in _NUMBERS and not hasattr(given, "__array__"):
        return np.asarray(given, target)
    found = np.asarray(given if view is None or hasattr(given, "__array__") else view)
    # An empty list says nothing about its items.
    if found.size and not _fits(np, found, target):
        raise TypeError(
            f"items of dtype {found.dtype} are not converted to {target}: convert them yourself,"
            " for example with astype()"
        )
    return found.astype(target)


def _empty(wanted: _formats.Format) -> "array[Any]":
    return array(wanted[0])  # pyright: ignore[reportArgumentType]


def _is_list(given: object) -> TypeGuard[Sequence[Any]]:
    return isinstance(given, (list, tuple))


def _fits(np: Any, found: Any, target: Any) -> bool:
    """Tell whether items can be of this dtype. Raises OverflowError for a number out of range."""
    if target.kind == "b":
        # As of a single item, it counts whether it is true.
        return found.dtype.kind in _NUMBERS
    if found.dtype.kind not in _INTEGERS or target.kind not in _INTEGERS:
        return np.can_cast(found.dtype, target, "same_kind")
    limits = np.iinfo(target)
    for number in (int(found.min()), int(found.max())):
        if not limits.min <= number <= limits.max:
            raise OverflowError(f"{number} does not fit into an item of dtype {target}")
    return True


def _collect(row: Any, shape: tuple[int, ...], items: "array[Any]") -> None:
    """Append the items of a row, or of a part of one. Raises ValueError for another shape."""
    is_nested = _is_list(row) or bool(getattr(row, "shape", ()))
    if is_nested != bool(shape) or (is_nested and len(row) != shape[0]):
        raise ValueError(
            f"{reprlib.repr(row)} is not of shape {shape}, as the rows of the array need it there"
        )
    if is_nested:
        _collect_all(row, shape[1:], items)
    else:
        items.append(row)


def _collect_all(rows: Any, shape: tuple[int, ...], items: "array[Any]") -> None:
    if not shape:
        try:
            items.fromlist(list(rows))
        except TypeError:
            # One by one, to tell which it is.
            pass
        else:
            return
    for row in rows:
        _collect(row, shape, items)
