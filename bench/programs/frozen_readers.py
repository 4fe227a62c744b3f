"""Readers start from a file with a large table, and read all of it; says what that takes.

    frozen_readers.py WAY ROWS READERS

A row is a dict of a number, a name, a text and a float. Each reader is a process of its own, not a
fork. Prints megabytes (of 10**6 bytes): `file`; `made`, the peak RSS of the process that makes the
file, and `objects`, its RSS with the table alone; PSS of all readers (it divides what several have
by their number) `before` they open it and when they have read all, `pss`; the greatest `rss`. And
`start_ms`, how long a reader takes from the beginning of opening the file to having read one row;
`read_s`, to read all.
"""

import json
import os
import pickle
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import work
from shared_table import megabytes


def rows(count: int) -> "list[dict[str, Any]]":
    """The table."""
    return [
        {"number": n, "name": f"name {n}", "text": f"some text about {n}, " * 5, "part": n / 7}
        for n in range(count)
    ]


def make(way: str, count: int, path: Path) -> None:
    """What the maker does."""
    table = rows(count)
    objects = megabytes(os.getpid(), "status", "VmRSS")
    if way == "frozen":
        from ungil import share

        share.freeze(table, path)
    else:
        with path.open("wb") as file:
            pickle.dump(table, file, protocol=5)
    work.say({"objects": objects, "made": megabytes(os.getpid(), "status", "VmHWM")})


def read(way: str, count: int, path: Path) -> None:
    """What a reader does."""
    if way == "frozen":
        from ungil import share
    print("here", flush=True)
    sys.stdin.readline()
    began = time.perf_counter()
    if way == "frozen":
        table = share.frozen(path)
    else:
        with path.open("rb") as file:
            table = pickle.load(file)
    if table[count // 2]["number"] != count // 2:
        raise RuntimeError("this is the wrong row")
    start_ms = 1e3 * (time.perf_counter() - began)
    print("started", flush=True)
    sys.stdin.readline()
    began = time.perf_counter()
    total = 0
    for row in table:
        total += row["number"] if row["text"] and row["part"] >= 0 else 0
    if total != count * (count - 1) // 2:
        raise RuntimeError("this is not the table")
    print(json.dumps({"start_ms": start_ms, "read_s": time.perf_counter() - began}), flush=True)
    sys.stdin.readline()  # Until its memory has been looked at.


def together(crew: "list[Any]") -> float:
    """Memory of all of them, in megabytes."""
    return sum(megabytes(reader.pid, "smaps_rollup", "Pss") for reader in crew)


def go_on(reader: "Any") -> None:
    """Tells one to take its next step."""
    reader.stdin.write("\n")
    reader.stdin.flush()


def main() -> None:
    """Measures."""
    way, count, readers = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    if len(sys.argv) > 4:
        role = make if sys.argv[4] == "make" else read
        role(way, count, Path(sys.argv[5]))
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table"
        words = [sys.executable, __file__, way, str(count), "0"]
        made = subprocess.run(
            [*words, "make", str(path)], check=True, capture_output=True, text=True
        )
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        crew = [subprocess.Popen([*words, "read", str(path)], **pipes) for _ in range(readers)]
        for reader in crew:
            reader.stdout.readline()
        before = together(crew)
        # One after the other: how long one takes to start is not how long they take together.
        for reader in crew:
            go_on(reader)
            reader.stdout.readline()
        for reader in crew:
            go_on(reader)
        said = [json.loads(reader.stdout.readline()) for reader in crew]
        memory = {
            "before": before,
            "pss": together(crew),
            "rss": max(megabytes(reader.pid, "status", "VmHWM") for reader in crew),
        }
        for reader in crew:
            reader.communicate("\n")
        work.say(
            {
                **json.loads(made.stdout.splitlines()[-1]),
                **memory,
                "file": path.stat().st_size / 1e6,
                "start_ms": max(one["start_ms"] for one in said),
                "read_s": max(one["read_s"] for one in said),
            }
        )


if __name__ == "__main__":
    main()
