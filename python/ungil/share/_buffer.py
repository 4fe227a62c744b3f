"""Shared buffers: large bytes that are read where they are."""

from collections.abc import Iterator
from numbers import Integral
from typing import Any, Self, SupportsIndex, cast, overload

from ungil import _native
from ungil.share._handle import Handled, named


class buffer(Handled, _native.SharedBuffer):
    """Bytes in shared memory, which are read without a copy: `share.buffer(data)`.

    `data` is anything with the buffer protocol, and copied when the buffer is put into a heap. An
    int instead is a number of zeros, which can be written; data can if `writable` says so.

    `memoryview(b)` is a view of the shared memory itself, and so is what others make of it:
    `file.write(b)`, `socket.sendall(b)`, `pyarrow.py_buffer(b)`, `numpy.frombuffer(b)`. A view
    keeps the memory as long as it lives, in whichever process. Slices are views as well;
    `bytes(b)` is a copy.
    """

    __slots__ = ()
    # It is compared by what is in it, and that changes.
    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __new__(cls, data: object, *, writable: bool | None = None) -> Self:
        if isinstance(data, _native.Held):
            return super().__new__(cls, data)
        if isinstance(data, Integral):
            size = int(data)
            if size < 0:
                raise ValueError(f"a buffer has 0 bytes or more, not {size}")
            return super().__new__(cls, size=size, writable=writable is not False)
        try:
            source = memoryview(cast(Any, data))
        except (TypeError, ValueError):
            raise TypeError(
                "make a buffer from a number of bytes, or from anything with the buffer protocol, "
                f"not from {type(data).__name__}"
            ) from None
        return super().__new__(cls, source=source, writable=writable is True)

    @property
    def nbytes(self) -> int:
        """How many bytes it has."""
        return len(self)

    @overload
    def __getitem__(self, key: SupportsIndex, /) -> int: ...
    @overload
    def __getitem__(self, key: slice, /) -> memoryview: ...
    def __getitem__(self, key: Any, /) -> Any:
        view: Any = memoryview(self)
        return view[key]

    def __setitem__(self, key: Any, value: Any, /) -> None:
        memoryview(self)[key] = value

    def __iter__(self) -> Iterator[int]:
        view: Any = memoryview(self)
        return iter(view)

    def tobytes(self) -> bytes:
        """Copy it."""
        return bytes(self)

    def __copy__(self) -> bytes:
        return self.tobytes()

    def __deepcopy__(self, _memo: object) -> bytes:
        return self.tobytes()

    def __eq__(self, other: object) -> bool:
        """Tell whether the bytes are equal; any object with the buffer protocol is compared."""
        if self is other:
            return True
        try:
            others = memoryview(cast(Any, other))
        except (TypeError, ValueError, BufferError):
            return NotImplemented
        return memoryview(self) == others

    def __repr__(self) -> str:
        try:
            return f"<share.buffer of {len(self)} bytes>"
        except RuntimeError:
            return f"<share.buffer at {id(self):#x}: unshared>"


named(buffer, "buffer")
_native.set_proxy("buffer", buffer)
