"""A scrape of a worker's metrics, from prometheus_client's own server: a thread for each."""

import gallery_http
from gallery_runs import PROGRAMS, Case, Measured, Place

# Prometheus asks more rarely. So many still leave stock idle between two; 20 a second do not.
RATE = 5


def _measure(place: Place, setting: str) -> Measured:
    command = (PROGRAMS / "prometheus_app.py", gallery_http.PORT, setting.split()[0])
    return gallery_http.measure(place, command, computing=0, small="/metrics", rate=RATE)


CASE = Case(
    name="prometheus",
    title="`prometheus_client`: a scrape of a worker that computes",
    packages=("prometheus_client",),
    measured=f"the time from a scrape to its answer, {RATE} a second, each on a new connection",
    settings=("4 computing threads",),
    measure=_measure,
)
