"""Threads compute; says how much each did in a stretch of time in which all were at work.

A handoff is seen when a thread finds that another has computed since its own last look. It looks
every `CALLS` calls of `step`, which take far less than a quantum.
"""

import resource
import threading
import time

import work
from one_cpu_thread import step

CALLS = 50
# For the threads to fall into their ways.
WARM_UP_S = 0.3


class Worker:
    """A computing thread and what it has done up to now."""

    last: "Worker | None" = None
    """Who computed last, of all of them."""

    def __init__(self, over: threading.Event) -> None:
        """Not started yet."""
        self.calls = self.handoffs = 0
        self._over = over
        self.thread = threading.Thread(target=self._compute)

    def cpu_s(self) -> float:
        """CPU time that it has used."""
        assert self.thread.ident is not None
        return time.clock_gettime(time.pthread_getcpuclockid(self.thread.ident))

    def _compute(self) -> None:
        total, is_over = 0, self._over.is_set
        while not is_over():
            if Worker.last is not self:
                Worker.last = self
                self.handoffs += 1
            for _ in range(CALLS):
                total = step(total)
            self.calls += CALLS


class Reading:
    """What was used and done up to now."""

    def __init__(self, workers: "list[Worker]") -> None:
        """Reads all at once: the calling thread has the GIL meanwhile."""
        usage = resource.getrusage(resource.RUSAGE_SELF)
        self.wall_s, self.cpu_s = time.perf_counter(), time.process_time()
        self.calls = [worker.calls for worker in workers]
        self.held_s = [worker.cpu_s() for worker in workers]
        self.handoffs = sum(worker.handoffs for worker in workers)
        self.context_switches = usage.ru_nvcsw + usage.ru_nivcsw


def main() -> None:
    """Computes."""
    parser = work.options(__doc__)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    options = work.parse(parser)
    over = threading.Event()
    workers = [Worker(over) for _ in range(options.threads)]
    for worker in workers:
        worker.thread.start()
    while not all(worker.calls for worker in workers):
        time.sleep(0.01)
    time.sleep(WARM_UP_S)
    before = Reading(workers)
    time.sleep(options.seconds)
    after = Reading(workers)
    over.set()
    for worker in workers:
        worker.thread.join()
    work.say_result(
        {
            "wall_s": after.wall_s - before.wall_s,
            "cpu_s": after.cpu_s - before.cpu_s,
            "held_s": [
                late - early for early, late in zip(before.held_s, after.held_s, strict=True)
            ],
            "calls": [late - early for early, late in zip(before.calls, after.calls, strict=True)],
            "handoffs": after.handoffs - before.handoffs,
            "context_switches": after.context_switches - before.context_switches,
        }
    )


if __name__ == "__main__":
    main()
