"""Says who has the GIL first: a thread that its holder woke, or one that came a little later.

The argument says how the first one waits to be woken: for a `lock`, for a lock `within` a time, or
for a `pipe`. The holder has used more of the GIL than both.
"""

import ctypes
import os
import sys
import threading
import time

# Its functions are called with the GIL held all the time.
libc = ctypes.PyDLL(None)
FUTEX = {"x86_64": "202", "aarch64": "98"}[os.uname().machine]
USED_S = 0.05


class Pipe:
    """A pipe whose reader lets go of the GIL, and whose writer does not."""

    def __init__(self):
        self.reader, self.writer = os.pipe()

    def wait(self):
        """Wait for a byte."""
        os.read(self.reader, 1)

    def let_go(self):
        """Write one."""
        libc.write(self.writer, b"x", 1)


def sleeps_on(tid):
    """The address of the futex that the thread sleeps on, if it does, without letting go."""
    file = libc.open(b"/proc/self/task/%d/syscall" % tid, os.O_RDONLY)
    text = ctypes.create_string_buffer(200)
    libc.read(file, text, 199)
    libc.close(file)
    number, *arguments = text.value.decode().split()
    return arguments[0] if number == FUTEX else None


def until_it_sleeps(tid, elsewhere=None):
    """Wait until the thread sleeps on a futex, another than `elsewhere`, and say on which."""
    while True:
        address = sleeps_on(tid)
        if address not in (None, elsewhere):
            return address


def main():
    """Wakes both, and lets go when they wait for the GIL."""
    how = sys.argv[1]
    first_waits, second_waits, began, ended = Pipe(), Pipe(), Pipe(), Pipe()
    lock = threading.Lock()
    lock.acquire()
    tids, order = {}, []

    def first():
        tids["first"] = threading.get_native_id()
        began.let_go()
        if how == "pipe":
            first_waits.wait()
        else:
            lock.acquire(timeout=1000 if how == "within" else -1)
        order.append("first")
        ended.let_go()

    def second():
        tids["second"] = threading.get_native_id()
        began.let_go()
        for turn in range(2):
            second_waits.wait()
            if turn == 1:
                order.append("second")
            ended.let_go()

    threads = [threading.Thread(target=target) for target in (first, second)]
    for thread in threads:
        thread.start()
        # It is waiting by the time it lets go of the GIL.
        began.wait()
    # Use the GIL while another wants it.
    second_waits.let_go()
    until_it_sleeps(tids["second"])
    until = time.thread_time() + USED_S
    while time.thread_time() < until:
        pass
    ended.wait()
    # They come one after the other.
    if how == "pipe":
        first_waits.let_go()
        until_it_sleeps(tids["first"])
    else:
        awaited = until_it_sleeps(tids["first"])
        lock.release()
        until_it_sleeps(tids["first"], elsewhere=awaited)
    second_waits.let_go()
    until_it_sleeps(tids["second"])
    ended.wait()
    ended.wait()
    for thread in threads:
        thread.join()
    print(*order)


main()
