"""A Flask application for the servers: gunicorn and waitress."""

import flask
from computing import COUNTED, compute

app = flask.Flask(__name__)


@app.get("/small")
def small() -> flask.Response:
    """Answered at once."""
    return flask.jsonify(status="ok")


@app.get("/compute")
def computed() -> flask.Response:
    """Computed by the thread that serves the request."""
    return flask.jsonify(total=compute())


@app.get("/compute-briefly")
def computed_briefly() -> flask.Response:
    """The same for some 1 ms, which is no more than serving it takes."""
    return flask.jsonify(total=compute(COUNTED))
