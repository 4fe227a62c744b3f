"""What worker processes of the tests of `ungil.share` do: importable, as spawned ones need it."""

from __future__ import annotations

import os
import pickle
from multiprocessing.connection import Connection
from multiprocessing.queues import Queue
from typing import Any

from ungil import share


def put_and_answer(heap: share.Heap, target: share.dict[Any, Any], answers: Queue[object]) -> None:
    """Changes an object, and answers with a new one."""
    target["child"] = [os.getpid()]
    answers.put(heap.share(["answer"]))


def send_back(connection: Connection) -> None:
    """Sends what comes, in a list of the same heap, until None comes."""
    while (pair := connection.recv()) is not None:
        heap, given = pair
        connection.send(heap.share([given]))


def count(target: share.dict[Any, Any]) -> share.dict[Any, Any]:
    """Adds one; the object itself is the result."""
    target.incr("count")
    return target


def made(heap: share.Heap, number: int) -> object:
    """A new object, which nobody but its pickle holds when this worker is done with it."""
    return heap.share([number])


def pickled_then_gone(heap: share.Heap, answers: Connection) -> None:
    """Sends a handle as bytes and ends."""
    answers.send_bytes(pickle.dumps(heap.share(["left"])))


def doubled(given: share.array) -> share.array:
    """Doubles what is in an array, and returns the same one."""
    given.numpy()[:] *= 2
    return given


def read_frozen(frozen: Any, part: Any, answers: Connection) -> None:
    """Reads something frozen, and answers with what it found."""
    answers.send([frozen["rows"][7]["name"], [*part]])
