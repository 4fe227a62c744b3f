"""Random threads, processes, signals and changes of policy, until it ends in some way.

Usage: churn.py SECONDS SEED FOLDER; runs on Python 3.8 and later. What happens is chosen by the
seed; when it happens is not. Every thread that lives beats: it counts, in a file of its process in
FOLDER, and is expected never to stop for long. soak.py watches and knows the files' layout.
"""

import ctypes
import faulthandler
import gc
import hashlib
import json
import mmap
import multiprocessing
import os
import queue
import random
import signal
import struct
import subprocess
import sys
import threading
import time
import warnings
from collections import Counter
from pathlib import Path

try:
    import _interpreters as interpreters
except ImportError:
    try:
        import _xxsubinterpreters as interpreters
    except ImportError:
        interpreters = None
if sys.version_info < (3, 12):
    interpreters = None  # Without a GIL of their own they are nothing new.

MOST_THREADS, MOST_CHILDREN = 20, 3
SLOTS = 256


class Beats:
    """The file of this process.

    It says how the process is to end (0: not yet; else its status plus one), then for each thread
    that lives its number and its count.
    """

    def __init__(self, folder):
        self.folder = folder
        generation = 0
        while True:
            path = "%s/%d.%d.beats" % (folder, os.getpid(), generation)
            try:
                file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL)
                break
            except FileExistsError:
                generation += 1  # Before an exec, or by a process that had our number.
        os.ftruncate(file, 16 * (SLOTS + 1))
        self.memory = mmap.mmap(file, 0)
        os.close(file)
        self.free = list(range(SLOTS, 0, -1))

    def claim(self):
        slot = self.free.pop()
        struct.pack_into("<QQ", self.memory, 16 * slot, threading.get_native_id(), 1)
        return slot

    def beat(self, slot):
        (count,) = struct.unpack_from("<Q", self.memory, 16 * slot + 8)
        struct.pack_into("<Q", self.memory, 16 * slot + 8, count + 1)

    def drop(self, slot):
        struct.pack_into("<QQ", self.memory, 16 * slot, 0, 0)
        self.free.append(slot)

    def ends(self, status):
        struct.pack_into("<Q", self.memory, 0, status + 1)


class Process:
    """What the threads of one process share."""

    def __init__(self, folder, seed):
        self.beats = Beats(folder)
        self.choose = random.Random(seed)
        self.seed = seed
        self.counts = Counter()
        # CPython 3.12 and 3.13 crash in a child forked while there are sub-interpreters.
        forking = interpreters is None or self.choose.random() < 0.7
        self.kinds = [it for it in KINDS if it not in ({interprets} if forking else PARENTS)]
        self.stop = False
        self.threads = []
        self.children = threading.Semaphore(MOST_CHILDREN)
        self.lock = threading.RLock()
        self.condition = threading.Condition()
        self.queue = queue.Queue(10)
        self.one_at_a_time = threading.Lock()

    def start(self, kind):
        self.counts[kind.__name__] += 1
        seed = self.choose.random()
        # CPython aborts if it ends while a thread of a sub-interpreter goes on.
        daemon = self.choose.random() < 0.5 and kind is not interprets
        thread = threading.Thread(target=self.live, args=(kind, seed), daemon=daemon)
        thread.start()
        self.threads.append(thread)

    def live(self, kind, seed):
        choose = random.Random(seed)
        slot = self.beats.claim()
        until = time.monotonic() + choose.random() * choose.choice([0.01, 1, 3])

        def alive():
            self.beats.beat(slot)
            return not self.stop and time.monotonic() < until

        try:
            kind(self, choose, alive)
        finally:
            self.beats.drop(slot)


KINDS = []


def kind(function):
    KINDS.append(function)
    return function


@kind
def computes(process, choose, alive):
    while alive():
        for _ in range(1000):
            pass


@kind
def sleeps(process, choose, alive):
    while alive():
        time.sleep(choose.choice([0, 0.0001, 0.01, 0.05]))


@kind
def calls(process, choose, alive):
    """Holds the GIL for long, or lets go of it for long."""
    data = bytes(choose.choice([10, 100000]))
    while alive():
        hashlib.sha256(data).digest()
        PROGRAM.usleep(choose.choice([1, 1000]))
        HOLDING.usleep(choose.choice([1, 1000, 20000]))


@kind
def locks(process, choose, alive):
    while alive():
        with process.lock:
            for _ in range(choose.choice([1, 10000])):
                pass
            if choose.random() < 0.1:
                time.sleep(0.001)


@kind
def notifies(process, choose, alive):
    while alive():
        with process.condition:
            if choose.random() < 0.5:
                process.condition.notify_all()
            process.condition.wait(0.05)


@kind
def queues(process, choose, alive):
    while alive():
        try:
            if choose.random() < 0.5:
                process.queue.put(choose.random(), timeout=0.01)
            else:
                process.queue.get(timeout=0.01)
        except (queue.Full, queue.Empty):
            pass


@kind
def pipes(process, choose, alive):
    reader, writer = os.pipe()
    with os.fdopen(reader, "rb", 0) as source, os.fdopen(writer, "wb", 0) as target:
        while alive():
            target.write(b"x" * choose.randrange(1, 5000))
            source.read(5000)


@kind
def collects(process, choose, alive):
    while alive():
        for _ in range(choose.randrange(1000)):
            cycle = []
            cycle.append(cycle)
        if choose.random() < 0.1:
            gc.collect()


class Lasting:
    """Uses the GIL when its thread ends."""

    def __init__(self, children):
        self.children = children

    def __del__(self):
        time.sleep(0.001)
        if self.children:
            LOCAL.more = Lasting(self.children - 1)


@kind
def leaves_destructors(process, choose, alive):
    alive()
    LOCAL.it = Lasting(choose.randrange(3))


@kind
def raises(process, choose, alive):
    alive()
    raise ValueError("meant")


@kind
def starts_short_ones(process, choose, alive):
    while alive():
        short = [threading.Thread(target=int) for _ in range(choose.randrange(5))]
        for thread in short:
            thread.start()
        for thread in short:
            thread.join()


@kind
def tunes(process, choose, alive):
    while alive():
        sys.setswitchinterval(choose.choice([1e-6, 1e-4, 0.005, 0.1]))
        if MAY_CHANGE:
            PROGRAM.ungil_set_policy_v1(choose.randrange(5), choose.choice([0, 0, 10**5, 10**7]))
        if SCHEDULED:
            PROGRAM.ungil_set_level_v1(choose.randrange(3))
        time.sleep(choose.random() * 0.1)


@kind
def signals(process, choose, alive):
    while alive():
        if choose.random() < 0.5:
            os.kill(os.getpid(), signal.SIGUSR1)
        else:
            signal.pthread_kill(threading.get_ident(), signal.SIGUSR1)
        if choose.random() < 0.1:
            with Path(os.devnull).open("w") as nowhere:
                faulthandler.dump_traceback(nowhere, all_threads=True)
        time.sleep(choose.random() * 0.01)


def waited_for(ended, alive):
    """Wait for the end of a child that ends by itself, while beating."""
    while not ended():
        alive()
        time.sleep(0.005)


@kind
def forks(process, choose, alive):
    if not process.children.acquire(blocking=False):
        return
    seed = choose.random()
    pid = os.fork()
    if pid == 0:
        as_child(process.beats.folder, seed)
    status = []

    def ended():
        done, code = os.waitpid(pid, os.WNOHANG)
        status.append(code)
        return done

    waited_for(ended, alive)
    process.children.release()
    expect(status[-1], "a forked child")


def as_child(folder, seed):
    signal.setitimer(signal.ITIMER_REAL, 0)
    try:
        child = Process(folder, seed)
        # Children of children are many.
        for _ in range(child.choose.randrange(6)):
            child.start(child.choose.choice(CHILDISH))
        slot = child.beats.claim()
        for thread in child.threads:
            while thread.is_alive() and (child.choose.random() < 0.99 or not thread.daemon):
                child.beats.beat(slot)
                thread.join(0.01)
        child.beats.ends(0)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        os._exit(70)
    os._exit(0)


def as_process(folder, seed):
    prepare()
    child = Process(folder, seed)
    child.start(computes)
    child.start(sleeps)
    slot = child.beats.claim()
    for thread in child.threads:
        while thread.is_alive():
            child.beats.beat(slot)
            thread.join(0.01)
    child.beats.ends(0)


@kind
def multiprocesses(process, choose, alive):
    # It keeps its children in a set that threads cannot share.
    if not process.one_at_a_time.acquire(blocking=False):
        return
    method = choose.choice(["fork", "spawn", "forkserver"])
    process.counts[method] += 1
    arguments = (process.beats.folder, choose.random())
    child = multiprocessing.get_context(method).Process(target=as_process, args=arguments)
    child.start()
    waited_for(lambda: child.exitcode is not None, alive)
    process.one_at_a_time.release()
    expect(child.exitcode, "a child of multiprocessing by " + method)


@kind
def runs(process, choose, alive):
    if not process.children.acquire(blocking=False):
        return
    code = "import threading; it = threading.Thread(target=sum, args=(range(100000),)); it.start()"
    before = choose.choice([None, None, int])
    child = subprocess.Popen([sys.executable, "-c", code], preexec_fn=before)
    waited_for(lambda: child.poll() is not None, alive)
    process.children.release()
    expect(child.returncode, "a program")


@kind
def interprets(process, choose, alive):
    code = "sum(range({0}))"
    if sys.version_info >= (3, 13):
        # In a sub-interpreter of 3.12.1 a join never ends.
        code = "import threading\nit = threading.Thread(target=sum, args=(range({1}),))\n"
        code += "it.start()\nsum(range({0}))\nit.join()"
    inner = interpreters.create()
    while alive():
        lengths = choose.randrange(10**6), choose.randrange(10**6)
        interpreters.run_string(inner, code.format(*lengths))
    interpreters.destroy(inner)


PARENTS = {forks, multiprocesses, runs}
CHILDISH = [it for it in KINDS if it not in PARENTS | {interprets, signals}]


def expect(status, what):
    if status != 0:
        os.write(2, ("%s ended with status %s\n" % (what, status)).encode())
        os._exit(71)


def prepare():
    warnings.simplefilter("ignore")
    faulthandler.enable()
    signal.signal(signal.SIGUSR1, lambda number, frame: None)
    signal.signal(signal.SIGALRM, lambda number, frame: None)
    threading.excepthook = lambda it: (
        None if it.exc_type is ValueError else threading.__excepthook__(it)
    )


def main(seconds, seed, folder):
    prepare()
    process = Process(folder, seed)
    slot = process.beats.claim()
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        process.beats.beat(slot)
        process.threads = [thread for thread in process.threads if thread.is_alive()]
        if len(process.threads) < MOST_THREADS:
            process.start(process.choose.choice(process.kinds))
        if process.choose.random() < 0.05:
            signal.setitimer(signal.ITIMER_REAL, *process.choose.choice([(0,), (0.001, 0.001)]))
        time.sleep(process.choose.random() * 0.05)
    end = process.choose.choice(["return", "exit", "_exit", "raise", "exec"])
    process.counts[end] += 1
    if end in ("_exit", "exec"):
        # Whoever is left does not know what becomes of its children.
        process.stop = True
        for thread in process.threads:
            while thread.is_alive() and not thread.daemon:
                process.beats.beat(slot)
                thread.join(0.01)
    with Path(folder, "counts").open("a") as counts:
        counts.write(json.dumps(process.counts) + "\n")
    process.stop = process.stop or process.choose.random() < 0.5
    signal.setitimer(signal.ITIMER_REAL, 0)
    process.beats.drop(slot)
    return end, process


PROGRAM, HOLDING = ctypes.CDLL(None), ctypes.PyDLL(None)
SCHEDULED = hasattr(PROGRAM, "ungil_set_policy_v1")
if SCHEDULED:
    PROGRAM.ungil_set_policy_v1.argtypes = [ctypes.c_uint32, ctypes.c_uint64]
MAY_CHANGE = SCHEDULED and os.environ.get("UNGIL_SOAK_CHANGES") == "1"
LOCAL = threading.local()

if __name__ == "__main__":
    way, this = main(float(sys.argv[1]), sys.argv[2], sys.argv[3])
    this.beats.ends({"return": 0, "exit": 3, "_exit": 4, "raise": 1, "exec": 0}[way])
    if way == "exit":
        sys.exit(3)
    elif way == "_exit":
        os._exit(4)
    elif way == "raise":
        sys.excepthook = lambda *it: None
        raise SystemError("meant")
    elif way == "exec":
        words = [sys.executable, __file__, "1", this.seed + "+", sys.argv[3]]
        os.execv(sys.executable, words)
