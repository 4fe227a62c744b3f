"""Shared arrays: numbers or records in a row, in memory that numpy and others use as it is."""

import builtins
import math
import sys
from array import array as plain_array
from collections.abc import Iterator
from numbers import Integral
from typing import TYPE_CHECKING, Any, Self, SupportsIndex, cast

from ungil import _native
from ungil.share import _formats, _rows
from ungil.share._handle import Handled, named

# Of more items, `repr` tells the shape alone.
_SHOWN = 20


class array(Handled, _native.SharedArray):
    """An array of numbers or records in shared memory, with any number of axes.

    Made from a shape (an int or a tuple of ints), it is full of zeros. `numpy.int64(7)` is an int
    and so a shape, as in `numpy.zeros`: `share.array([x])` has one item. Made from data (an array,
    anything with the buffer protocol, a list of numbers), it is a copy, made when you put it into a
    heap: `heap.root["a"] = share.array((3, 4), "float32")`, or `share.array(ndarray)`. `dtype` is
    anything that numpy takes, or a format of `struct` for plain numbers, for which numpy is not
    needed; without it, it is that of the data, or float64.

    `numpy.asarray(a)` and `memoryview(a)` copy nothing: all processes read and write the same
    memory, with no lock. A view keeps its memory as long as it lives, and has the length that the
    array had when the view was made. `append`, `extend` and `resize` change the length of the first
    axis. Within `capacity` the items stay where they are; beyond it they move, and older views no
    longer show the array.
    """

    __slots__ = ()
    # It is compared by what is in it, and that changes.
    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __new__(
        cls, shape_or_data: object, dtype: object = None, *, capacity: int | None = None
    ) -> Self:
        if isinstance(shape_or_data, _native.Held):
            return super().__new__(cls, shape_or_data)
        source = None
        wanted = None if dtype is None else _formats.of_dtype(dtype)
        shape = _shape(shape_or_data)
        if shape is None:
            source = _formats.source(shape_or_data, wanted, lambda: dtype)
            shape, wanted = source.shape or (), _formats.of_view(source)
            if not shape:
                raise ValueError(
                    "a shared array has at least one axis, but these data have none: put them"
                    " into a list, or give a shape"
                )
        code, itemsize = wanted or ("d", 8)
        if capacity is not None and capacity < shape[0]:
            raise ValueError(f"a capacity of {capacity} is less than the length, {shape[0]}")
        return super().__new__(
            cls,
            source=source,
            shape=shape,
            format=code,
            itemsize=itemsize,
            capacity=capacity or shape[0],
        )

    @property
    def ndim(self) -> int:
        """How many axes there are."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """How many items there are."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of all items."""
        return self.size * self.itemsize

    @property
    def dtype(self) -> Any:
        """What an item is, as numpy says it. Raises ModuleNotFoundError without numpy."""
        return self.numpy().dtype

    def numpy(self, *, readonly: bool = False) -> Any:
        """Return a numpy array of the same memory; with `readonly`, one that refuses writes.

        Raises ModuleNotFoundError without numpy.
        """
        np = _formats.numpy("a numpy array of shared memory")
        view = memoryview(self)
        return np.asarray(view.toreadonly() if readonly else view)

    def extend(self, rows: object) -> None:
        """Add rows at the end, in one step: an array of them, or a list of numbers or of rows.

        Others see them when all of them are there. Raises ValueError if they are of another
        shape, TypeError if they cannot be of this dtype, OverflowError for a number out of its
        range.
        """
        source, count = _rows.rows(rows, self.shape[1:], self._format(), lambda: self.dtype)
        self.extend_by(source, count)

    def _append_row(self, row: object) -> None:
        """Add one row, or an item that is no plain number; what `append` calls."""
        made = _rows.row(row, self.shape[1:], self._format(), lambda: self.dtype)
        self.extend_by(made, 1)

    if not TYPE_CHECKING:  # which would find every attribute here

        def __getattr__(self, name):
            message = f"'share.array' object has no attribute {name!r}"
            # Only who has imported it takes this for an array of numpy.
            ndarray = getattr(sys.modules.get("numpy"), "ndarray", None)
            if not name.startswith("_") and hasattr(ndarray, name):
                message += (
                    f"; numpy() returns an array of the same memory, which has: .numpy().{name}"
                )
            raise AttributeError(message, name=name, obj=self)

    def _format(self) -> _formats.Format:
        return self.format, self.itemsize

    def _part(self, key: object) -> Any:
        """Return what is no plain number; what `[]` calls."""
        return self.numpy()[key]

    def _set_part(self, key: object, value: object) -> None:
        """Change what is no plain number; what `[] =` calls."""
        self.numpy()[key] = value

    def __iter__(self) -> Iterator[Any]:
        """Go through the items, or the rows, of this moment's length."""
        is_plain = self.ndim == 1 and self.format in _formats.NUMBERS
        items: Any = memoryview(self) if is_plain else self.numpy()
        return iter(items)

    def tolist(self) -> builtins.list[Any]:
        """Copy the items into lists, one for each axis."""
        if self.format in _formats.NUMBERS:
            return memoryview(self).tolist()
        return self.numpy().tolist()

    def tobytes(self) -> bytes:
        """Copy the memory, in the order of C."""
        return memoryview(self).tobytes()

    def copy(self) -> Any:
        """Copy it into an ordinary numpy array. Raises ModuleNotFoundError without numpy."""
        return self.numpy().copy()

    __copy__ = copy

    def __deepcopy__(self, _memo: object) -> Any:
        return self.copy()

    def __array__(self, dtype: object = None, copy: bool | None = None) -> Any:
        made = self.numpy()
        if dtype is not None and made.dtype != dtype:
            if copy is False:
                raise ValueError(f"a numpy array of dtype {dtype} would be a copy")
            return made.astype(dtype)
        return made.copy() if copy else made

    @property
    def __array_interface__(self) -> builtins.dict[str, Any]:
        """The same memory, as numpy's array interface says it, version 3."""
        # The object that keeps the memory: this array may have moved to other memory by the time.
        memory, _ = self.memory()
        return {**self.numpy().__array_interface__, "data": memory}

    def __dlpack__(self, *, stream: None = None, **asked: Any) -> Any:
        """Return a DLPack capsule of the same memory. Raises ModuleNotFoundError without numpy."""
        return self.numpy().__dlpack__(stream=stream, **asked)

    def __dlpack_device__(self) -> tuple[int, int]:
        """Return that it is the memory of processors: (kDLCPU, 0)."""
        return 1, 0

    def __eq__(self, other: object) -> bool:
        """Tell whether shape and items are equal; numpy arrays compare item by item instead."""
        if self is other:
            return True
        if isinstance(other, (array, plain_array, memoryview)):
            return self._is_equal(other)
        return NotImplemented

    def _is_equal(self, other: Any) -> bool:
        mine, others = memoryview(self), memoryview(other)
        if mine.format in _formats.NUMBERS:
            return mine == others
        is_alike = (mine.shape, mine.format) == (others.shape, others.format)
        return is_alike and mine.tobytes() == others.tobytes()

    def __repr__(self) -> str:
        try:
            shape = self.shape
        except RuntimeError:
            return f"<share.array at {id(self):#x}: unshared>"
        if math.prod(shape) > _SHOWN or self.format not in _formats.NUMBERS:
            return f"<share.array of shape {shape}, format {self.format!r}>"
        return f"share.array({self.tolist()}, {self.format!r})"


def _shape(given: object) -> tuple[int, ...] | None:
    """Return a shape; None if it is something else. Raises ValueError for an impossible one."""
    if isinstance(given, Integral):
        axes: tuple[object, ...] = (given,)
    elif isinstance(given, tuple):
        axes = cast("tuple[object, ...]", given)
    else:
        return None
    if not axes or not all(_is_length(axis) for axis in axes):
        raise TypeError(f"a shape is an int or a tuple of at least one, not {given!r}")
    shape = tuple(cast("SupportsIndex", axis).__index__() for axis in axes)
    if min(shape) < 0:
        raise ValueError(f"no axis of an array can be shorter than 0, but the shape is {given!r}")
    return shape


def _is_length(axis: object) -> bool:
    # A flag counts nothing.
    return isinstance(axis, SupportsIndex) and not isinstance(axis, bool)


named(array, "array")
_native.set_proxy("array", array)
