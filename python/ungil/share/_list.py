"""The shared list."""

import builtins
from typing import cast

from ungil import _native
from ungil.share._handle import Container


class list(Container, _native.SharedList):
    """A list that every process with its heap sees and changes."""

    __slots__ = ()

    def copy(self) -> builtins.list[object]:
        """Copy it into an ordinary list; shared objects in it stay shared."""
        return cast("builtins.list[object]", self[:])

    def __repr__(self) -> str:
        return f"share.list({self[:]!r})"


_native.set_proxy("list", list)
