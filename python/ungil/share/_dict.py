"""The shared dict."""

import builtins
from collections.abc import Iterator, MutableMapping

from ungil import _native
from ungil.share._monitor import Monitor


class dict(_native.SharedDict, Monitor, MutableMapping[object, object]):
    """A dict that every process with its heap sees and changes."""

    __slots__ = ()

    def __iter__(self) -> Iterator[object]:
        return iter([key for key, _ in self.pairs()])

    def copy(self) -> builtins.dict[object, object]:
        """Copy it into an ordinary dict; shared objects in it stay shared."""
        return builtins.dict(self.pairs())

    def __repr__(self) -> str:
        return f"share.dict({self.copy()!r})"


_native.set_proxy("dict", dict)
