"""waitress, before a Flask application: an asyncore loop and 16 threads."""

from gallery_runs import Case, Measured, Place

from cases import http_load


def _measure(place: Place, setting: str) -> Measured:
    command = ("-m", "waitress", f"--listen=127.0.0.1:{http_load.PORT}", "--threads=16")
    return http_load.measure(place, (*command, "flask_app:app"), computing=int(setting.split()[0]))


CASE = Case(
    name="waitress",
    title="waitress with 16 threads, and Flask",
    packages=("waitress", "flask"),
    measured=http_load.MEASURED,
    settings=("4 requests compute",),
    measure=_measure,
)
