"""What the GIL's metrics cost a server that has them.

    python bench/metrics.py [--rounds N] [--requests N] [--python PATH] [--json FILE] [--quick]

Flask behind waitress answers the same number of small requests without metrics, with the counters
of the process alone (scraped once a second, which is more than anybody does), and with the
middleware and its histograms besides. What is compared is the CPU time of the server for this
fixed work. The parts are measured alone as well: a scrape, and the middleware of a request. From
them and from the number of releases follows the share that cannot be seen in the noise.
"""

import argparse
import http.client
import json
import statistics
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from interleaving import Measured, Runs, Target, columns, interleave, parse, parser, report
from peers import FOLDER
from prometheus_client.parser import text_string_to_metric_families
from rich.table import Table
from surroundings import spread

# A scrape every 15 seconds is what Prometheus comes with.
SCRAPE_EVERY_S = 15
# What the hook adds to a release and the acquire after it (bench/trace_overhead.py).
HOOK_NS = 40
MOST_SHARE = 0.001


@dataclass(frozen=True)
class Level:
    """How much of the metrics a server has."""

    name: str


NOTHING, COUNTERS, MIDDLEWARE = LEVELS = [
    Level("nothing"),
    Level("counters"),
    Level("middleware"),
]
PARTS = Level("parts")


def main() -> None:
    """Measures and prints."""
    made = parser(__doc__, rounds=9)
    made.add_argument("--requests", type=int, default=4000, help="in a measurement [4000]")
    options = parse(made)
    if options.quick:
        options.requests = 300
    packages = ["ungil", "flask", "waitress", "prometheus_client"]
    report(options, packages, _sections(options), _targets)


def _sections(options: argparse.Namespace) -> Iterator[tuple[Runs, Table]]:
    setting = f"{options.requests} requests"
    runs = interleave(setting, LEVELS, lambda level: _serve(options, level), options)
    yield runs, _server_table(runs)
    parts = interleave("parts", [PARTS], lambda _: _parts(options), options)
    yield parts, _parts_table(parts)


def _serve(options: argparse.Namespace, level: Level) -> Measured:
    """CPU seconds of the server for all requests, and how often it let go of the GIL meanwhile."""
    words = [options.python, str(FOLDER / "metered.py"), "server", level.name]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            port = json.loads(process.stdout.readline())["port"]
            connection = http.client.HTTPConnection("127.0.0.1", port)
            for _ in range(100):
                _get(connection, "/")
            before, releases = _cpu_s(connection), _releases(connection)
            began = last = time.monotonic()
            for _ in range(options.requests):
                _get(connection, "/")
                if level is not NOTHING and time.monotonic() - last > 1:
                    last = time.monotonic()
                    _get(connection, "/metrics")
            wall_s = time.monotonic() - began
            cpu_s = _cpu_s(connection) - before
            return {
                "cpu_s": cpu_s,
                "wall_s": wall_s,
                "releases": _releases(connection) - releases,
            }
        finally:
            process.kill()


def _get(connection: http.client.HTTPConnection, path: str) -> bytes:
    connection.request("GET", path)
    return connection.getresponse().read()


def _cpu_s(connection: http.client.HTTPConnection) -> float:
    return json.loads(_get(connection, "/cpu"))["cpu_s"]


def _releases(connection: http.client.HTTPConnection) -> float:
    families = text_string_to_metric_families(_get(connection, "/metrics").decode())
    samples = [sample for family in families for sample in family.samples]
    return sum(it.value for it in samples if it.name == "python_gil_holds_total")


def _parts(options: argparse.Namespace) -> Measured:
    words = [options.python, str(FOLDER / "metered.py"), "parts"]
    return json.loads(subprocess.run(words, stdout=subprocess.PIPE, check=True).stdout)


def _cpu(measured: Measured) -> float:
    return measured["cpu_s"]


def _server_table(runs: Runs) -> Table:
    table = columns(
        f"{runs.setting}: CPU time of the server",
        *("", "us a request", "to nothing (min-max)", "releases a request"),
    )
    requests = float(runs.setting.split()[0])
    for level in LEVELS:
        releases = runs.median(level, lambda it: it["releases"]) / requests
        table.add_row(
            level.name,
            f"{runs.median(level, _cpu) / requests * 1e6:.1f}",
            spread(runs.ratios(level, NOTHING, _cpu)),
            f"{releases:.1f}" if releases else "not counted",
        )
    return table


def _parts_table(runs: Runs) -> Table:
    table = columns("one of each, alone", *("", "ns of CPU time (min-max)"))
    names = ["scrape", "wsgi", "wsgi histograms", "asgi", "asgi histograms"]
    for name in names:
        values = runs.each(PARTS, lambda it, name=name: _own(it, name))
        middle = f"{statistics.median(values):.0f} ({min(values):.0f}-{max(values):.0f})"
        table.add_row(name, middle)
    return table


def _own(parts: dict[str, Any], name: str) -> float:
    """What a part takes, without the application that it stands around."""
    kind = name.split()[0]
    return parts[name] - parts.get(f"{kind} bare", 0.0)


def _targets(taken: list[Runs]) -> Iterator[Target]:
    server, parts = taken
    requests = float(server.setting.split()[0])
    request_s = server.median(NOTHING, _cpu) / requests
    releases = server.median(COUNTERS, lambda it: it["releases"]) / requests
    scrape_s = parts.median(PARTS, lambda it: it["scrape"]) / 1e9
    hook = releases * HOOK_NS / 1e9 / request_s
    middleware = parts.median(PARTS, lambda it: _own(it, "wsgi histograms")) / 1e9 / request_s
    scraped = scrape_s / SCRAPE_EVERY_S
    yield Target(
        f"a scrape each {SCRAPE_EVERY_S} s takes at most {MOST_SHARE:.1%} of a core",
        scraped <= MOST_SHARE,
        f"{scraped:.4%}",
    )
    for name, share in [("counting", hook), ("the middleware with histograms", middleware)]:
        busy = (
            f"{name} takes at most {MOST_SHARE:.1%} of a core that does nothing but such requests"
        )
        yield Target(busy, share <= MOST_SHARE, f"{share:.3%}")
    # At how many requests a second all of it is a thousandth of a core.
    rest = MOST_SHARE - scraped
    rate = rest / ((hook + middleware) * request_s)
    yield Target(
        f"all of it takes at most {MOST_SHARE:.1%} of a core at 100 requests/s",
        rate >= 100,
        f"up to {rate:.0f} requests/s",
    )


if __name__ == "__main__":
    main()
