"""waitress, before a Flask application: a loop that reads and writes, and 16 threads.

In the second setting all requests are short: a control.
"""

import gallery_http
from gallery_runs import Case, Measured, Place

SETTINGS = {
    "4 requests at once compute 50 ms each": ("/compute", 4),
    "8 requests at once compute 1 ms each": ("/compute-briefly", 8),
}


def _measure(place: Place, setting: str) -> Measured:
    command = ("-m", "waitress", f"--listen=127.0.0.1:{gallery_http.PORT}", "--threads=16")
    compute, computing = SETTINGS[setting]
    return gallery_http.measure(place, (*command, "flask_app:app"), computing, compute=compute)


CASE = Case(
    name="waitress",
    title="waitress with 16 threads, and Flask",
    packages=("waitress", "flask"),
    measured=gallery_http.MEASURED,
    settings=tuple(SETTINGS),
    measure=_measure,
    beyond=("8 requests at once compute 1 ms each",),
    note="Where all requests are short, nobody computes for long, and there is little to gain.",
)
