"""Tornado: its event loop beside handlers that compute in an executor."""

from gallery_runs import PROGRAMS, Case, Measured, Place

from cases import http_load


def _measure(place: Place, setting: str) -> Measured:
    command = (PROGRAMS / "tornado_app.py", http_load.PORT)
    return http_load.measure(place, command, computing=int(setting.split()[0]))


CASE = Case(
    name="tornado",
    title="Tornado: the event loop, beside `run_in_executor`",
    packages=("tornado",),
    measured=http_load.MEASURED,
    settings=("4 computing threads",),
    measure=_measure,
)
