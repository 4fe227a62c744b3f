"""Tornado: its event loop beside handlers that compute in an executor."""

import gallery_http
from gallery_runs import PROGRAMS, Case, Measured, Place


def _measure(place: Place, setting: str) -> Measured:
    command = (PROGRAMS / "tornado_app.py", gallery_http.PORT)
    return gallery_http.measure(place, command, computing=int(setting.split()[0]))


CASE = Case(
    name="tornado",
    title="Tornado: the event loop, beside `run_in_executor`",
    packages=("tornado",),
    measured=gallery_http.MEASURED,
    settings=("4 computing threads",),
    measure=_measure,
)
