"""The shared list."""

from ungil import _native
from ungil.share._monitor import Monitor


class list(_native.SharedList, Monitor):
    """A list that every process with its heap sees and changes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"share.list({self[:]!r})"


_native.set_proxy("list", list)
