"""The main thread draws a frame 60 times a second while others compute, as a GUI's would.

The schedule is absolute: frame k is due at k / 60. A frame that cannot begin before the next is
due is dropped, as a GUI drops it. Says how late each of the others began and was ready.
"""

import threading
import time

import work
from one_cpu_thread import step

RATE = 60.0
# Of `step`, to draw a frame: 1 to 2 ms.
CALLS = 1500
# Of `step`, between two looks at whether to end.
CHUNK = 50


def compute(number: int, calls: "list[int]", over: threading.Event) -> None:
    """Call `step` until it is over, and count."""
    total, is_over = 0, over.is_set
    while not is_over():
        for _ in range(CHUNK):
            total = step(total)
        calls[number] += CHUNK


def draw(frames: int) -> "tuple[list[float], list[float]]":
    """How late frames began and were ready, in milliseconds after they were due."""
    began_ms, ready_ms = [], []
    start_s = time.perf_counter() + 1 / RATE
    total = frame = 0
    while frame < frames:
        due_s = start_s + frame / RATE
        left_s = due_s - time.perf_counter()
        if left_s > 0:
            time.sleep(left_s)
        began_ms.append((time.perf_counter() - due_s) * 1e3)
        for _ in range(CALLS):
            total = step(total)
        now_s = time.perf_counter()
        ready_ms.append((now_s - due_s) * 1e3)
        frame = max(frame + 1, int((now_s - start_s) * RATE))
    return began_ms, ready_ms


def main() -> None:
    """Draws."""
    parser = work.options(__doc__)
    parser.add_argument("--threads", type=int, required=True, help="that compute")
    parser.add_argument("--seconds", type=float, required=True)
    options = work.parse(parser)
    calls, over = [0] * options.threads, threading.Event()
    threads = [
        threading.Thread(target=compute, args=(number, calls, over))
        for number in range(options.threads)
    ]
    frames = int(options.seconds * RATE)
    for thread in threads:
        thread.start()
    before, wall_s, cpu_s = sum(calls), time.perf_counter(), time.process_time()
    began_ms, ready_ms = draw(frames)
    done = sum(calls) - before + CALLS * len(began_ms)
    wall_s, cpu_s = time.perf_counter() - wall_s, time.process_time() - cpu_s
    over.set()
    for thread in threads:
        thread.join()
    measured = {"wall_s": wall_s, "cpu_s": cpu_s, "calls": done, "frames": frames}
    work.say_result({**measured, "began_ms": began_ms, "ready_ms": ready_ms})


if __name__ == "__main__":
    main()
