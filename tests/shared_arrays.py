"""What the tests of shared arrays have in common."""

from typing import Any

from ungil import share


def shared(heap: share.Heap, *given: Any, **options: Any) -> share.array:
    """An array in a heap."""
    made = heap.share(share.array(*given, **options))
    assert isinstance(made, share.array)
    return made
