"""Work that libraries with locks of their own do for Python: OpenSSL's, SQLite's and Tcl's.

The arguments are the kind of work, how much, and how many threads share it. There is always one
more thread, which waits, so that the GIL is what it is in a program of threads.
"""

import argparse
import threading
from collections.abc import Callable

import work

# Without certificates: the oldest kind of handshake that OpenSSL still has.
ANONYMOUS = "AECDH-AES256-SHA:@SECLEVEL=0"
MANY_ROWS = """
with recursive numbers(n) as (select 1 union all select n + 1 from numbers where n < 2000)
select count(distinct printf('%d of these', n)) from numbers
"""


def handshakes(count: int) -> None:
    """TLS, between a client and a server that are one thread."""
    import ssl

    def context(kind: int) -> ssl.SSLContext:
        made = ssl.SSLContext(kind)
        made.check_hostname, made.verify_mode = False, ssl.CERT_NONE
        made.maximum_version = ssl.TLSVersion.TLSv1_2
        made.set_ciphers(ANONYMOUS)
        return made

    of_client, of_server = context(ssl.PROTOCOL_TLS_CLIENT), context(ssl.PROTOCOL_TLS_SERVER)
    for _ in range(count):
        there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
        sides = [
            of_client.wrap_bio(back, there, server_side=False),
            of_server.wrap_bio(there, back, server_side=True),
        ]
        while sides:
            for side in list(sides):
                try:
                    side.do_handshake()
                    sides.remove(side)
                except ssl.SSLWantReadError:
                    pass


def digests(count: int) -> None:
    """SHA-256 of little."""
    import hashlib

    for _ in range(count):
        hashlib.new("sha256", b"of little", usedforsecurity=False).digest()


def queries(count: int) -> None:
    """Short ones, of a database in memory: each lets go of the GIL several times."""
    import sqlite3

    database = sqlite3.connect(":memory:")
    database.execute("create table host (name text primary key, address text)")
    database.executemany("insert into host values (?, ?)", [(str(n), "here") for n in range(1000)])
    for n in range(count):
        database.execute("select address from host where name = ?", (str(n % 1000),)).fetchone()


def aggregates(count: int) -> None:
    """Long queries, in which SQLite allocates for every row, under its own lock."""
    import sqlite3

    database = sqlite3.connect(":memory:")
    for _ in range(count):
        database.execute(MANY_ROWS).fetchone()


def events(count: int) -> None:
    """Tcl's event loop with timers, which needs no display."""
    import tkinter

    left = count

    def one() -> None:
        nonlocal left
        left -= 1
        if left > 0:
            interpreter.tk.createtimerhandler(0, one)

    interpreter = tkinter.Tcl()
    one()
    while left > 0:
        interpreter.tk.dooneevent(0)


def windows(count: int) -> None:
    """Tk's main loop with a window that is drawn again and again, which needs a display."""
    import tkinter

    left = count

    def one() -> None:
        nonlocal left
        left -= 1
        label["text"] = str(left)
        if left > 0:
            root.after(0, one)
        else:
            root.quit()

    root = tkinter.Tk()
    label = tkinter.Label(root)
    label.pack()
    root.after(0, one)
    root.mainloop()
    root.destroy()


KINDS: "dict[str, Callable[[int], None]]" = {
    it.__name__: it for it in (handshakes, digests, queries, aggregates, events, windows)
}


def share(kind: "Callable[[int], None]", count: int, threads: int) -> None:
    """Do it in so many threads, while one more waits."""
    over = threading.Event()
    waiting = threading.Thread(target=over.wait)
    waiting.start()
    others = [threading.Thread(target=kind, args=(count // threads,)) for _ in range(threads - 1)]
    for it in others:
        it.start()
    kind(count // threads)
    for it in others:
        it.join()
    over.set()
    waiting.join()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("count", type=int)
    parser.add_argument("threads", type=int)
    asked = parser.parse_args()
    KINDS[asked.kind](2)  # What is imported and made once.
    work.measure(lambda: share(KINDS[asked.kind], asked.count, asked.threads), releases=0)
