"""One thread keeps the GIL in native code, again and again, while another one wants it.

Usage: native_calls.py match (a regular expression that takes long), array or set (an object that
takes long to make), waiting (system calls that wait with the GIL), sleeping (one of these),
littered (the same on x86-64, with words on its stack that look like callers), made or made_deep
(code that is made while it runs, with little or much on its stack). It goes on until its standard
input ends, and then prints, as JSON, how often each call went wrong.
Runs on Python 3.3 and later.
"""

import array
import ctypes
import json
import re
import sys
import threading
import time

EPOLL_EVENT_BYTES, WAITED_MS, MATCHED_S = 16, 60, 0.1
POINTER, REGISTERS = 8, 6  # What x86-64 passes in them is not on the stack.
FRAME = 40  # More words than a small function keeps there.
COUNTED = 200000000  # some tenths of a second
which = sys.argv[1]
native = ctypes.PyDLL(None, use_errno=True)  # calls that keep the GIL
epoll = native.epoll_create1(0)
wrong = {}
over = threading.Event()
subject = "a" * 18 + "b"
# What is made of them is small: it must not take long to destroy.
numbers = list(range(100)) * 60000


def match():
    return re.match("(a+)+$", subject)  # the line to be found


def make_array():
    array.array("b", numbers)


def make_set():
    set(numbers)


def run_made_code():
    # What calls it is Python code, and is itself called by something native.
    run = made_code.run if which == "made" else made_code.run_deep
    sorted([1], key=lambda _: run(COUNTED))


def match_for_long():
    """Find a subject for which it takes some tenths of a second."""
    global subject
    took = 0
    while took < MATCHED_S:
        subject = "a" + subject
        began = time.process_time()
        match()
        took = time.process_time() - began


def wait_in(name, *arguments):
    if getattr(native, name)(*arguments) != 0:
        wrong[name] = wrong.get(name, 0) + 1


def wait():
    events = ctypes.create_string_buffer(EPOLL_EVENT_BYTES)
    wait_in("usleep", 1000 * WAITED_MS)
    wait_in("poll", None, 0, WAITED_MS)
    wait_in("epoll_wait", epoll, events, 1, WAITED_MS)
    timeout = (ctypes.c_long * 2)(0, 1000 * WAITED_MS)
    wait_in("select", 0, None, None, None, timeout)


def sleep():
    wait_in("usleep", 1000 * WAITED_MS)


def litter():
    # As if the interpreter had called `next`, and that had called what waits.
    called = word(word(id(next) + 2 * POINTER) + POINTER)
    # It calls what a type points to.
    call = re.search(b"\xff[\x90-\x97]....", ctypes.string_at(called, 1000), re.DOTALL)
    evaluation = ctypes.cast(native._PyEval_EvalFrameDefault, ctypes.c_void_p).value
    words = [called + call.end()] + [evaluation + 1000] * FRAME
    words = [0] * (REGISTERS - 1) + [ctypes.c_void_p(it) for it in words]
    wait_in("usleep", 1000 * WAITED_MS, *words)


def word(address):
    return ctypes.c_void_p.from_address(address).value


def keep():
    calls = {"match": match, "array": make_array, "set": make_set}
    calls.update(waiting=wait, sleeping=sleep, littered=litter)
    calls.update(made=run_made_code, made_deep=run_made_code)
    while not over.is_set():
        calls[which]()


def want():
    while not over.is_set():
        time.sleep(0.001)


if which.startswith("made"):
    sys.path.insert(0, sys.argv[2])
    import made_code
if which == "match":
    match_for_long()
threads = [
    threading.Thread(target=want, name="wanting"),
    threading.Thread(target=keep, name="keeping"),
]
for thread in threads:
    thread.start()
sys.stdin.read()
over.set()
for thread in threads:
    thread.join()
print(json.dumps(wrong))
