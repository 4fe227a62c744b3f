"""One thing that a scheduler of threads has to survive.

Usage: surviving.py WHAT; runs on Python 3.7 and later. WHAT names a function below. Prints what
the test of the same name expects.
"""

import ctypes
import os
import signal
import sys
import threading
import time
from pathlib import Path

hold = ctypes.PyDLL(None)


def has_page(process):
    namespace = Path("/proc/self/ns/pid").stat().st_ino
    name = "ungil-policy-%d-%d-%d" % (os.geteuid(), namespace, process)
    return Path("/dev/shm", name).exists()


def start(function, count=1, daemon=False):
    threads = [threading.Thread(target=function, daemon=daemon) for _ in range(count)]
    for thread in threads:
        thread.start()
    return threads


def join(threads):
    for thread in threads:
        thread.join()


def burn():
    for _ in range(20000):
        pass


def forever():
    """Computes until the process ends; holds the GIL whenever it can."""
    global begun
    begun += 1
    while True:
        pass


begun = 0


def have_begun(count):
    while begun < count:
        time.sleep(0.001)


def fifty_that_compute():
    done = []
    join(start(lambda: (burn(), done.append(1)), 50))
    print(len(done))


def five_hundred_that_wait():
    gate, done = threading.Event(), []
    threads = start(lambda: (gate.wait(), burn(), done.append(1)), 500)
    gate.set()
    join(threads)
    print(len(done))


def short_ones_beside_a_long_one():
    """Threads end all the time while others are in line."""
    start(forever, 2, daemon=True)
    have_begun(2)
    for _ in range(20):
        join(start(int, 4))
    print("ended")
    sys.stdout.flush()
    os._exit(0)


def fork_while_others_wait():
    """A thread forks; GIL, policy and page of the child are its own."""
    start(forever, 4, daemon=True)
    have_begun(4)
    statuses = []

    def fork():
        child = os.fork()
        if child == 0:
            done = []
            join(start(lambda: (burn(), done.append(1)), 8))
            os._exit(0 if len(done) == 8 and has_page(os.getpid()) else 1)
        statuses.append(os.waitpid(child, 0)[1])
        statuses.append(has_page(child))

    for _ in range(5):
        join(start(fork))
    print(statuses, has_page(os.getpid()))
    sys.stdout.flush()
    os._exit(0)


def end_by_return():
    start(forever, 8, daemon=True)
    have_begun(8)


def end_by_exit():
    end_by_return()
    sys.exit(0)


def end_at_once():
    end_by_return()
    os._exit(0)


def end_by_exception():
    end_by_return()
    sys.excepthook = lambda *it: os._exit(0)
    raise ValueError


def end_slowly():
    """Threads that sleep in line when the interpreter is gone wake before the process is."""
    end_by_return()
    # sleep(status), after the interpreter was finalised.
    hold.on_exit(hold.sleep, None)
    sys.exit(2)


def exec_while_others_wait():
    end_by_return()
    os.execv(sys.executable, [sys.executable, __file__, "fifty_that_compute"])


def exec_in_a_thread():
    end_by_return()
    join(start(exec_while_others_wait))


def killed():
    end_by_return()
    os.kill(os.getpid(), signal.SIGKILL)


def policies_change():
    """All policies, by all ways, while threads are in line."""
    begin = threading.Barrier(9)
    done = []

    def work():
        begin.wait()
        for _ in range(20):
            burn()
        done.append(1)

    threads = start(work, 8)
    begin.wait()
    number = 0
    while any(thread.is_alive() for thread in threads):
        number += 1
        hold.ungil_set_policy_v1(number % 5, ctypes.c_uint64(0))
        burn()
    print(len(done))


def policy_changes_from_outside():
    """Says "ready" once a thread holds the GIL and never lets go of it unless it is asked to."""
    handed, others = threading.Lock(), []
    handed.acquire()

    def keep():
        handed.release()
        hold.write(1, b"ready\n", 6)
        while len(others) < 4:
            pass

    def wait():
        others.append(1)

    gate = threading.Lock()
    with gate:
        waiting = start(lambda: (gate.acquire(), gate.release(), wait()), 4)
        keeper = start(keep)
        handed.acquire()
    join(waiting + keeper)
    print(len(others))


def stopped_and_continued():
    """Somebody else stops and continues it, again and again."""
    print("ready")
    sys.stdout.flush()
    join(start(lambda: [burn() for _ in range(50)], 8))
    print("done")


def tiny_switch_interval():
    sys.setswitchinterval(1e-6)
    fifty_that_compute()


def destructors_use_the_gil():
    """Objects of a thread that ends release and take the GIL, and leave further such objects."""
    local, done = threading.local(), []

    class Lasting:
        def __init__(self, left):
            self.left = left

        def __del__(self):
            time.sleep(0)
            burn()
            done.append(1)
            if self.left:
                local.another = Lasting(self.left - 1)

    def work():
        local.it = Lasting(0)

    join(start(work, 50))
    print(len(done))


def sub_interpreters():
    """Each with a GIL of its own, and from 3.13 on threads that compute."""
    try:
        import _interpreters as interpreters
    except ImportError:
        import _xxsubinterpreters as interpreters
    code = "sum(range(100000))"
    if sys.version_info >= (3, 13):
        # In a sub-interpreter of 3.12.1 a join never ends.
        code = "import threading\nits = [threading.Thread(target=sum, args=(range(100000),))"
        code += " for _ in range(5)]\n[it.start() for it in its]\n[it.join() for it in its]"
    for _ in range(3):
        inner = [interpreters.create() for _ in range(4)]
        started = []
        for it in inner:
            started += [threading.Thread(target=interpreters.run_string, args=(it, code))]
            started[-1].start()
        start(burn, 4)
        join(started)
        for it in inner:
            interpreters.destroy(it)
    print("done")


if __name__ == "__main__":
    globals()[sys.argv[1]]()
