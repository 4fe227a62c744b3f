"""Which inputs need no thread of their own to be read."""

from itertools import count, repeat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

_EMPTY: "dict[Any, Any]" = {}
_INPUTS: "tuple[Iterable[Any], ...]" = (
    *([], (), set(), _EMPTY, _EMPTY.values(), _EMPTY.items()),
    *("", "é", b"", range(0), range(1 << 64), count(), repeat(None)),
)
# Iterators that never wait and run nobody's code. Whoever needs an item asks these at once.
_INSTANT = frozenset(type(iter(items)) for items in _INPUTS)


def is_instant(iterator: object) -> bool:
    """Whether an iterator never waits for its next item, and runs nobody's code."""
    return type(iterator) in _INSTANT
