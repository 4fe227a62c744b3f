"""Says which slice of the processor the kernel gives its threads, and what they start.

Two threads compute. For each line that the main thread reads it does what that line says, and says
in JSON how the kernel runs the threads in the end: by which slice, in ns (0 where it has none), by
which scheduling policy, and by which nice value. With the argument `batch` it has given itself that
scheduling policy before there is a second thread. Runs on Python 3.8 and later.
"""

import ctypes
import itertools
import json
import os
import pathlib
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
ROUNDS = 100
# How the calling thread was run when it was looked at last.
seen = []
SCHED_BATCH = 3  # <linux/sched.h>
# What a filter of system calls says (<linux/seccomp.h>).
KILL_PROCESS, ALLOW = 0x80000000, 0x7FFF0000
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
    """Computes until the program ends."""

    def __init__(self):
        super().__init__(daemon=True)
        self.has_begun = threading.Event()

    def run(self):
        self.tid = threading.get_native_id()
        self.has_begun.set()
        total = 0
        while True:
            total = step(total)


def rounds(is_over):
    """Until `is_over()`. On a kernel without slices none changes, and a while is enough."""
    for number in itertools.count():
        if is_over() or (number >= ROUNDS and DEFAULT_NS == 0):
            return
        yield


def use_little(is_over):
    """Wait often."""
    for _ in rounds(is_over):
        time.sleep(0.001)


def compute(is_over):
    """Compute."""
    total = 0
    for _ in rounds(is_over):
        for _ in range(500):
            total = step(total)


def for_a_while():
    """What ends a loop after ROUNDS."""
    left = iter(range(ROUNDS))
    return lambda: next(left, None) is None


SAY = [sys.executable, __file__, "say"]


def is_short():
    """Notes what it has seen: a moment later it may be otherwise."""
    seen[:] = run()
    return seen[0] < DEFAULT_NS


def is_patient(tid=0):
    return attributes(tid)[1] == SCHED_BATCH


def run(tid=0):
    """How the kernel runs a thread: by which slice, policy and nice value."""
    own = attributes(tid)
    return own[5], own[1], own[3]


def started(do, is_over):
    """How what this thread starts is run, each started in another way while this one is changed."""
    found = {}
    for name, start in STARTS.items():
        do(is_over)
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
        os.write(writing, json.dumps(run()).encode())
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


def by_pthread_create():
    """A thread that never wants the GIL, which would change how it is run."""
    tasks = pathlib.Path("/proc/self/task")
    before = set(tasks.iterdir())
    handle = ctypes.c_ulong()
    assert libc.pthread_create(ctypes.byref(handle), None, libc.pause, None) == 0
    (task,) = set(tasks.iterdir()) - before
    return json.dumps(run(int(task.name)))


STARTS = {
    "thread": by_pthread_create,
    "subprocess": lambda: subprocess.check_output(SAY),
    "fork": lambda: through(by_fork),
    "exec": lambda: through(by_exec),
    "posix_spawn": lambda: through(by_posix_spawn),
    "system": lambda: through(by_system),
}


def become_batch():
    """The calling thread puts nobody aside any more. The kernel leaves it the slice that it has."""
    os.sched_setscheduler(0, SCHED_BATCH, os.sched_param(0))


def answer_sched_setattr(action):
    """From now on a filter decides over sched_setattr."""
    load_number, return_, jump_if_equal = 0x20, 0x06, 0x15  # <linux/bpf_common.h>
    steps = [(load_number, 0, 0, 0), (jump_if_equal, 0, 1, SET), (return_, 0, 0, action)]
    code = b"".join(struct.pack("=HBBI", *step) for step in [*steps, (return_, 0, 0, ALLOW)])
    held = ctypes.create_string_buffer(code)
    program = struct.pack("@HP", len(steps) + 1, ctypes.addressof(held))
    no_new_privileges, set_seccomp, filtered = 38, 22, 2
    for words in ((no_new_privileges, 1, 0, 0, 0), (set_seccomp, filtered, program, 0, 0)):
        if libc.prctl(*words):
            raise OSError(ctypes.get_errno(), "prctl")


def main():
    threads = [Computing() for _ in range(2)]
    for thread in threads:
        thread.start()
        thread.has_begun.wait()

    ways = {
        "nothing": (lambda is_over: None, None),
        "little": (use_little, is_short),
        "compute": (compute, lambda: not is_short()),
        "back": (use_little, lambda: not any(map(is_patient, [it.tid for it in threads]))),
    }
    for line in sys.stdin:
        order, _, argument = line.strip().partition(" ")
        said = {}
        if order in ways:
            do, is_over = ways[order]
            do(is_over)
        elif order == "both":
            for do in (use_little, compute, use_little):
                do(for_a_while())
        elif order == "start":
            said = started(*ways[argument])
        elif order == "choose":
            choose(int(argument))
        elif order == "nice":
            os.nice(int(argument))
        elif order == "batch":
            become_batch()
        elif order == "forbid":
            answer_sched_setattr(KILL_PROCESS)
        elif order == "allow":
            answer_sched_setattr(ALLOW)
        elif order == "become":
            do, is_over = ways[argument]
            do(is_over)
            os.execv(SAY[0], SAY)
        computing = [run(thread.tid) for thread in threads]
        main = seen if order in ("little", "compute") else run()
        usual = {"own_ns": DEFAULT_NS, "main": main, "computing": computing}
        print(json.dumps(said or usual), flush=True)


if __name__ == "__main__":
    if sys.argv[1:] == ["say"]:
        print(json.dumps(run()))
    else:
        DEFAULT_NS = slice_ns()
        if sys.argv[1:] == ["batch"]:
            become_batch()
        main()
