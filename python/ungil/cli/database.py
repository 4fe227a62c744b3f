"""A trace as an SQLite database: what `ungil report --sql` asks and `ungil export` writes.

`docs/sql.md` describes the tables. The standard library has SQLite, so nothing is downloaded.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from ungil._native import trace_rows, trace_span

TABLES = {
    "processes": """\
    id INTEGER PRIMARY KEY,       -- unique in the trace; a pid can be used again
    pid INTEGER NOT NULL,
    parent_pid INTEGER NOT NULL,
    command TEXT NOT NULL,        -- the command line
    python TEXT NOT NULL,         -- its version, '' if it is not a Python
    start_ns INTEGER NOT NULL,
    end_ns INTEGER,               -- NULL while it runs
    policy TEXT,                  -- 'stock' for CPython's own; NULL if nobody waited
    switch_interval_ns INTEGER,   -- or the quantum of the policy; NULL if nobody waited
    not_recorded TEXT             -- why its GIL was not recorded; NULL if it was""",
    "threads": """\
    id INTEGER PRIMARY KEY,       -- unique in the trace; a tid can be used again
    process_id INTEGER NOT NULL REFERENCES processes,
    tid INTEGER NOT NULL,
    name TEXT NOT NULL,
    start_ns INTEGER NOT NULL,    -- when it first touched a GIL
    end_ns INTEGER,               -- NULL while it runs
    cpu_ns INTEGER,               -- CPU time of its whole life; NULL while it runs
    lost_events INTEGER           -- NULL while it runs""",
    "holds": """\
    id INTEGER PRIMARY KEY,
    process_id INTEGER NOT NULL REFERENCES processes,
    gil INTEGER NOT NULL,         -- 0 is the main interpreter's
    thread_id INTEGER NOT NULL REFERENCES threads,
    start_ns INTEGER NOT NULL,
    end_ns INTEGER NOT NULL,
    forced INTEGER,               -- 1 if a drop request was pending; NULL if its end is not known
    waited_ns INTEGER NOT NULL,   -- how long other threads waited in it, summed
    waiters_max INTEGER NOT NULL, -- how many threads waited at a time, at most
    asked_ns INTEGER,             -- the first drop request in it; NULL if nobody asked
    cpu_ns INTEGER                -- how long the holder ran; only for holds of 2 ms or more""",
    "waits": """\
    id INTEGER PRIMARY KEY,
    process_id INTEGER NOT NULL REFERENCES processes,
    gil INTEGER NOT NULL,
    thread_id INTEGER NOT NULL REFERENCES threads,
    start_ns INTEGER NOT NULL,
    end_ns INTEGER NOT NULL,
    acquired INTEGER NOT NULL,    -- 0 if the thread or the trace ended first
    culprit_id INTEGER REFERENCES threads, -- who held longest during the wait; NULL if nobody held
    drop_requests INTEGER NOT NULL""",
    "lock_waits": """\
    id INTEGER PRIMARY KEY,
    process_id INTEGER NOT NULL REFERENCES processes,
    lock INTEGER NOT NULL,        -- the same for all that waited for the same lock
    thread_id INTEGER NOT NULL REFERENCES threads,
    start_ns INTEGER NOT NULL,
    end_ns INTEGER NOT NULL,
    ended_by_id INTEGER REFERENCES threads, -- who ended it; NULL after a time limit, or if unknown
    let_go INTEGER NOT NULL       -- 1 if that one had the lock and let go of it""",
    "samples": """\
    hold_id INTEGER REFERENCES holds, -- NULL if it stands for several short holds
    thread_id INTEGER NOT NULL REFERENCES threads,
    at_ns INTEGER NOT NULL,       -- of several holds, when the first one began
    stack_id INTEGER NOT NULL,    -- rows of frames with that stack_id
    held_ns INTEGER NOT NULL,     -- what it represents: a part of the hold, or those holds
    waited_ns INTEGER NOT NULL    -- how long others waited in that part, summed""",
    "frames": """\
    stack_id INTEGER NOT NULL,
    depth INTEGER NOT NULL,       -- 0 is the innermost
    function TEXT NOT NULL,       -- '' for native code whose name is not known
    file TEXT NOT NULL,           -- of native code its library
    line INTEGER,                 -- NULL if it is not known, and for native code
    origin TEXT NOT NULL,         -- 'user', 'python', 'package NAME', 'package' or 'native'
    PRIMARY KEY (stack_id, depth)""",
    "trace": """\
    schema INTEGER NOT NULL,      -- 1
    duration_ns INTEGER NOT NULL, -- from the first process to the last event
    started_unix_ns INTEGER       -- when it began, since 1970; NULL if the trace lacks it""",
}
"""The columns of each table. Times named `_ns` are nanoseconds; `start_ns`, `end_ns`, `at_ns` and
`asked_ns` are since the start of the first process, the others are lengths."""

VIEWS = {
    "named_holds": """\
    SELECT holds.id, processes.pid, processes.command, holds.gil, threads.tid,
        threads.name AS thread, holds.start_ns, holds.end_ns,
        holds.end_ns - holds.start_ns AS held_ns, holds.forced, holds.waited_ns,
        holds.waiters_max, holds.asked_ns, holds.end_ns - holds.asked_ns AS unanswered_ns,
        holds.cpu_ns
    FROM holds
    JOIN threads ON threads.id = holds.thread_id
    JOIN processes ON processes.id = holds.process_id""",
    "named_waits": """\
    SELECT waits.id, processes.pid, processes.command, waits.gil, threads.tid,
        threads.name AS thread, waits.start_ns, waits.end_ns,
        waits.end_ns - waits.start_ns AS waited_ns, culprits.name AS culprit,
        culprits.tid AS culprit_tid, waits.acquired, waits.drop_requests
    FROM waits
    JOIN threads ON threads.id = waits.thread_id
    JOIN processes ON processes.id = waits.process_id
    LEFT JOIN threads AS culprits ON culprits.id = waits.culprit_id""",
    "named_lock_waits": """\
    SELECT lock_waits.id, processes.pid, processes.command, lock_waits.lock, threads.tid,
        threads.name AS thread, lock_waits.start_ns, lock_waits.end_ns,
        lock_waits.end_ns - lock_waits.start_ns AS waited_ns, enders.name AS ended_by,
        enders.tid AS ended_by_tid, lock_waits.let_go
    FROM lock_waits
    JOIN threads ON threads.id = lock_waits.thread_id
    JOIN processes ON processes.id = lock_waits.process_id
    LEFT JOIN threads AS enders ON enders.id = lock_waits.ended_by_id""",
}

SCHEMA = 1


def ddl() -> str:
    """The statements that make the tables and views, with what each column means."""
    tables = (f"CREATE TABLE {name} (\n{columns}\n);\n" for name, columns in TABLES.items())
    views = (f"CREATE VIEW {name} AS\n{query};\n" for name, query in VIEWS.items())
    return "".join((*tables, *views))


def build(trace: str, database: Path, part: tuple[int, int] | None = None) -> str | None:
    """Write a trace, or a part of it, as a database to a file that does not exist or is empty.

    Returns and raises what `fill` does.
    """
    connection = sqlite3.connect(database, isolation_level=None)
    try:
        return fill(connection, trace, part)
    finally:
        connection.close()


def fill(
    connection: sqlite3.Connection, trace: str, part: tuple[int, int] | None = None
) -> str | None:
    """Write a trace, or a part of it, to an empty database, which leaves transactions to others.

    Returns the note of a report about a trace that was cut off, None for a whole one. Raises what
    `_native.read_trace` does, and sqlite3.Error where the file cannot be written.
    """
    # Nobody sees it before it is whole, so there is nothing to recover.
    connection.execute("PRAGMA journal_mode = OFF")
    connection.execute("PRAGMA synchronous = OFF")
    connection.executescript(ddl())
    connection.execute("BEGIN")

    def insert(table: str, rows: list[tuple[int | str | None, ...]]) -> None:
        if rows:
            places = ", ".join("?" * len(rows[0]))
            connection.executemany(f"INSERT INTO {table} VALUES ({places})", rows)

    start_ns, end_ns, unix_ns, cut = trace_span(trace)
    trace_rows(trace, insert, part)
    insert("trace", [(SCHEMA, end_ns - start_ns, unix_ns)])
    connection.execute("CREATE INDEX samples_of_holds ON samples (hold_id)")
    connection.execute("COMMIT")
    return cut
