"""Celery, with Redis."""

import os

import known  # noqa: F401
from celery import Celery
from work import answer

url = os.environ["REDIS_URL"]
app = Celery("celery_app", broker=url, backend=url)


@app.task
def sums(number):
    """The sum below a number."""
    return answer(number)
