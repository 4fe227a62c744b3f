"""aiohttp: an event loop beside `run_in_executor` with 1, 4 and 16 computing threads."""

from gallery_runs import PROGRAMS, Case, Measured, Place, free_port, load, observed, program


def _measure(place: Place, setting: str) -> Measured:
    port, computing = free_port(), setting.split()[0]
    with (
        program(place, PROGRAMS / "aiohttp_app.py", port) as server,
        load(
            place,
            "http",
            *(port, "--seconds", place.seconds, "--small", "/small", "--rate", 50),
            *("--compute", "/compute", "--computing", computing),
        ) as client,
    ):
        return observed(place, server, client)


CASE = Case(
    name="aiohttp",
    title="aiohttp, an event loop beside `run_in_executor`",
    packages=("aiohttp",),
    measured="from a small request to its answer, 50 a second",
    settings=("1 computing thread", "4 computing threads", "16 computing threads"),
    measure=_measure,
)
