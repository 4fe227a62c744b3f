"""waitress, before a Flask application: an asyncore loop and 16 threads."""

import gallery_http
from gallery_runs import Case, Measured, Place


def _measure(place: Place, setting: str) -> Measured:
    command = ("-m", "waitress", f"--listen=127.0.0.1:{gallery_http.PORT}", "--threads=16")
    return gallery_http.measure(
        place, (*command, "flask_app:app"), computing=int(setting.split()[0])
    )


CASE = Case(
    name="waitress",
    title="waitress with 16 threads, and Flask",
    packages=("waitress", "flask"),
    measured=gallery_http.MEASURED,
    settings=("4 requests compute",),
    measure=_measure,
)
