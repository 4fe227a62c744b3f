"""What the items of arrays are: formats of PEP 3118, as `struct` and numpy write them.

numpy is asked only about what is not a plain number, and imported only then.
"""

import sys
from array import array, typecodes
from collections.abc import Callable
from importlib import import_module
from struct import calcsize
from typing import Any, Final, TypeAlias, cast

# Numbers in native order, by their format. Those of 8 bytes have several names, of which numpy
# uses this one.
NUMBERS: Final = {code: calcsize(code) for code in "?bBhHiIlLfd"}
_SAME: Final = {"q": "l", "Q": "L", "n": "l", "N": "L"}
_NAMES: Final = {
    "bool": "?",
    "int8": "b",
    "uint8": "B",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "l",
    "uint64": "L",
    "float32": "f",
    "float64": "d",
}
_TYPES: Final[dict[object, str]] = {bool: "?", int: "l", float: "d"}

# What an item is, and how many bytes it has.
Format: TypeAlias = tuple[str, int]


def numpy(what: str) -> Any:
    """Import numpy, for `what`; raises ModuleNotFoundError that says so."""
    try:
        return import_module("numpy")
    except ModuleNotFoundError as error:
        if error.name != "numpy":
            raise
        raise ModuleNotFoundError(f"{what} needs numpy: pip install numpy", name="numpy") from None


def of_dtype(dtype: object) -> Format:
    """Return the format of a dtype, and the bytes of an item.

    Raises TypeError for what cannot be shared.
    """
    if isinstance(dtype, str):
        code = _NAMES.get(dtype, _SAME.get(dtype, dtype))
        if code in NUMBERS:
            return code, NUMBERS[code]
    elif isinstance(dtype, type) and dtype in _TYPES:
        code = _TYPES[dtype]
        return code, NUMBERS[code]
    np = numpy(f"the dtype {dtype!r}")
    try:
        made = np.dtype(dtype)
    except TypeError as error:
        raise TypeError(f"numpy knows no dtype {dtype!r}: {error}") from None
    # Several items: numpy says of a single one that it is aligned where the next would not be.
    view = viewed(np.empty(2, made))
    assert view is not None, "numpy's arrays have the buffer protocol"
    return _as_written(view)


def of_view(view: memoryview) -> Format:
    """Return the format of what is viewed, and the bytes of an item. Raises TypeError as above."""
    dtype = getattr(view.obj, "dtype", None)
    # A record, as numpy writes it for an array of any length.
    return _as_written(view) if dtype is None or view.format[0] != "T" else of_dtype(dtype)


def _as_written(view: memoryview) -> Format:
    code = view.format.lstrip("@")
    if sys.byteorder == "little" and len(code) == 2 and code[0] in "<=":
        code = {"l": "i", "L": "I"}.get(code[1], code[1])
    code = _SAME.get(code, code)
    if "O" in code and "O" in _without_names(code):
        raise TypeError(
            "items of dtype object are Python objects: use a share.list, an array cannot hold them"
        )
    return code, view.itemsize


def _without_names(code: str) -> str:
    """Return a format without the names of fields, which stand between colons."""
    return "".join(code.split(":")[::2])


def viewed(given: Any) -> memoryview | None:
    """Return a view of the memory of an object; None if it has none.

    Raises TypeError for items that have no format, as numpy's dates, and for a masked array.
    """
    if _is_masked(given):
        raise TypeError(
            "a masked array would lose its mask: share its filled(value), or its data and its mask"
            " as two arrays"
        )
    try:
        return memoryview(given)
    except TypeError:
        return None
    except ValueError as error:
        raise TypeError(
            f"items like those of this {type(given).__name__} cannot be shared ({error}): share its"
            " view('int64'), and take .view(dtype) of what you read"
        ) from None


def _is_masked(given: object) -> bool:
    # Only who has imported that part of numpy has one.
    masked = getattr(sys.modules.get("numpy.ma"), "MaskedArray", None)
    return masked is not None and isinstance(given, masked)


def source(data: object, wanted: Format | None, dtype: Callable[[], object]) -> memoryview:
    """Return a view of items in the order of C or not, which are to be copied into a heap.

    Data without memory of their own, or of another format than is wanted, become an ordinary array
    first: a list of plain numbers one of the standard library, all else one of numpy, of the dtype
    that `dtype` returns. Raises TypeError for what is no data, and what those raise.
    """
    view = viewed(data)
    if view is not None:
        if wanted is None or of_view(view) == wanted:
            return view
    elif isinstance(data, list):
        made = _numbers(cast("list[object]", data), wanted)
        if made is not None:
            return memoryview(made)
    elif not hasattr(data, "__array__"):
        raise TypeError(
            "make an array from a shape (an int or a tuple of ints), from anything with the "
            f"buffer protocol, or from a list of numbers, not from {type(data).__name__}"
        )
    np = numpy("an array of anything but a list of numbers, or of another dtype than theirs,")
    made = viewed(np.asarray(data, dtype()))
    assert made is not None, "numpy's arrays have the buffer protocol"
    return made


def _numbers(items: list[object], wanted: Format | None) -> "array[Any] | None":
    """Return an array of plain numbers; None if they are something else."""
    if wanted is not None:
        return array(wanted[0], items) if wanted[0] in typecodes else None  # pyright: ignore
    if not all(type(item) in (int, float) for item in items):
        return None
    return array("l" if all(type(item) is int for item in items) else "d", items)  # pyright: ignore
