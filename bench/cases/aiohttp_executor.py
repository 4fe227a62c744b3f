"""aiohttp: an event loop beside `run_in_executor` with 1, 4 and 16 computing threads."""

import gallery_http
from gallery_runs import PROGRAMS, Case, Measured, Place


def _measure(place: Place, setting: str) -> Measured:
    command = (PROGRAMS / "aiohttp_app.py", gallery_http.PORT)
    return gallery_http.measure(place, command, computing=int(setting.split()[0]))


CASE = Case(
    name="aiohttp",
    title="aiohttp: the event loop, beside `run_in_executor`",
    packages=("aiohttp",),
    measured=gallery_http.MEASURED,
    settings=("1 computing thread", "4 computing threads", "16 computing threads"),
    measure=_measure,
)
