"""FastAPI under uvicorn: endpoints of both kinds, beside others that compute in FastAPI's pool.

The last setting is one that no scheduler can help: an `async` endpoint that computes has the event
loop to itself until it is done.
"""

import gallery_http
from gallery_runs import Case, Measured, Place

SETTINGS = {
    "sync endpoint, 4 compute": ("/sync", "/compute", 4),
    "async endpoint, 4 compute": ("/async", "/compute", 4),
    "async endpoint, 1 computes on the loop": ("/async", "/compute-on-the-loop", 1),
}


def _measure(place: Place, setting: str) -> Measured:
    small, compute, computing = SETTINGS[setting]
    command = ("-m", "uvicorn", "fastapi_app:app", "--port", gallery_http.PORT)
    quiet = ("--log-level", "warning")
    return gallery_http.measure(place, (*command, *quiet), computing, small, compute)


CASE = Case(
    name="fastapi",
    title="FastAPI under uvicorn",
    packages=("fastapi", "uvicorn"),
    measured=gallery_http.MEASURED,
    settings=tuple(SETTINGS),
    measure=_measure,
    beyond=("async endpoint, 1 computes on the loop",),
    note="An `async` endpoint that computes blocks its own loop. The GIL has no part in that.",
)
