"""aiohttp: an event loop beside `run_in_executor` with 1, 4 and 16 computing threads."""

from gallery_runs import PROGRAMS, Case, Measured, Place

from cases import http_load


def _measure(place: Place, setting: str) -> Measured:
    command = (PROGRAMS / "aiohttp_app.py", http_load.PORT)
    return http_load.measure(place, command, computing=int(setting.split()[0]))


CASE = Case(
    name="aiohttp",
    title="aiohttp: the event loop, beside `run_in_executor`",
    packages=("aiohttp",),
    measured=http_load.MEASURED,
    settings=("1 computing thread", "4 computing threads", "16 computing threads"),
    measure=_measure,
)
