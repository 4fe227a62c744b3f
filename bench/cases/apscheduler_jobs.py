"""APScheduler: how late its jobs run, and how many it leaves out, beside threads that compute."""

from gallery_runs import PROGRAMS, Case, Measured, Place, observed, program


def _measure(place: Place, setting: str) -> Measured:
    words = (PROGRAMS / "apscheduler_jobs.py", setting.split()[0], place.seconds)
    with program(place, *words) as scheduler:
        return observed(place, scheduler, scheduler)


CASE = Case(
    name="apscheduler",
    title="APScheduler: 100 runs a second of short jobs",
    packages=("apscheduler",),
    measured="the time from when a run was due to its end, by the program's own clock",
    settings=("4 computing threads", "16 computing threads"),
    measure=_measure,
    counts={"left_out": "runs left out"},
    note="Its default leaves out a run that is more than a second late (a misfire), or whose "
    "predecessor has not ended.",
)
