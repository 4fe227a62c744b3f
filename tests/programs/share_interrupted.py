"""A program that waits for everything shared that one can wait for, and is interrupted."""

import threading

from ungil import share

heap = share.Heap(max_size=1 << 20)
held = heap.share(share.Lock())
held.acquire()
condition, rlock = heap.share(share.Condition()), heap.share(share.RLock())
monitor = heap.share({})
done = heap.share(share.Event())


def hold():
    with rlock, monitor:
        ready.set()
        done.wait()


ready = threading.Event()
holder = threading.Thread(target=hold)
holder.start()
ready.wait()


def wait_for_condition():
    with condition:
        condition.wait()


waits = [
    held.acquire,
    lambda: held.acquire(timeout=1000),
    rlock.acquire,
    monitor.__enter__,
    wait_for_condition,
    heap.share(share.Semaphore(0)).acquire,
    heap.share(share.BoundedSemaphore(0)).acquire,
    heap.share(share.Event()).wait,
    heap.share(share.Barrier(2)).wait,
]
for wait in waits:
    try:
        print("waits", flush=True)
        wait()
    except KeyboardInterrupt:
        print("interrupted", flush=True)
with condition:
    condition.notify_all()
done.set()
holder.join()
with rlock, monitor:
    print("done", flush=True)
