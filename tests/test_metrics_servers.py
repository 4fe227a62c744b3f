"""The examples with metrics: real servers of three frameworks, and scrapes of them."""

from __future__ import annotations

import json
import re
import subprocess
import time
import urllib.parse
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import pytest
from metrics_server import FRAMEWORKS, Server, serving
from suite import PATIENCE_S, run_python

ROUTES = {
    "flask": "/pages/<int:number>",
    "fastapi": "/pages/{number}",
    "django": "/pages/<int:number>",
}


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_scrape_tells_what_threads_and_requests_waited(framework: str) -> None:
    with serving(framework) as server:
        before = list(server.samples())
        for number in range(20):
            _, headers = server.get(f"/pages/{number}")
            assert re.fullmatch(r"gil;dur=\d+\.\d{3}", headers["Server-Timing"])
        threads = {labels["threads"] for name, labels, _ in before if name == "python_gil_threads"}
        assert threads in ({"other", "workers", "reports"}, {"other", "loop", "reports"})
        after = list(server.samples())
        labels = {"method": "GET", "route": ROUTES[framework]}
        assert server.value("python_gil_request_wait_seconds_count", **labels) == 20
        assert server.value("python_gil_request_hold_seconds_sum", **labels) > 0
        # The thread that computes holds it nearly all the time, and is made to let go.
        assert server.value("python_gil_hold_seconds_total", threads="reports") > 0
        assert server.value("python_gil_releases_total", threads="reports", kind="forced") > 0
        fallen = [
            (name, labels, value)
            for name, labels, value in before
            if name.endswith("_total") and value > dict_of(after)[name, frozenset(labels.items())]
        ]
        assert not [it for it in fallen if it[0].startswith("python_gil_")]


def dict_of(samples: list[tuple[str, dict[str, str], float]]) -> dict[Any, float]:
    """Samples by their names and labels."""
    return {(name, frozenset(labels.items())): value for name, labels, value in samples}


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_no_url_becomes_a_label(framework: str) -> None:
    with serving(framework) as server:
        for number in range(5):
            server.get(f"/pages/{number}")
            with pytest.raises(HTTPError, match="404"):
                server.get(f"/nothing/{number}")
        routes = {its["route"] for _, its, _ in server.samples() if "route" in its}
        assert routes <= {ROUTES[framework], "/metrics", "unknown"}


def test_a_page_of_another_thread_is_charged_to_its_request() -> None:
    with serving("fastapi") as server:
        for number in range(5):
            server.get(f"/files/{number}")
        labels = {"method": "GET", "route": "/files/{number}"}
        assert server.value("python_gil_request_wait_seconds_count", **labels) == 5
        # Its thread reads a file, and wants the GIL back from one that computes.
        assert server.value("python_gil_request_wait_seconds_sum", **labels) > 0


@contextmanager
def prometheus(folder: Path, target: str) -> Generator[Server]:
    """A real Prometheus that scrapes `target` every 200 ms."""
    config = folder / "prometheus.yml"
    config.write_text(
        "scrape_configs:\n- job_name: example\n  scrape_interval: 200ms\n"
        f"  static_configs:\n  - targets: ['{target}']\n"
    )
    command = ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={folder / 'data'}"]
    # The kernel chooses a port that is free; Prometheus logs it.
    command += ["--web.listen-address=127.0.0.1:0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, bufsize=1) as running:
        assert running.stderr is not None
        try:
            for line in running.stderr:
                found = re.search(r'msg="Listening on" address=(127\.0\.0\.1:\d+)', line)
                if found and not found[1].endswith(":0"):
                    break
            else:
                pytest.fail("Prometheus does not listen")
            yield Server(f"http://{found[1]}")
        finally:
            running.kill()


def test_prometheus_scrapes_and_answers_who_starves(tmp_path: Path) -> None:
    with (
        serving("flask") as server,
        prometheus(tmp_path, server.url.removeprefix("http://")) as database,
    ):
        server.get("/pages/1")
        holds_most = "topk(1, rate(python_gil_hold_seconds_total[10s]))"
        assert answered(database, holds_most)[0]["metric"]["threads"] == "reports"
        starved = "rate(python_gil_wait_seconds_total[10s])"
        starved += " / (rate(python_gil_wait_seconds_total[10s])"
        starved += " + rate(python_gil_hold_seconds_total[10s]))"
        assert {it["metric"]["threads"] for it in answered(database, starved)} >= {"reports"}
        page = "route='/pages/<int:number>'"
        quantile = "histogram_quantile(0.99, sum by (le, route)"
        quantile += f" (python_gil_request_wait_seconds_bucket{{{page}}}))"
        assert len(answered(database, quantile)) == 1


def answered(database: Server, question: str) -> list[dict[str, Any]]:
    """The answer of Prometheus, once it has scraped often enough to have one."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        # It listens before it is ready, and says 503 until then.
        with suppress(HTTPError):
            text, _ = database.get(f"/api/v1/query?{urllib.parse.urlencode({'query': question})}")
            found: list[dict[str, Any]] = json.loads(text)["data"]["result"]
            if found:
                return found
        time.sleep(0.1)
    raise AssertionError(f"no answer to {question}")


def test_django_names_the_route_of_an_async_view_too() -> None:
    program = """
import asyncio
from django.conf import settings
from django.http import HttpResponse
from django.urls import path

async def page(request, number):
    return HttpResponse("x")

urlpatterns = [path("pages/<int:number>", page)]
settings.configure(ROOT_URLCONF=__name__, ALLOWED_HOSTS=["*"],
                   MIDDLEWARE=["ungil.metrics.django.route_middleware"])
from django.core.asgi import get_asgi_application
from ungil.metrics.asgi import GilMiddleware

costs = []
app = GilMiddleware(get_asgi_application(), observe=costs.append)
asked = [{"type": "http.request", "body": b"", "more_body": False}]

async def receive():
    if asked:
        return asked.pop()
    await asyncio.Event().wait()

async def send(message):
    pass

scope = {"type": "http", "method": "GET", "path": "/pages/7", "headers": [], "query_string": b""}
asyncio.run(app(scope, receive, send))
assert [cost.route for cost in costs] == ["/pages/<int:number>"], costs
"""
    ended = run_python("-c", program)
    assert ended.returncode == 0, ended.stderr
