"""Says which slice of the processor the kernel gives its threads, and what they start.

The main thread uses the GIL a little and often, beside threads that compute. For each line that it
reads it does what that line says, and says in JSON what the slice of whom was in the end, in ns (0
where the kernel has none). Runs on Python 3.7 and later, and on Linux.
"""

import ctypes
import json
import os
import platform
import struct
import subprocess
import sys
import threading
import time

# sched_setattr, sched_getattr (<asm/unistd.h>).
NUMBERS = {"x86_64": (314, 315), "aarch64": (274, 275)}
SET, GET = NUMBERS[platform.machine()]
# struct sched_attr (<linux/sched/types.h>), of which the sixth word is the slice.
LAYOUT = struct.Struct("=IIQiIQQQ")
# Of a turn of the main thread beside those that compute: on a kernel without slices it never ends.
ROUNDS = 400
libc = ctypes.CDLL(None, use_errno=True)


def attributes(tid=0):
    """What the kernel knows of a thread, 0 for the calling one."""
    read = ctypes.create_string_buffer(LAYOUT.size)
    if libc.syscall(GET, tid, read, LAYOUT.size, 0):
        raise OSError(ctypes.get_errno(), "sched_getattr")
    return LAYOUT.unpack(read.raw)


def slice_ns(tid=0):
    """The slice of a thread."""
    return attributes(tid)[5]


def choose(ns):
    """Give the calling thread a slice."""
    own = attributes()
    if libc.syscall(SET, 0, LAYOUT.pack(*own[:5], ns, *own[6:]), 0):
        raise OSError(ctypes.get_errno(), "sched_setattr")


def step(total):
    for number in range(20):
        total = (total * 31 + number) & 0xFFFF
    return total


class Computing(threading.Thread):
    """Computes until it is told to end, or for a while."""

    def __init__(self):
        super().__init__(daemon=True)
        self.has_begun = threading.Event()

    def run(self):
        self.tid = threading.get_native_id() if sys.version_info >= (3, 8) else libc.syscall(186)
        self.has_begun.set()
        total = 0
        while True:
            total = step(total)


def use_little():
    """Wait often, until the kernel runs this thread by another slice."""
    before = slice_ns()
    for _ in range(ROUNDS):
        time.sleep(0.001)
        if slice_ns() != before:
            break


def compute():
    """Compute, until the kernel runs this thread by another slice."""
    before, total = slice_ns(), 0
    for _ in range(ROUNDS):
        for _ in range(2000):
            total = step(total)
        if slice_ns() != before:
            break


SAY = [sys.executable, __file__, "say"]


def started():
    """The slices of what this thread starts, each in another way, while its own is short."""
    found = {}

    def tell():
        found["thread"] = slice_ns()

    use_little()
    found["itself"] = slice_ns()
    thread = threading.Thread(target=tell)
    thread.start()
    thread.join()
    for name, start in STARTS.items():
        use_little()
        found[name] = json.loads(start())
    return found


def through(pipe_to):
    """What a process says whose standard output is a pipe; `pipe_to` starts it and waits for it."""
    reading, writing = os.pipe()
    pipe_to(writing)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        return pipe.read()


def by_fork(writing):
    child = os.fork()
    if child == 0:
        os.write(writing, str(slice_ns()).encode())
        os._exit(0)
    os.waitpid(child, 0)


def by_exec(writing):
    child = os.fork()
    if child == 0:
        os.dup2(writing, 1)
        os.execv(SAY[0], SAY)
    os.waitpid(child, 0)


def by_posix_spawn(writing):
    actions = [(os.POSIX_SPAWN_DUP2, writing, 1)]
    os.waitpid(os.posix_spawn(SAY[0], SAY, os.environ, file_actions=actions), 0)


def by_system(writing):
    os.set_inheritable(writing, True)
    os.system("'%s' '%s' say >&%d" % (sys.executable, __file__, writing))


STARTS = {
    "subprocess": lambda: subprocess.check_output(SAY),
    "fork": lambda: through(by_fork),
    "exec": lambda: through(by_exec),
    "posix_spawn": lambda: through(by_posix_spawn),
    "system": lambda: through(by_system),
}
if sys.version_info < (3, 8):
    del STARTS["posix_spawn"]


def main():
    threads = [Computing() for _ in range(2)]
    for thread in threads:
        thread.start()
        thread.has_begun.wait()
    for line in sys.stdin:
        order = line.strip()
        said = None
        if order == "little":
            use_little()
        elif order == "compute":
            compute()
        elif order == "start":
            said = started()
        elif order.startswith("choose"):
            choose(int(order.split()[1]))
        slices = {"main": slice_ns(), "computing": [slice_ns(it.tid) for it in threads]}
        print(json.dumps(said or slices), flush=True)


if __name__ == "__main__":
    if sys.argv[1:] == ["say"]:
        print(slice_ns())
    else:
        main()
