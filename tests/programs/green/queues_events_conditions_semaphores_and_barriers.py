"""Queues, events, conditions, semaphores and barriers."""

import queue
import threading

todo, done = queue.Queue(2), queue.SimpleQueue()
go, ready = threading.Event(), threading.Barrier(3)
many, condition, seen = threading.BoundedSemaphore(2), threading.Condition(), []


def work():
    ready.wait()
    assert go.wait()
    while (item := todo.get()) is not None:
        with many:
            done.put(item * item)
    with condition:
        seen.append(1)
        condition.notify()


threads = [threading.Thread(target=work) for _ in range(2)]
[it.start() for it in threads]
ready.wait()
go.set()
for item in [*range(20), None, None]:
    todo.put(item)
with condition:
    assert condition.wait_for(lambda: len(seen) == 2)
print(sorted(done.get() for _ in range(20)))
try:
    done.get(timeout=0.01)
except queue.Empty:
    print("empty")
