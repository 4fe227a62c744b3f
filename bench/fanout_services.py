"""`limit="auto"` against real servers on the loopback, beside fixed limits and other tools.

    python bench/fanout_services.py [--rounds N] [--load NAME]... [--case TEXT]... [--json FILE]

Loads: `sleep` (2,000 times 20 ms of time.sleep in threads), `nginx` (a small file), services with
100 places (programs/services.py): `knee`, `degrading`, `429`, `hanging`, `resets`; and besides,
`urllib3` (threads that ask nginx: what keeps them waiting is the GIL) and `asleep` (10,000 times
asyncio.sleep, nothing set, beside gather).

Each run is a process of its own that works as somebody does who has just read the README, with a
service of its own. `auto` has no group, `auto, group` names one. The best fixed limit is the one
with the least median; the other tools are given that one. The peak is what the service counts, in
line or served; nginx does not count, there it is what was in flight.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from fanning import allow_descriptors
from interleaving import Measured, Runs, Target, columns, interleave, parse, parser, report
from peers import FOLDER
from rich.table import Table
from surroundings import spread

KNEE, SECONDS = 100, 0.1
MOST_TIME, MOST_PEAK = 1.25, 2.0


@dataclass(frozen=True)
class Load:
    """What is asked of whom."""

    name: str
    what: str
    items: int
    limits: tuple[int, ...]
    threads: bool = False


SERVED = (50, 75, 100, 150, 200, 400)
LOADS = [
    Load("sleep", "sleep", 2_000, (50, 100, 250, 500, 1_000), threads=True),
    Load("nginx", "get", 5_000, (10, 25, 50, 100, 200, 400)),
    *(Load(name, "get", 3_000, SERVED) for name in ("knee", "degrading", "429", "resets")),
    Load("hanging", "hanging", 3_000, SERVED),
    Load("urllib3", "urllib3", 5_000, (10, 25, 50, 100, 200), threads=True),
    Load("asleep", "asleep", 10_000, ()),
]


@dataclass(frozen=True)
class Case:
    """A way to do it."""

    name: str
    how: str
    limit: str

    @classmethod
    def fixed(cls, limit: int) -> "Case":
        """A fan-out with this limit."""
        return cls(f"limit={limit}", "fanout", str(limit))


AUTO, GROUPED = Case("auto", "fanout", "auto"), Case("auto, group", "grouped", "auto")
GATHER = Case("gather", "gather", "auto")


def main() -> None:
    """Measures and prints."""
    made = parser(__doc__, rounds=5)
    names = [load.name for load in LOADS]
    made.add_argument("--load", choices=names, action="append", help="instead of all")
    made.add_argument("--case", action="append", help="only those whose name contains this")
    made.add_argument("--no-peers", action="store_true", help="only fanout")
    options = parse(made)
    allow_descriptors(10_000)
    report(options, ["ungil", "uvloop", "aiometer", "urllib3"], _sections(options), _targets)


def _sections(options: argparse.Namespace) -> Iterator[tuple[Runs, Table]]:
    for load in LOADS:
        if load.name not in (options.load or [load.name]):
            continue
        items = load.items // 10 if options.quick else load.items
        run = partial(_measure, options.python, load, items)
        runs = interleave(load.name, _cases(load, options), run, options)
        best = _best(runs)
        if best is not None and not options.no_peers:
            # At the best limit, which is not known before.
            cases = [
                Case(f"{how} {best.limit}", how, best.limit)
                for how in (["pool"] if load.threads else ["gather", "aiometer"])
            ]
            others = interleave(load.name, cases, run, options)
            for mine, theirs in zip(runs.rounds, others.rounds, strict=True):
                mine.update(theirs)
        yield runs, _table(runs, best or GATHER)


def _cases(load: Load, options: argparse.Namespace) -> list[Case]:
    if not load.limits:
        return [AUTO, GATHER]
    cases = [AUTO, GROUPED, *map(Case.fixed, load.limits)]
    return [case for case in cases if any(text in f"{case.name} " for text in options.case or [""])]


def _measure(python: str, load: Load, items: int, case: Case) -> Measured:
    """One run, with a service of its own."""
    with _service(load) as service:
        words = [python, str(FOLDER / "services_client.py"), case.how, load.what, case.limit]
        words += [str(items), str(service.port)]
        ran = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True)
        measured = json.loads(ran.stdout)
        counted = service.ends()
    return {"peak": measured["most"], "turned_away": 0, **measured, **counted}


class Service:
    """One that runs, or none."""

    port = 0

    def ends(self) -> Measured:
        """What it has counted."""
        return {}


class Counting(Service):
    """programs/services.py."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        """Of one that was just started."""
        assert process.stdout is not None
        self._process = process
        self.port = json.loads(process.stdout.readline())["port"]

    def ends(self) -> Measured:
        """What it has counted."""
        said, _ = self._process.communicate(timeout=10)
        return json.loads(said)


@contextmanager
def _service(load: Load) -> Iterator[Service]:
    if load.what in ("sleep", "asleep"):
        yield Service()
    elif load.name in ("nginx", "urllib3"):
        with _nginx() as port:
            service = Service()
            service.port = port
            yield service
    else:
        words = [sys.executable, str(FOLDER / "services.py"), load.name, str(KNEE), str(SECONDS)]
        with subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as process:
            try:
                yield Counting(process)
            finally:
                process.kill()


CONFIGURATION = """
daemon off; master_process off; pid {folder}/pid; error_log {folder}/error;
events {{ worker_connections 8192; }}
http {{
  access_log off; client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi; uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  server {{ listen 127.0.0.1:{port} backlog=4096; root {folder}; }}
}}
"""
NGINX_PORT = 18_637


@contextmanager
def _nginx() -> Iterator[int]:
    """One worker that serves a file of 1 KB."""
    program = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")
    if program is None:
        sys.exit("nginx is not installed: leave it out with --load")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "item").write_bytes(b"x" * 1024)
        # Its worker may be somebody else than who has started it.
        folder.chmod(0o755)
        (folder / "conf").write_text(CONFIGURATION.format(folder=folder, port=NGINX_PORT))
        with subprocess.Popen([program, "-c", str(folder / "conf")]) as process:
            try:
                _wait_for(NGINX_PORT)
                yield NGINX_PORT
            finally:
                process.kill()


def _wait_for(port: int) -> None:
    for _ in range(500):
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/item").close()
        except OSError:
            time.sleep(0.01)
        else:
            return
    sys.exit("nginx does not answer")


def _seconds(measured: Measured) -> float:
    return measured["seconds"]


def _peak(measured: Measured) -> float:
    return measured["peak"]


def _best(runs: Runs) -> Case | None:
    """The best fixed limit."""
    limits = [int(name.removeprefix("limit=")) for name in runs.rounds[0] if "limit" in name]
    fixed = map(Case.fixed, limits)
    return min(fixed, key=lambda case: runs.median(case, _seconds), default=None)


def _table(runs: Runs, best: Case) -> Table:
    table = columns(
        f"{runs.setting}: beside {best.name}",
        *("", "seconds", "to the best", "peak", "turned away", "failed"),
    )
    for name in runs.rounds[0]:
        case = Case(name, "", "")
        table.add_row(
            name,
            f"{runs.median(case, _seconds):.3f}",
            spread(runs.ratios(case, best, _seconds)),
            f"{runs.median(case, _peak):.0f} ({max(runs.each(case, _peak)):.0f})",
            f"{runs.median(case, lambda it: it['turned_away']):.0f}",
            f"{runs.median(case, lambda it: it['failed']):.0f}",
        )
    return table


def _targets(taken: list[Runs]) -> Iterator[Target]:
    """Those of the issue."""
    for runs in taken:
        names = runs.rounds[0]
        if runs.setting == "asleep":
            ratios = runs.ratios(AUTO, GATHER, _seconds)
            median = statistics.median(ratios)
            yield Target("asleep: at most gather's wall time", median <= 1.0, spread(ratios))
            continue
        best = _best(runs)
        # Who sleeps asks no service that could have a name.
        for case in (AUTO,) if runs.setting == "sleep" else (AUTO, GROUPED):
            if best is None or case.name not in names:
                continue
            ratios = runs.ratios(case, best, _seconds)
            median = statistics.median(ratios)
            claim = f"{runs.setting}, {case.name}: time at most {MOST_TIME} of {best.name}"
            yield Target(claim, median <= MOST_TIME, spread(ratios))
            if runs.setting in ("sleep", "nginx", "urllib3"):
                continue
            peak = max(runs.each(case, _peak)) / KNEE
            claim = f"{runs.setting}, {case.name}: peak at most {MOST_PEAK:.0f} times the knee"
            yield Target(claim, peak <= MOST_PEAK, f"{peak:.2f}")


if __name__ == "__main__":
    main()
