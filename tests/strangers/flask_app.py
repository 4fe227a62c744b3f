"""Flask, for gunicorn."""

import known  # noqa: F401
from flask import Flask
from work import answer

app = Flask(__name__)


@app.route("/<int:number>")
def sums(number):
    """The sum below a number."""
    return str(answer(number))
