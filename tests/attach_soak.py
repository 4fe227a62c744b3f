"""Attaches to programs that nobody here wrote, under load, again and again, and kills ungil in it.

    python tests/attach_soak.py [--times N] [--kills N] [--program NAME]... [--python NAME]...

Each program runs under each Python in an environment of its own (target/strangers), with a client
that checks every answer. N times ungil attaches to it, records for a second, and leaves; N times it
is killed at a random moment of that. All the time a thread of the program keeps the GIL for known
times (strangers/known.py). Exits with 1 if a program ended, an answer was wrong, something was left
in it, events were lost, or a known hold was not recorded as what it was.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from process_groups import children_of
from pythons import path_of
from suite import PROGRAMS
from tracing import compile_library

from ungil.recorder import new_recorder

STRANGERS = Path(__file__).with_name("strangers")
ENVIRONMENTS = Path(__file__).parent.parent / "target" / "strangers"
PACKAGES = ("gunicorn", "flask", "uvicorn", "fastapi", "celery[redis]", "ipykernel", "setuptools")
RECORDED_S = 1.0
# Holds are told of one by one from here on; the known ones compute for 10 ms.
LONG_MS = 5.0
# The clock is read beside what is recorded.
BESIDE_NS = 50_000
LEAVES_S = 10.0
PATIENCE_S = 180


class Wrong(Exception):
    """Something that may not be."""


@dataclass(frozen=True)
class Known:
    """A known hold, in ns. It began between `before` and `began`, and ended as `after` does."""

    tid: int
    before: int
    began: int
    ended: int
    after: int

    def is_at(self, start: int, end: int) -> bool:
        """Whether a recorded hold can be this one."""
        begins = self.before - BESIDE_NS <= start <= self.began + BESIDE_NS
        return begins and self.ended - BESIDE_NS <= end <= self.after + BESIDE_NS

    def off_percent(self, length_ns: int) -> float:
        """By how much a recorded length is wrong."""
        shorter = self.ended - self.began - length_ns
        longer = length_ns - (self.after - self.before)
        return 100 * max(0, shorter, longer) / (self.ended - self.began)


@dataclass
class Subject:
    """A program under load."""

    pid: int
    folder: Path
    end: Callable[[], dict[str, Any]]
    """Ends the load, and says how it went."""

    def left(self) -> list[str]:
        """What of ungil is mapped into it, but the library."""
        lines = Path(f"/proc/{self.pid}/maps").read_text().splitlines()
        return [line for line in lines if "ungil-session" in line or "ungil-policy" in line]

    def known(self) -> Iterator[Known]:
        """What it says of its known holds."""
        told = self.folder / str(self.pid)
        for line in told.read_text().splitlines() if told.exists() else ():
            numbers = [int(word) for word in line.split()]
            if len(numbers) == 5:
                yield Known(*numbers)


@dataclass
class Tally:
    """What was seen of one program."""

    stopped_ms: list[float] = field(default_factory=list[float])
    off_percent: list[float] = field(default_factory=list[float])
    refused: Counter[str] = field(default_factory=Counter[str])
    times: int = 0
    kills: int = 0
    handoffs: int = 0

    def __str__(self) -> str:
        stopped, off = sorted(self.stopped_ms), sorted(self.off_percent)
        return (
            f"{self.times} times recorded ({self.handoffs:,} handoffs), {self.kills} killed; "
            f"a thread stood still for {_share(stopped, 0.5):.1f} ms (median), "
            f"{_share(stopped, 0.99):.1f} (p99), {_share(stopped, 1):.1f} (most); "
            f"{len(off)} known holds, off by {_share(off, 0.5):.3f} % (median), "
            f"{_share(off, 1):.2f} % (most); refused: {dict(self.refused) or 'never'}"
        )


def main() -> None:
    """Go through programs and interpreters."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--times", type=int, default=500)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--program", action="append", choices=sorted(SUBJECTS))
    parser.add_argument("--python", action="append", metavar="NAME")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if shutil.which("redis-server") is None and "celery" in (options.program or SUBJECTS):
        sys.exit("celery needs redis-server: install it, or name the programs (--program)")
    failed = False
    for name in options.python or ("3.8", "3.11", "3.11-debian", "3.13"):
        python = environment(name)
        for program in options.program or SUBJECTS:
            begun, tally = time.monotonic(), Tally()
            try:
                answered = attacked(python, program, options, tally)
            except Wrong as error:
                failed = True
                answered = f"WRONG: {error}"
            took_s = time.monotonic() - begun
            print(f"{name} {program}: {tally}; {answered}; in {took_s:.0f} s", flush=True)
    sys.exit(failed)


def environment(name: str) -> Path:
    """A Python in which the strangers are installed."""
    folder = ENVIRONMENTS / name
    python = folder / "bin" / "python"
    if not (folder / "complete").exists():
        subprocess.run([path_of(name), "-m", "venv", "--clear", folder], check=True)
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, *PACKAGES], check=True)
        (folder / "complete").touch()
    return python


def attacked(python: Path, program: str, options: argparse.Namespace, tally: Tally) -> str:
    """Attach to a program, and kill ungil; what its client says."""
    chance = random.Random(options.seed)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ungil-strangers-")))
        os.environ["TRUTH_LIBRARY"] = str(compile_library(folder))
        subject = stack.enter_context(SUBJECTS[program](python, folder))
        stack.callback(tell_errors, folder)
        kills = sorted(chance.sample(range(options.times), min(options.kills, options.times)))
        for number in range(options.times):
            if kills and kills[0] == number:
                del kills[0]
                kill_in_it(subject, chance)
                tally.kills += 1
            record(subject, tally)
        told = subject.end()
    if told.get("wrong") != 0:
        raise Wrong(f"answers: {told}")
    return f"{told['answers']:,} answers, all right"


def tell_errors(folder: Path) -> None:
    """Print the last words of a program that went wrong."""
    if sys.exc_info()[0] is not None:
        print((folder / "said").read_text()[-2000:])


def record(subject: Subject, tally: Tally) -> None:
    """Attach, record, leave, and look at what was recorded."""
    recorder = new_recorder(None, blame_after_ms=LONG_MS)
    try:
        stopped_s = recorder.attach(subject.pid)
    except RuntimeError as error:
        tally.refused[str(error)] += 1
        return
    except ProcessLookupError as error:
        raise Wrong("the program has ended") from error
    begun_ns = time.monotonic_ns()
    time.sleep(RECORDED_S)
    ended_ns = time.monotonic_ns()
    report = json.loads(recorder.stop())
    tally.times += 1
    tally.stopped_ms.append((stopped_s or 0.0) * 1e3)
    if report["lost_events"]:
        raise Wrong(f"{report['lost_events']} events are lost")
    # A process that could not be asked to leave does so when it uses its GIL again.
    end_s = time.monotonic() + LEAVES_S
    while left := subject.left():
        if time.monotonic() > end_s:
            raise Wrong(f"left in it: {left}")
        time.sleep(0.01)
    gils = [gil for process in report["processes"] for gil in process["gils"]]
    tally.handoffs += sum(gil["handoffs"] for gil in gils)
    holds = [hold for gil in gils for hold in gil["long_holds"]]
    known = [it for it in subject.known() if begun_ns < it.before and it.after < ended_ns]
    tally.off_percent += off_percents(known, holds)


def off_percents(known: list[Known], holds: list[dict[str, Any]]) -> list[float]:
    """By how much the recorded length of each known hold is wrong, in percent."""
    if not known:
        return []
    mine = [
        (round(it["start_s"] * 1e9), round(it["start_s"] * 1e9 + it["duration_ms"] * 1e6))
        for it in holds
        if it["tid"] == known[0].tid
    ]

    def found(zero_ns: int) -> list[tuple[Known, int]]:
        return [
            (it, end - start)
            for it in known
            for start, end in mine
            if it.is_at(zero_ns + start, zero_ns + end)
        ]

    # The report counts from when the program joined, whenever that was.
    zeros = [it.began - start for it in known for start, _ in mine]
    zeros += [it.ended - end for it in known for _, end in mine]
    nothing: list[tuple[Known, int]] = []
    best = max(map(found, zeros), key=len, default=nothing)
    if len(best) != len(known):
        raise Wrong(f"of {known} only {best} is among {mine}")
    return [it.off_percent(length_ns) for it, length_ns in best]


def kill_in_it(subject: Subject, chance: random.Random) -> None:
    """Have ungil attach to it, and kill it at a random moment of that."""
    with subprocess.Popen(
        [sys.executable, PROGRAMS / "attaching.py", str(subject.pid)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as killed:
        assert killed.stdout is not None
        killed.stdout.read(1)
        # Attaching takes some milliseconds to some tens of them.
        time.sleep(chance.random() ** 2 * 0.06)
        killed.send_signal(signal.SIGKILL)
    if not Path(f"/proc/{subject.pid}").exists():
        raise Wrong("the program ended when ungil was killed")


@contextmanager
def started(*words: str | Path, folder: Path, **variables: str) -> Generator[subprocess.Popen[str]]:
    """A process in its own session, and all that it starts."""
    with (folder / "said").open("a") as said:
        process = subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=said,
            text=True,
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(STRANGERS), **variables},
            start_new_session=True,
        )
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()


@contextmanager
def load(*words: str | Path, folder: Path, **variables: str) -> Generator[Callable[[], Any]]:
    """A client that says "ready", and how it went when its input ends."""
    with started(*words, folder=folder, **variables) as client:
        expect_ready(client, folder)
        yield lambda: told_by(client, folder)


def expect_ready(process: subprocess.Popen[str], folder: Path) -> None:
    """Wait until it says so."""
    assert process.stdout is not None
    if process.stdout.readline() != "ready\n":
        raise Wrong(f"it does not begin: {(folder / 'said').read_text()[-2000:]}")


def told_by(process: subprocess.Popen[str], folder: Path) -> dict[str, Any]:
    """What a process says when its input ends."""
    said, _ = process.communicate(timeout=PATIENCE_S)
    try:
        return json.loads(said)
    except json.JSONDecodeError as error:
        raise Wrong(f"no word from it: {(folder / 'said').read_text()[-2000:]}") from error


@contextmanager
def server(python: Path, folder: Path, *words: str, is_child: bool = False) -> Generator[Subject]:
    """A web server; PORT stands for the port in `words`. A child of it answers, or itself."""
    port = free_port()
    command = [python, "-m", *(word.replace("PORT", str(port)) for word in words)]
    with (
        started(*command, folder=folder, KNOWN_HOLDS_IN=str(folder)) as process,
        load(python, STRANGERS / "load_http.py", str(port), folder=folder) as end,
    ):
        (pid,) = children_of(process.pid).values() if is_child else (process.pid,)
        yield Subject(pid, folder, end)


def gunicorn(python: Path, folder: Path) -> Any:
    """Gunicorn with threads, and Flask."""
    words = ("--worker-class", "gthread", "--threads", "8", "--bind", "127.0.0.1:PORT")
    return server(python, folder, "gunicorn", *words, "flask_app:app", is_child=True)


def uvicorn(python: Path, folder: Path) -> Any:
    """Uvicorn, and FastAPI."""
    words = ("--port", "PORT", "--log-level", "warning", "--no-access-log")
    return server(python, folder, "uvicorn", *words, "fastapi_app:app")


@contextmanager
def celery(python: Path, folder: Path) -> Generator[Subject]:
    """A celery worker with threads, and Redis."""
    port = free_port()
    broker = ("redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "")
    variables = {"REDIS_URL": f"redis://127.0.0.1:{port}/0"}
    words = (python, "-m", "celery", "-A", "celery_app", "worker", "-P", "threads", "-c", "4")
    with (
        started(*broker, folder=folder),
        started(*words, folder=folder, KNOWN_HOLDS_IN=str(folder), **variables) as worker,
        load(python, STRANGERS / "load_celery.py", folder=folder, **variables) as end,
    ):
        yield Subject(worker.pid, folder, end)


@contextmanager
def kernel(python: Path, folder: Path) -> Generator[Subject]:
    """A kernel of notebooks."""
    connection = folder / "connection.json"
    words = (python, "-m", "ipykernel_launcher", "-f", connection)
    with started(*words, folder=folder, KNOWN_HOLDS_IN=str(folder)) as process:
        end_s = time.monotonic() + PATIENCE_S
        while not connection.exists() or not connection.read_text().endswith("}"):
            if process.poll() is not None or time.monotonic() > end_s:
                raise Wrong(f"no kernel: {(folder / 'said').read_text()[-2000:]}")
            time.sleep(0.05)
        with load(python, STRANGERS / "load_kernel.py", connection, folder=folder) as end:
            yield Subject(process.pid, folder, end)


@contextmanager
def pool(python: Path, folder: Path) -> Generator[Subject]:
    """A pool that forks all the time."""
    words = (python, STRANGERS / "pool.py")
    with started(*words, folder=folder, KNOWN_HOLDS_IN=str(folder)) as process:
        expect_ready(process, folder)
        yield Subject(process.pid, folder, lambda: told_by(process, folder))


def attached(kind: str) -> Callable[[Path, Path], Any]:
    """The program of tests/test_attach.py, of a kind; it checks itself."""

    @contextmanager
    def start(python: Path, folder: Path) -> Generator[Subject]:
        words = (python, STRANGERS / "known.py", PROGRAMS / "attached.py", kind)
        with started(*words, folder=folder, KNOWN_HOLDS_IN=str(folder)) as process:
            expect_ready(process, folder)

            def end() -> dict[str, Any]:
                said, _ = process.communicate(timeout=PATIENCE_S)
                words = said.splitlines()
                is_well = words[:1] == ["well"] and process.returncode == 0
                rounds = int(words[-1]) if is_well else 0
                return {"answers": rounds, "wrong": int(not is_well), "said": said}

            yield Subject(process.pid, folder, end)

    return start


def free_port() -> int:
    """A port that nobody uses."""
    with socket.socket() as it:
        it.bind(("127.0.0.1", 0))
        return it.getsockname()[1]


def _share(numbers: list[float], share: float) -> float:
    """The number below which that share of sorted numbers is."""
    return numbers[min(len(numbers) - 1, int(share * len(numbers)))] if numbers else 0.0


SUBJECTS: dict[str, Callable[[Path, Path], Any]] = {
    "gunicorn": gunicorn,
    "uvicorn": uvicorn,
    "celery": celery,
    "ipykernel": kernel,
    "pool": pool,
    "joining": attached("joining"),
    "allocating": attached("allocating"),
}

if __name__ == "__main__":
    main()
