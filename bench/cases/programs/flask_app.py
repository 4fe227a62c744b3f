"""A Flask application for the servers: gunicorn and waitress."""

import flask
from computing import compute

app = flask.Flask(__name__)


@app.get("/small")
def small() -> flask.Response:
    """Answered at once."""
    return flask.jsonify(status="ok")


@app.get("/compute")
def computed() -> flask.Response:
    """Computed by the thread that serves the request."""
    return flask.jsonify(total=compute())
