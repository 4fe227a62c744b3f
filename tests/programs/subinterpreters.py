"""Sub-interpreters with a GIL of their own, each of which lets go of it a known number of times.

Usage: subinterpreters.py COUNT TIMES; runs on Python 3.12 and later. Each calls os.open once and
os.read TIMES times, in a thread of its own; all run at the same time.
"""

import sys
import threading

try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters

count, times = int(sys.argv[1]), int(sys.argv[2])
code = """
import os
null = os.open("/dev/null", os.O_RDONLY)
for _ in range({times}):
    os.read(null, 1)
""".format(times=times)

ids = [interpreters.create() for _ in range(count)]
threads = [
    threading.Thread(target=interpreters.run_string, args=(it, code), name="run-%d" % number)
    for number, it in enumerate(ids)
]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
for it in ids:
    interpreters.destroy(it)
