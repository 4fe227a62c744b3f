"""A server of the old kind: forks workers, gives each a job, ends them by SIGTERM.

Usage: prefork.py COUNT TIMES; runs on Python 2.7 and later. The master computes in a thread of its
own while it forks. The thread "reader" of each worker calls os.open once and os.read TIMES times.
Prints JSON: the process ids of the workers.
"""

import json
import os
import signal
import sys
import threading
import time

OLD = sys.version_info[0] == 2
if OLD:
    # After 100 ticks, as is the default, it would let go a million times a second.
    sys.setcheckinterval(10000)

count, times = int(sys.argv[1]), int(sys.argv[2])
over = False


def compute():
    while not over:
        sum(range(1000))
        if OLD:
            time.sleep(0.001)  # Otherwise it takes the GIL back at once, for minutes on end.


def read_often():
    null = os.open("/dev/null", os.O_RDONLY)
    for _ in range(times):
        os.read(null, 1)


def serve(done):
    reader = threading.Thread(target=read_often, name="reader")
    reader.start()
    reader.join()
    os.write(done, b"x")
    signal.pause()  # to be killed


computing = threading.Thread(target=compute, name="computing")
computing.start()
readable, writable = os.pipe()
pids = []
for _ in range(count):
    pid = os.fork()
    if pid == 0:
        serve(writable)
    pids.append(pid)
for _ in pids:
    os.read(readable, 1)
for pid in pids:
    os.kill(pid, signal.SIGTERM)
    assert os.WTERMSIG(os.waitpid(pid, 0)[1]) == signal.SIGTERM
over = True
computing.join()
json.dump(sorted(pids), sys.stdout)
