"""One thread keeps the GIL in native code, again and again, while another one wants it.

Usage: native_calls.py WHICH TIMES: WHICH is match (a regular expression that takes long) or waiting
(system calls that wait with the GIL). Prints, as JSON, how often each call went wrong. Runs on Python
2.7 and later.
"""

import ctypes
import json
import re
import sys
import threading
import time

EPOLL_EVENT_BYTES, WAITED_MS = 16, 60
which, times = sys.argv[1], int(sys.argv[2])
native = ctypes.PyDLL(None, use_errno=True)  # calls that keep the GIL
wrong = {}
over = False
subject = "a" * 18 + "b"


def match():
    return re.match("(a+)+$", subject)  # the line to be found


def match_for_long():
    """Find a subject for which it takes some tenths of a second."""
    global subject
    took = 0
    while took < 0.15:
        subject = "a" + subject
        began = time.time()
        match()
        took = time.time() - began


def wait_in(name, *arguments):
    if getattr(native, name)(*arguments) != 0:
        wrong[name] = wrong.get(name, 0) + 1


def wait():
    events = ctypes.create_string_buffer(EPOLL_EVENT_BYTES)
    wait_in("usleep", 1000 * WAITED_MS)
    wait_in("poll", None, 0, WAITED_MS)
    wait_in("epoll_wait", native.epoll_create1(0), events, 1, WAITED_MS)
    timeout = (ctypes.c_long * 2)(0, 1000 * WAITED_MS)
    wait_in("select", 0, None, None, None, timeout)


def keep():
    global over
    for _ in range(times):
        match() if which == "match" else wait()
    over = True


def want():
    while not over:
        time.sleep(0.001)


if which == "match":
    match_for_long()
threads = [threading.Thread(target=want, name="wanting"),
           threading.Thread(target=keep, name="keeping")]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(json.dumps(wrong))
