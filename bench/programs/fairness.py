"""Threads compute for a fixed time; says how much each did.

A handoff is seen when a thread finds that another has computed since its own last look. It looks
every `CALLS` calls of `step`, which take far less than a quantum.
"""

import resource
import threading
import time

import work
from one_cpu_thread import step

CALLS = 50


class Worker:
    """A computing thread and what it did."""

    last: "Worker | None" = None
    """Who computed last, of all of them."""

    def __init__(self, barrier: threading.Barrier, seconds: float) -> None:
        """Not started yet; begins with the others."""
        self.calls = self.handoffs = self.context_switches = 0
        self.cpu_s = 0.0
        self._seconds = seconds
        self._barrier = barrier
        self.thread = threading.Thread(target=self._compute)

    def _compute(self) -> None:
        self._barrier.wait()
        total, clock = 0, time.perf_counter
        end_s = clock() + self._seconds
        while clock() < end_s:
            if Worker.last is not self:
                Worker.last = self
                self.handoffs += 1
            for _ in range(CALLS):
                total = step(total)
            self.calls += CALLS
        usage = resource.getrusage(resource.RUSAGE_THREAD)
        self.context_switches = usage.ru_nvcsw + usage.ru_nivcsw
        self.cpu_s = time.thread_time()


def main() -> None:
    """Computes."""
    parser = work.options(__doc__)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    options = work.parse(parser)
    barrier = threading.Barrier(options.threads + 1)
    workers = [Worker(barrier, options.seconds) for _ in range(options.threads)]
    for worker in workers:
        worker.thread.start()
    barrier.wait()
    began_s = time.perf_counter()
    for worker in workers:
        worker.thread.join()
    work.say_result(
        {
            "wall_s": time.perf_counter() - began_s,
            "cpu_s": sum(worker.cpu_s for worker in workers),
            "calls": [worker.calls for worker in workers],
            "handoffs": sum(worker.handoffs for worker in workers),
            "context_switches": sum(worker.context_switches for worker in workers),
        }
    )


if __name__ == "__main__":
    main()
