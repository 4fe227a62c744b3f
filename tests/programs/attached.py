"""A program that somebody attaches to: attached.py KIND. It says "ready", and checks itself.

At the end of its input it says what went wrong, or "well", and how often each thread worked.
"""

import contextlib
import os
import re
import select
import socket
import sys
import threading
import time

kind = sys.argv[1]
is_over = threading.Event()
wrong = []
counts = {}


def repeated(name):
    """Calls a function again and again in a thread of that name."""

    def start(function):
        def run():
            counts[name] = 0
            try:
                while not is_over.is_set():
                    function()
                    counts[name] += 1
            except BaseException as error:
                wrong.append("%s: %r" % (name, error))

        thread = threading.Thread(target=run, name=name)
        thread.start()
        return thread

    return start


def compute():
    sum(range(1000))
    assert re.match("(a+)b", "a" * 50 + "b")


def allocate():
    junk = [bytearray(n * 100) for n in range(100)]
    assert sum(map(len, junk)) == 495000
    for name in ("colorsys", "this_is_no_module", "wave"):
        sys.modules.pop(name, None)
        with contextlib.suppress(ImportError):
            __import__(name)


one, other = socket.socketpair()
readable, writable = os.pipe()


def echo():
    time.sleep(0.0005)
    one.sendall(b"x" * 100)
    assert other.recv(100, socket.MSG_WAITALL) == b"x" * 100


def sleep():
    # A system call that is made anew with its whole timeout would sleep twice as long; on a busy
    # machine every sleep may be late, so only what comes early is wrong.
    begun = time.monotonic()
    time.sleep(0.003)
    assert time.monotonic() - begun >= 0.003


def poll():
    assert select.select([readable], [], [], 0.002) == ([], [], [])


threads = []
if kind in ("busy", "all"):
    threads += [repeated("compute-%d" % n)(compute) for n in range(2)]
if kind in ("waiting", "all"):
    threads += [repeated("echo")(echo), repeated("sleep")(sleep), repeated("poll")(poll)]
if kind in ("allocating", "all"):
    threads.append(repeated("allocate")(allocate))
print("ready", flush=True)
if kind == "joining":
    # The main thread waits for ever, as in join(), for one that ends when the input does.
    reader = threading.Thread(target=sys.stdin.read)
    threads.append(repeated("compute")(compute))
    reader.start()
    reader.join()
elif kind == "forking":
    # A server that forks has one thread: CPython warns of others, from 3.12 on.
    counts["fork"] = 0
    while not select.select([sys.stdin], [], [], 0)[0]:
        child = os.fork()
        if child == 0:
            sum(range(10000))
            time.sleep(0.001)
            os._exit(7)
        assert os.waitpid(child, 0)[1] == 7 << 8
        counts["fork"] += 1
elif kind == "alone":
    # One thread, which computes until a signal comes.
    import signal

    def end(*_):
        is_over.set()

    signal.signal(signal.SIGTERM, end)
    counts["main"] = 0
    while not is_over.is_set():
        compute()
        counts["main"] += 1
else:
    sys.stdin.read()
is_over.set()
for thread in threads:
    thread.join()
print("; ".join(wrong) if wrong else "well", flush=True)
print(sum(counts.values()) if min(counts.values()) > 0 else 0, flush=True)
