"""One way to read a table that never changes, and the builtin, in turns and in the same loop.

    frozen_operation.py OPERATION WAY SECONDS

Prints what shared_operation.py prints: nanoseconds of the loop with it (`loop_ns`), with the
builtin (`builtin_loop_ns`) and with nothing in it (`empty_ns`), each the median of all turns, and
the ratios `ratio` (without the empty loop) and `loop_ratio`.
"""

import os
import random
import shelve
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import work
from shared_operation import compared, timer
from shared_subjects import FORK

FEW, MANY = 1_000, 500_000
GET = "subject[key]"
ROW = "subject[key]['number']"
# Of each operation: how many entries, and the statement.
OPERATIONS = {
    "str key, few": (FEW, GET),
    "str key, many": (MANY, GET),
    "long text": (FEW, GET),
    "get()": (FEW, "subject.get(key)"),
    "list item": (FEW, GET),
    "row's number": (FEW, ROW),
    "row's number, many": (MANY, ROW),
    "row's text": (FEW, "subject[key]['text']"),
    "field of a row in hand": (FEW, "subject['number']"),
    "all items": (FEW, "for pair in subject.items(): pass"),
}


def content(operation: str) -> "tuple[Any, list[Any]]":
    """The table, and the keys in the order of their use."""
    count, statement = OPERATIONS[operation]
    order = list(range(count))
    random.Random(1).shuffle(order)
    del order[20_000:]
    if "row" in operation:
        rows = [
            {
                "number": 1_000 + n,
                "name": f"name {n}",
                "text": f"a text about number {n}",
                "part": n / 7,
            }
            for n in range(count)
        ]
        return (rows[0], order) if operation.endswith("hand") else (rows, order)
    if operation == "list item":
        return [1_000 + number for number in range(count)], order
    if operation == "long text":
        return {f"name {n}": f"some text about number {n}" for n in range(count)}, _names(order)
    table = {f"name {number}": 1_000 + number for number in range(count)}
    return table, [0] if "items" in statement else _names(order)


def _names(order: "list[int]") -> "list[str]":
    return [f"name {number}" for number in order]


@contextmanager
def subject(way: str, table: Any) -> "Iterator[tuple[Any, str | None]]":
    """The table in a way to have it, and its own statement, if it has one."""
    folder = tempfile.mkdtemp(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
    path = f"{folder}/table"
    try:
        if way == "frozen":
            from ungil import share

            share.freeze(table, path)
            yield share.frozen(path), None
        elif way == "heap":
            from ungil import share

            yield share.Heap(max_size=1 << 30).share(table), None
        elif way == "Manager":
            with FORK.Manager() as manager:
                yield manager.dict(table), None
        elif way == "shelve":
            with shelve.open(path) as opened:
                opened.update(table)
                yield opened, None
        elif way == "sqlite":
            connection = sqlite3.connect(path)
            connection.execute("create table t (key text primary key, value) without rowid")
            connection.executemany("insert into t values (?, ?)", table.items())
            connection.commit()
            select = "'select value from t where key = ?'"
            yield connection, f"subject.execute({select}, (key,)).fetchone()"
        else:
            import lmdb

            with lmdb.open(path, map_size=1 << 30, sync=False) as environment:
                with environment.begin(write=True) as transaction:
                    for key, value in table.items():
                        transaction.put(key.encode(), b"%d" % value)
                with environment.begin() as transaction:
                    yield transaction, "int(subject.get(key.encode()))"
    finally:
        shutil.rmtree(folder)


def main() -> None:
    """Measures."""
    operation, way, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
    table, keys = content(operation)
    usual = OPERATIONS[operation][1]
    with subject(way, table) as (shared, own):
        loops = [
            timer("pass", None, keys),
            timer(usual, table, keys),
            timer(own or usual, shared, keys),
        ]
        work.say(compared(loops, len(keys), seconds))


if __name__ == "__main__":
    main()
