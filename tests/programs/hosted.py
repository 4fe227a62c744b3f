"""Threads `host-N`, each of which runs a sub-interpreter's code that keeps its GIL again and again
while a thread `inner-N` of that interpreter wants it, until there is a file OVER.

Usage: hosted.py COUNT LENGTH OVER [elsewhere]; runs on Python 3.8 and later. The GILs are the
interpreters' own from 3.12 on. Each hold sums LENGTH numbers. With `elsewhere` the main thread
makes the interpreters, in whose name they then run up to 3.12.
"""

import os
import sys
import threading

try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters

count, length, over = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
elsewhere = sys.argv[4:] == ["elsewhere"]
code = """
import os, threading

over = False

def keep():
    sum(range({length}))  # the line to be found

def want():
    while not over:
        pass

inner = threading.Thread(target=want, name="inner-{number}")
inner.start()
while not os.path.exists({over!r}):
    keep()
over = True
while inner.is_alive():
    pass
"""


def create():
    # Isolated ones may have no threads from 3.9 to 3.11.
    shares = (3, 9) <= sys.version_info < (3, 12)
    return interpreters.create(isolated=False) if shares else interpreters.create()


def host(number):
    interpreter = made[number] if elsewhere else create()
    interpreters.run_string(interpreter, code.format(number=number, length=length, over=over))
    if not elsewhere:
        interpreters.destroy(interpreter)


made = [create() for _ in range(count if elsewhere else 0)]
threads = [
    threading.Thread(target=host, args=(number,), name="host-%d" % number) for number in range(count)
]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
if elsewhere:
    # 3.12 does not come to an end otherwise, and never did.
    os._exit(0)
