"""A thousand processes use one heap, a hundred at a time, and every other one is killed.

As many as UNGIL_PROCESSES says, if it is set.
"""

import os
import signal

from ungil import share

heap = share.Heap(max_size=1 << 26)
heap.root["pids"] = {}
go, tell_go = os.pipe()


def child(number):
    os.read(go, 1)
    heap.root.incr("count")
    heap.root["pids"][number] = [os.getpid()]
    if number % 2:
        os.kill(os.getpid(), signal.SIGKILL)


for begin in range(0, int(os.environ.get("UNGIL_PROCESSES", "1000")), 100):
    children = []
    for number in range(begin, begin + 100):
        children.append(os.fork())
        if children[-1] == 0:
            status = 1
            try:
                child(number)
                status = 0
            finally:
                os._exit(status)
    os.write(tell_go, b"!" * 100)
    for number, pid in enumerate(children, begin):
        assert os.waitpid(pid, 0)[1] == (signal.SIGKILL if number % 2 else 0)
        assert heap.root["pids"][number][:] == [pid]
print(heap.root["count"], len(heap.root["pids"]))
