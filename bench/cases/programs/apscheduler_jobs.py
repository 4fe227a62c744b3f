"""APScheduler: twenty jobs, each every 0.2 s, beside threads that compute.

    apscheduler_jobs.py THREADS SECONDS

APScheduler tells when a run was due. A run that begins more than a second late is a misfire by its
default (`misfire_grace_time`): it is left out. So is one that is due while its predecessor waits.
"""

import sys
import time
from datetime import datetime

import computing
from apscheduler.events import (
    EVENT_JOB_EXECUTED,
    EVENT_JOB_MAX_INSTANCES,
    EVENT_JOB_MISSED,
    JobExecutionEvent,
    JobSubmissionEvent,
)
from apscheduler.schedulers.background import BackgroundScheduler
from says import begins, ends, say

JOBS = 20
PERIOD_S = 0.2
WARM_UP_S = 1.0

late_ms: list[float] = []
left_out = 0


def job() -> None:
    """Something short."""


def was_run(event: JobExecutionEvent) -> None:
    """Told by the thread that ran the job, when it was done."""
    due = event.scheduled_run_time
    late_ms.append((datetime.now(due.tzinfo) - due).total_seconds() * 1e3)


def was_left_out(_event: JobExecutionEvent | JobSubmissionEvent) -> None:
    """A misfire, or two at once."""
    global left_out
    left_out += 1


def main() -> None:
    """Runs them."""
    threads, seconds = int(sys.argv[1]), float(sys.argv[2])
    scheduler = BackgroundScheduler()
    scheduler.add_listener(was_run, EVENT_JOB_EXECUTED)
    scheduler.add_listener(was_left_out, EVENT_JOB_MISSED | EVENT_JOB_MAX_INSTANCES)
    for _ in range(JOBS):
        scheduler.add_job(job, "interval", seconds=PERIOD_S)
    scheduler.start()
    computing.start(threads)
    time.sleep(WARM_UP_S)
    begins()
    ran, missed = len(late_ms), left_out
    time.sleep(seconds)
    measured, missed = late_ms[ran:], left_out - missed
    ends()
    say({"late_ms": measured, "left_out": missed})


if __name__ == "__main__":
    main()
