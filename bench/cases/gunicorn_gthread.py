"""gunicorn with a worker of threads (`gthread`), before a Flask application."""

import gallery_http
from gallery_runs import Case, Measured, Place


def _measure(place: Place, setting: str) -> Measured:
    command = ("-m", "gunicorn", "--worker-class", "gthread", "--threads", 16)
    bound = ("--bind", f"127.0.0.1:{gallery_http.PORT}", "--log-level", "error", "flask_app:app")
    return gallery_http.measure(place, (*command, *bound), computing=int(setting.split()[0]))


CASE = Case(
    name="gunicorn",
    title="gunicorn, one `gthread` worker of 16 threads, and Flask",
    packages=("gunicorn", "flask"),
    measured=gallery_http.MEASURED,
    settings=("4 requests at once compute 50 ms each",),
    measure=_measure,
)
