"""Dask: how soon a worker's event loop answers, the one that sends its heartbeats, beside tasks.

The tasks are pure Python and hold the GIL (distributed issues 6324 and 7290).
"""

from gallery_runs import Case, Measured, Place, load, observed, program

RATE = 20


def _measure(place: Place, setting: str) -> Measured:
    tasks = setting.split()[0]
    words = ("--tasks", tasks, "--seconds", place.seconds, "--rate", RATE)
    with load(place, "dask_scheduler", *words) as scheduler:
        address = scheduler.says()["address"]
        command = ("-m", "distributed.cli.dask_worker", address, "--no-nanny", "--no-dashboard")
        with program(place, *command, "--nthreads", tasks, "--nworkers", 1) as worker:
            return observed(place, worker, scheduler)


CASE = Case(
    name="dask",
    title="Dask: a worker beside its tasks",
    packages=("distributed",),
    measured="the time until the worker's event loop, which sends its heartbeats, says who it is, "
    f"{RATE} a second",
    settings=("4 tasks compute",),
    measure=_measure,
)
