"""What others do to a list makes no operation on it fail."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from ungil import share

# More changes than any operation begins again for.
CHANGES = 10


@pytest.fixture
def items() -> share.list[int]:
    return share.Heap(max_size=1 << 22).share([3, 1, 2])


class Meddler:
    """Changes a list in another thread, at each of the first moments that it is asked."""

    def __init__(self, items: share.list[int]) -> None:
        self.items = items
        self.changes = 0
        self.pool = ThreadPoolExecutor(1)

    def meddle(self) -> None:
        """Adds an item at the end; nobody waits for it, once that may take as long as we do."""
        self.changes += 1
        change = self.pool.submit(self.items.append, 9)
        # From the fifth attempt on it comes only after what it would disturb.
        if self.changes <= 4:
            change.result()


@contextmanager
def meddling(items: share.list[int]) -> Generator[Meddler]:
    meddler = Meddler(items)
    with meddler.pool:
        yield meddler


class Two:
    """Equals 2, and whoever compares is disturbed."""

    def __init__(self, meddler: Meddler) -> None:
        self.meddler = meddler

    def __eq__(self, other: object) -> bool:
        if other == 2:
            self.meddler.meddle()
        return other == 2

    __hash__ = None  # type: ignore[assignment]


def test_an_item_that_is_there_is_removed_whatever_others_add(items: share.list[int]) -> None:
    with meddling(items) as meddler:
        items.remove(Two(meddler))  # pyright: ignore[reportArgumentType]
    assert meddler.changes == 5
    assert items[:] == [3, 1, 9, 9, 9, 9, 9]


def test_a_sort_ends_whatever_others_add(items: share.list[int]) -> None:
    with meddling(items) as meddler:

        def key(item: int) -> int:
            if item == 2:
                meddler.meddle()
            return item

        items.sort(key=key)
    assert meddler.changes == 5
    # The last one came after it.
    assert items[:] == [1, 2, 3, 9, 9, 9, 9, 9]


def test_a_key_that_changes_the_list_itself_is_an_error(items: share.list[int]) -> None:
    with pytest.raises(ValueError, match=r"^list modified during sort, by its key or by a compar"):
        items.sort(key=lambda item: items.append(0) or item)
    assert items[:3] == [3, 1, 2]


Items = share.list[object]
OPERATIONS: dict[str, Callable[[Items], object]] = {
    "reverse": lambda items: items.reverse(),
    "index": lambda items: items.index(2),
    "index of a tuple": lambda items: items.index((2, 2)),
    "sort": lambda items: items.sort(key=str),
    "sort by another key": lambda items: items.sort(key=lambda item: -hash(item)),
    "pop and insert": lambda items: items.insert(0, items.pop()),
}


@pytest.mark.parametrize("operation", OPERATIONS)
def test_operations_beside_writers_never_fail(
    operation: str,
) -> None:
    items: Items = share.Heap(max_size=1 << 24).share([*range(200), (2, 2)])
    over = threading.Event()

    def write() -> None:
        while not over.is_set():
            items.append(1)
            items.remove(1)

    with ThreadPoolExecutor(2) as pool:
        writers = [pool.submit(write) for _ in range(2)]
        try:
            for _ in range(50):
                OPERATIONS[operation](items)
        finally:
            over.set()
        for writer in writers:
            writer.result()
    assert len(items) == 201
