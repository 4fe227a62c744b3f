"""A Flask application behind a server nobody here wrote: small requests, and such that compute.

Prints its port. Serves until its standard input ends; then says how much CPU time it used and how
much it computed between `/begin` and `/end`.
"""

import os
import socket
import sys
import threading
import time

import flask
import work
from one_cpu_thread import compute

THREADS = 16


class Meter:
    """What is measured between two requests."""

    def __init__(self) -> None:
        """Nothing yet."""
        self.calls = 0
        self.before = self.after = (0.0, 0.0, 0)

    def read(self) -> "tuple[float, float, int]":
        """Now."""
        return time.perf_counter(), time.process_time(), self.calls


def application(meter: Meter) -> flask.Flask:
    """The application."""
    app = flask.Flask("web")

    @app.get("/small")
    def small() -> flask.Response:
        return flask.jsonify(number=42, text="small")

    @app.get("/burn/<int:calls>")
    def burn(calls: int) -> flask.Response:
        compute(calls)
        meter.calls += calls
        return flask.jsonify(calls=calls)

    @app.get("/begin")
    def begin() -> flask.Response:
        meter.before = meter.read()
        return flask.jsonify()

    @app.get("/end")
    def end() -> flask.Response:
        meter.after = meter.read()
        return flask.jsonify()

    return app


def serve(server: str, app: flask.Flask, channel: socket.socket) -> None:
    """Serve for ever."""
    if server == "waitress":
        import waitress

        waitress.serve(app, sockets=[channel], threads=THREADS, _quiet=True)
    else:
        from cheroot import wsgi

        made = wsgi.Server(channel.getsockname(), app, numthreads=THREADS)
        channel.close()
        made.start()


def main() -> None:
    """Serves."""
    parser = work.options(__doc__)
    parser.add_argument("--server", choices=["waitress", "cheroot"], required=True)
    parser.add_argument("--core", type=int)
    options = work.parse(parser)
    if options.core is not None:
        os.sched_setaffinity(0, {options.core})
    meter = Meter()
    channel = socket.create_server(("127.0.0.1", 0), backlog=128)
    work.say({"port": channel.getsockname()[1]})
    app = application(meter)
    threading.Thread(target=serve, args=(options.server, app, channel), daemon=True).start()
    sys.stdin.read()
    pairs = zip(meter.before, meter.after, strict=True)
    wall_s, cpu_s, calls = (late - early for early, late in pairs)
    work.say_result({"wall_s": wall_s, "cpu_s": cpu_s, "calls": calls})
    # Neither server ends while a client keeps its connection.
    os._exit(0)


if __name__ == "__main__":
    main()
