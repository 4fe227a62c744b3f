"""One thread sleeps for a moment at a time, while others compute; says how late it woke up.

A sleep is late by what it lasts longer than it was to: what the kernel takes to run the thread, and
what it waits for the GIL. The kernel places all threads.
"""

import resource
import threading
import time

import work
from one_cpu_thread import step

# Not measured, for all to fall into their ways.
WARM_UP_S = 0.5
# Calls between two looks at whether to end.
CALLS = 50


def compute(number: int, calls: "list[int]", over: threading.Event) -> None:
    """Call `step` until it is over, and count."""
    total, is_over = 0, over.is_set
    while not is_over():
        for _ in range(CALLS):
            total = step(total)
        calls[number] += CALLS


def sleep(period_s: float, lasts_s: float) -> "list[float]":
    """How late each sleep of a while ended, in milliseconds."""
    late_ms: list[float] = []
    now_s = time.perf_counter()
    end_s = now_s + lasts_s
    while now_s < end_s:
        due_s = now_s + period_s
        time.sleep(period_s)
        now_s = time.perf_counter()
        late_ms.append((now_s - due_s) * 1e3)
    return late_ms


def slice_ns() -> int:
    """The slice of the calling thread; 0 on a kernel that has none."""
    import ctypes
    import platform
    import struct

    # `struct sched_attr` (<linux/sched/types.h>), the sixth word of which it is.
    layout = struct.Struct("=IIQiIQQQ")
    read = ctypes.create_string_buffer(layout.size)
    sched_getattr = {"x86_64": 315, "aarch64": 275}[platform.machine()]
    if ctypes.CDLL(None).syscall(sched_getattr, 0, read, layout.size, 0):
        return 0
    return layout.unpack(read.raw)[5]


def main() -> None:
    """Sleeps."""
    parser = work.options(__doc__)
    parser.add_argument("--threads", type=int, required=True, help="that compute")
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--period", type=float, required=True, help="of a sleep, in seconds")
    options = work.parse(parser)
    calls, over = [0] * options.threads, threading.Event()
    threads = [
        threading.Thread(target=compute, args=(number, calls, over))
        for number in range(options.threads)
    ]
    for thread in threads:
        thread.start()
    sleep(options.period, WARM_UP_S)
    usage = resource.getrusage(resource.RUSAGE_SELF)
    before, wall_s, cpu_s = sum(calls), time.perf_counter(), time.process_time()
    late_ms = sleep(options.period, options.seconds)
    done = sum(calls) - before
    wall_s, cpu_s = time.perf_counter() - wall_s, time.process_time() - cpu_s
    now = resource.getrusage(resource.RUSAGE_SELF)
    over.set()
    for thread in threads:
        thread.join()
    switches = now.ru_nvcsw + now.ru_nivcsw - usage.ru_nvcsw - usage.ru_nivcsw
    slept = {"late_ms": late_ms, "slice_ns": slice_ns(), "context_switches": switches}
    work.say_result({"wall_s": wall_s, "cpu_s": cpu_s, "calls": done, **slept})


if __name__ == "__main__":
    main()
