"""Programs as people write them, with a load, for bench/simulate.py.

    python bench/programs/simulated.py NAME --seconds S [--interval SECONDS]

Servers get their requests from a child process that is no part of what is recorded as the server.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import http.client
import json
import logging
import queue
import re
import runpy
import subprocess
import sys
import tempfile
import threading
import time
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flask import Flask

CONVOY_SERVER = Path(__file__).resolve().parents[2] / "examples" / "convoy_server.py"
ROWS: list[dict[str, object]] = [
    {"number": number, "name": f"row {number}", "tags": ["a", "b"]} for number in range(120)
]
LINE = "2026-01-31T12:03:41 host-17 app[4711]: request /items/%d took %d ms"

urlpatterns: list[object] = []
"""Those of Django, which looks for them here."""


def report(rows: int) -> int:
    """Pure Python, as a report that a handler builds."""
    total = 0
    for row in range(rows):
        total += sum(divmod(row * 7919, 97))
    return total


# --- servers


def convoy(seconds: float) -> None:
    """The example: waitress, and a thread that computes."""
    sys.argv = [str(CONVOY_SERVER), "--seconds", str(seconds)]
    runpy.run_path(str(CONVOY_SERVER), run_name="__main__")


def flask_app(page_asks_s: float = 0, report_asks_s: float = 0) -> Flask:
    """Pages, and reports of 60 ms or so of computing; each may first ask a database for so long."""
    from flask import Flask, render_template_string

    app = Flask("reports")
    page = "<ul>{% for row in rows %}<li>{{ row.number }} {{ row.name }}</li>{% endfor %}</ul>"

    @app.get("/")
    def index() -> str:  # pyright: ignore[reportUnusedFunction]
        if page_asks_s:
            time.sleep(page_asks_s)
        return render_template_string(page, rows=ROWS[:30])

    @app.get("/report")
    def big() -> str:  # pyright: ignore[reportUnusedFunction]
        if report_asks_s:
            time.sleep(report_asks_s)
        return str(report(300_000))

    return app


def flask(seconds: float) -> None:
    """Flask behind its own threaded server."""
    from werkzeug.serving import make_server

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = make_server("127.0.0.1", 0, flask_app(), threaded=True)
    threading.Thread(target=server.serve_forever, name="server", daemon=True).start()
    load(server.server_port, seconds, {"/": 3, "/report": 2})
    server.shutdown()


def waitress(seconds: float) -> None:
    """Flask behind the pool of threads of waitress, and a database."""
    from waitress import create_server

    logging.getLogger("waitress").setLevel(logging.ERROR)
    server = create_server(flask_app(0.002, 0.004), host="127.0.0.1", port=0, threads=8)
    threading.Thread(target=server.run, name="server", daemon=True).start()
    load(server.effective_port, seconds, {"/": 3, "/report": 2})


def fastapi(seconds: float) -> None:
    """FastAPI behind uvicorn: answers at once, and reports in its pool of threads."""
    import uvicorn
    from fastapi import FastAPI

    app = FastAPI()

    @app.get("/")
    async def index() -> list[dict[str, object]]:  # pyright: ignore[reportUnusedFunction]
        return ROWS[:10]

    @app.get("/report")
    def big() -> int:  # pyright: ignore[reportUnusedFunction]
        return report(300_000)

    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error"))
    thread = threading.Thread(target=server.run, name="event-loop", daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    load(port, seconds, {"/": 2, "/report": 2})
    server.should_exit = True
    thread.join()


def django(seconds: float) -> None:
    """Django behind the pool of threads of cheroot: small pages, and tables of 3,000 rows."""
    from cheroot.wsgi import Server
    from django import setup
    from django.conf import settings
    from django.core.wsgi import get_wsgi_application
    from django.http import HttpResponse
    from django.template import engines
    from django.urls import path

    backend = "django.template.backends.django.DjangoTemplates"
    settings.configure(
        ALLOWED_HOSTS=["*"], ROOT_URLCONF=__name__, SECRET_KEY="x", TEMPLATES=[{"BACKEND": backend}]
    )
    setup()
    row = "<tr><td>{{ row }}</td><td>{{ row|floatformat:2 }}</td></tr>"
    table = engines["django"].from_string("{% for row in rows %}" + row + "{% endfor %}")
    urlpatterns.append(path("", lambda _: HttpResponse("a small page")))
    urlpatterns.append(path("table", lambda _: HttpResponse(table.render({"rows": range(3_000)}))))
    server = Server(("127.0.0.1", 0), get_wsgi_application(), numthreads=8)
    server.prepare()
    threading.Thread(target=server.serve, name="accepting", daemon=True).start()
    load(server.socket.getsockname()[1], seconds, {"/": 3, "/table": 2})
    server.stop()


def grpc(seconds: float) -> None:
    """A gRPC server with a pool of 8 threads: answers at once, and computations of 60 ms or so."""
    from grpc import method_handlers_generic_handler as handlers
    from grpc import server as new_server
    from grpc import unary_unary_rpc_method_handler as handler

    methods = {
        "quick": handler(lambda request, _: request),
        "report": handler(lambda *_: str(report(300_000)).encode()),
    }
    with ThreadPoolExecutor(8, "handler") as executor:
        server = new_server(executor)
        server.add_generic_rpc_handlers((handlers("bench", methods),))
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        load(port, seconds, {"grpc:/bench/quick": 3, "grpc:/bench/report": 2})
        server.stop(None)


def tornado(seconds: float) -> None:
    """Tornado: answers at once, and reports in an executor of two threads."""
    from tornado.httpserver import HTTPServer
    from tornado.ioloop import IOLoop
    from tornado.netutil import bind_sockets
    from tornado.web import Application, RequestHandler

    executor = ThreadPoolExecutor(2, "executor")

    class Index(RequestHandler):
        def get(self) -> None:
            self.write({"rows": ROWS[:10]})

    class Report(RequestHandler):
        async def get(self) -> None:
            self.write(str(await IOLoop.current().run_in_executor(executor, report, 200_000)))

    (socket,) = bind_sockets(0, "127.0.0.1")
    logging.getLogger("tornado").setLevel(logging.ERROR)

    async def all_of_it() -> None:
        HTTPServer(Application([("/", Index), ("/report", Report)])).add_socket(socket)
        port = socket.getsockname()[1]
        await asyncio.to_thread(load, port, seconds, {"/": 3, "/report": 2})

    asyncio.run(all_of_it())


def aiohttp(seconds: float) -> None:
    """A server of aiohttp: answers at once, and files that a thread packs and takes apart."""
    from aiohttp import web

    block = json.dumps(ROWS).encode() * 20

    def packed() -> int:
        rows = json.loads(zlib.decompress(zlib.compress(block, 9))[: len(block) // 20])
        return sum(len(json.dumps(row, sort_keys=True)) for row in rows for _ in range(20))

    async def index(_: web.Request) -> web.Response:
        return web.json_response(ROWS[:10])

    async def file(_: web.Request) -> web.Response:
        return web.json_response(await asyncio.to_thread(packed))

    async def all_of_it() -> None:
        application = web.Application()
        application.add_routes([web.get("/", index), web.get("/file", file)])
        runner = web.AppRunner(application)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        await asyncio.to_thread(load, runner.addresses[0][1], seconds, {"/": 3, "/file": 3})
        await runner.cleanup()

    asyncio.run(all_of_it())


# --- no servers


def pool(seconds: float) -> None:
    """A pool of threads that compress, hash and describe blocks of data."""
    block = json.dumps(ROWS).encode() * 8

    def described(number: int) -> str:
        packed = zlib.compress(block + str(number).encode(), 6)
        digest = hashlib.sha256(packed).hexdigest()
        rows = [{**row, "digest": digest} for row in ROWS]
        return json.dumps(sorted(rows, key=lambda row: str(row["name"])), indent=1)

    end = time.monotonic() + seconds
    with ThreadPoolExecutor(4, "packer") as executor:
        number = 0
        while time.monotonic() < end:
            for _ in executor.map(described, range(number, number + 40)):
                number += 1


def event_loop(seconds: float) -> None:
    """An asyncio loop with many small tasks, and two computations at a time in its executor."""

    async def small(end: float) -> None:
        while time.monotonic() < end:
            await asyncio.sleep(0.002)
            json.dumps(ROWS[:20])

    async def big(executor: ThreadPoolExecutor, end: float) -> None:
        while time.monotonic() < end:
            await asyncio.get_running_loop().run_in_executor(executor, report, 200_000)

    async def all_of_it() -> None:
        end = time.monotonic() + seconds
        with ThreadPoolExecutor(2, "executor") as executor:
            await asyncio.gather(
                *(small(end) for _ in range(5)), *(big(executor, end) for _ in range(2))
            )

    asyncio.run(all_of_it())


def queues(seconds: float) -> None:
    """Threads that read lines, others that take them apart and write them down."""
    lines: queue.Queue[str | None] = queue.Queue(200)
    pattern = re.compile(r"(\S+) (\S+) app\[(\d+)\]: request (\S+) took (\d+) ms")
    end = time.monotonic() + seconds

    def reads(source: int) -> None:
        number = source
        while time.monotonic() < end:
            for _ in range(20):
                number += 2
                lines.put(LINE % (number, number % 97))
            time.sleep(0.001)
        lines.put(None)

    def takes_apart(file: Path) -> None:
        with file.open("w") as out:
            while (line := lines.get()) is not None:
                match = pattern.match(line)
                if match:
                    words = sorted(word for word in match.groups() for _ in range(40))
                    out.write(json.dumps(words) + "\n")
                    out.flush()

    with tempfile.TemporaryDirectory() as folder:
        threads = [
            threading.Thread(target=reads, args=(number,), name=f"reader-{number}")
            for number in (0, 1)
        ]
        threads += [
            threading.Thread(target=takes_apart, args=(Path(folder, str(n)),), name=f"parser-{n}")
            for n in (0, 1)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def joblib(seconds: float) -> None:
    """Threads of joblib, which makes new ones for each list of documents."""
    from joblib import Parallel, delayed

    word = re.compile(r"(\w+)-(\d+)")
    documents = [" ".join(f"word-{n * k} and" for n in range(100 * (k % 9 + 1))) for k in range(40)]

    def words(document: str) -> str:
        found = {match[1]: int(match[2]) for match in word.finditer(document)}
        packed = zlib.compress(json.dumps(found).encode() + document.encode())
        return hashlib.sha256(packed).hexdigest()

    end = time.monotonic() + seconds
    while time.monotonic() < end:
        Parallel(n_jobs=4, backend="threading")(delayed(words)(it) for it in documents)


def batches(seconds: float) -> None:
    """A new executor for each batch, and all of it is waited for."""

    def described(number: int) -> bytes:
        rows = [{**row, "batch": number} for row in ROWS[: 3 * number]]
        return zlib.compress(json.dumps(rows, indent=1).encode() * 4)

    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with ThreadPoolExecutor(4, "worker") as executor:
            for packed in executor.map(described, range(40)):
                hashlib.sha256(packed).digest()


# --- the load


def load(port: int, seconds: float, connections: dict[str, int]) -> None:
    """Asks for paths, each over so many connections, the next when the last was answered."""
    words = [f"{path}={count}" for path, count in connections.items()]
    command = [sys.executable, __file__, "client", "--seconds", str(seconds)]
    subprocess.run([*command, "--port", str(port), *words], check=True)


def client(port: int, seconds: float, words: list[str]) -> None:
    """What `load` starts."""
    end = time.monotonic() + seconds

    def calls(method: str) -> None:
        from grpc import insecure_channel

        with insecure_channel(f"127.0.0.1:{port}") as channel:
            call = channel.unary_unary(method)
            while time.monotonic() < end:
                call(b"x" * 100)
                time.sleep(0.003)

    def asks(path: str) -> None:
        if path.startswith("grpc:"):
            calls(path.removeprefix("grpc:"))
            return
        while time.monotonic() < end:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            connection.request("GET", path)
            answer = connection.getresponse()
            if answer.status != 200 or not answer.read():
                raise RuntimeError(f"{path} was answered with {answer.status}")
            connection.close()
            time.sleep(0.003)

    threads = [
        threading.Thread(target=asks, args=(path,))
        for path, _, count in (word.partition("=") for word in words)
        for _ in range(int(count))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


PROGRAMS = {
    "convoy": convoy,
    "flask": flask,
    "fastapi": fastapi,
    "pool": pool,
    "event-loop": event_loop,
    "queues": queues,
    # With these, the simulation was only tried.
    "django": django,
    "grpc": grpc,
    "waitress": waitress,
    "tornado": tornado,
    "aiohttp": aiohttp,
    "joblib": joblib,
    "batches": batches,
}


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=[*PROGRAMS, "client"])
    parser.add_argument("words", nargs="*")
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--interval", type=float, help="sys.setswitchinterval")
    parser.add_argument("--port", type=int)
    options = parser.parse_intermixed_args()
    if options.interval:
        sys.setswitchinterval(options.interval)
    if options.name == "client":
        client(options.port, options.seconds, options.words)
    else:
        PROGRAMS[options.name](options.seconds)


if __name__ == "__main__":
    main()
