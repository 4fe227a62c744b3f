"""Names are data: whatever a program calls its threads, files and functions, nothing obeys them.

A trace with hostile names in all places is shown in every way in which ungil shows a trace as text
or as a file for another tool. One of 10,000 threads and one of 500 processes are shown in those
ways that differ in what they do with so many. Pages have tests of their own
(`test_report_page_*.py`).
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import sqlite3
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from conftest import UNGIL
from suite import PATIENCE_S, RUST_FEATURES
from terminals import Terminal

from ungil._native import read_trace

Run = Callable[..., subprocess.CompletedProcess[str]]
Start = Callable[..., subprocess.Popen[str]]

REPOSITORY = Path(__file__).parents[1]
SIZES = {"hostile": (17, 1), "threads": (10_000, 1), "processes": (2, 500)}
# Colours, and what a bar of progress needs: to hide the cursor, and to draw its line again.
OURS = re.compile(r"\x1b\[(?:[0-9;]*m|\?25[lh]|2K|1A)")

COMMANDS: dict[str, list[str]] = {
    "report": ["report", "{}"],
    "advice": ["report", "{}", "--advise"],
    "advise": ["advise", "{}"],
    "diff": ["diff", "{}", "{}"],
    "simulate": ["simulate", "{}", "--policy", "interactive", "--runs", "1"],
    "policies": ["simulate", "{}", "--runs", "1"],
    "sql": ["report", "{}", "--sql", "SELECT * FROM named_waits JOIN frames LIMIT 200"],
}


def shown(names: Iterable[str], of_many: Iterable[str]) -> pytest.MarkDecorator:
    """A test of the trace with hostile names for each of these, of large ones for fewer."""
    cases = [("hostile", name) for name in names]
    cases += [(size, name) for size in ("threads", "processes") for name in of_many]
    return pytest.mark.parametrize(("trace", "name"), cases, indirect=["trace"])


@pytest.fixture(scope="session")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for traces that all processes of one run of the tests share."""
    own = tmp_path_factory.getbasetemp()
    return own.parent if "PYTEST_XDIST_WORKER" in os.environ else own


@pytest.fixture
def trace(request: pytest.FixtureRequest, traces: Path) -> str:
    """A trace with hostile names, of so many threads and processes; whoever is first writes it."""
    path = traces / f"hostile-{request.param}.pftrace"
    with path.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            write(path, SIZES[request.param])
    return str(path)


def write(path: Path, size: tuple[int, int]) -> None:
    """Write a trace with so many threads in each of so many processes."""
    build = ["cargo", "run", "--quiet", *RUST_FEATURES, "--example", "hostile_trace"]
    unfinished = path.with_suffix(".tmp")
    made = subprocess.run(
        [*build, "--", str(unfinished), *map(str, size)],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0, made.stderr
    unfinished.rename(path)


def words_of(name: str, trace: str, *options: str) -> list[str]:
    return [*(word.format(trace) for word in COMMANDS[name]), *options]


@shown(COMMANDS, of_many=["report", "advise", "diff", "simulate"])
def test_no_character_of_a_name_controls_what_is_printed(ungil: Run, trace: str, name: str) -> None:
    outcome = ungil(*words_of(name, trace))
    assert outcome.returncode == 0, outcome.stderr
    for text in (outcome.stdout, outcome.stderr):
        assert text.replace("\n", "").isprintable()
    assert outcome.stdout


@shown(["report", "advise", "diff", "simulate", "sql"], of_many=["report"])
def test_json_is_valid_and_has_the_names_as_they_are(ungil: Run, trace: str, name: str) -> None:
    outcome = ungil(*words_of(name, trace, "--json"))
    assert outcome.returncode == 0, outcome.stderr
    # A terminal may show it, too.
    assert outcome.stdout.replace("\n", "").isprintable()
    texts = set(strings(json.loads(outcome.stdout)))
    if name in {"report", "simulate"}:
        assert any("<script>" in text for text in texts)


@pytest.mark.parametrize("trace", ["processes"], indirect=True)
@pytest.mark.parametrize(("simulate", "left_out"), [(True, 480), (False, 0)])
def test_gils_are_left_out_of_a_simulation_only(trace: str, simulate: bool, left_out: int) -> None:
    report = json.loads(read_trace(trace, 0.02, advise=True, simulate=simulate))
    assert report["advised"]["gils_left_out"] == left_out


def strings(value: Any) -> list[str]:
    """All texts in what JSON says."""
    match value:
        case str():
            return [value]
        case dict():
            return [text for it in value.values() for text in strings(it)]  # pyright: ignore
        case list():
            return [text for it in value for text in strings(it)]  # pyright: ignore
        case _:
            return []


@shown(["report", "advise", "diff", "policies"], of_many=[])
def test_a_terminal_gets_no_sequence_but_our_own(start: Start, trace: str, name: str) -> None:
    terminal = Terminal([*UNGIL, *words_of(name, trace)], start)
    assert terminal.end() == 0
    assert "\x1b[31mred" not in terminal.seen
    shown = OURS.sub("", terminal.seen).replace("\r", "").replace("\n", "")
    assert shown.isprintable(), [it for it in shown if not it.isprintable()]


@shown(["firefox", "speedscope", "collapsed", "sqlite"], of_many=["firefox", "sqlite"])
def test_every_export_is_whole(ungil: Run, trace: str, tmp_path: Path, name: str) -> None:
    outcome = ungil("export", trace, "--format", name, "-o", "out")
    assert outcome.returncode == 0, outcome.stderr
    assert outcome.stderr.replace("\n", "").isprintable()
    out = tmp_path / "out"
    match name:
        case "sqlite":
            with sqlite3.connect(out) as connection:
                assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
                (threads,) = connection.execute("SELECT count(*) FROM threads").fetchone()
            assert threads in {count * processes for count, processes in SIZES.values()}
        case "collapsed":
            lines = out.read_text(encoding="utf-8").split("\n")
            assert lines.pop() == ""
            assert all(re.fullmatch(r"[^;]*(;[^;]*)+ \d+", line) for line in lines)
        case _:
            assert "<script>" in " ".join(strings(json.loads(out.read_text(encoding="utf-8"))))


@pytest.mark.parametrize("trace", ["hostile"], indirect=True)
def test_a_command_that_is_advised_means_the_names_and_runs_nothing(
    ungil: Run, trace: str, tmp_path: Path
) -> None:
    advised = json.loads(ungil("advise", trace, "--json").stdout)
    actions = [it["action"] for it in advised["advice"] + advised["rejected"]]
    commands = [action for action in actions if action["shell"]]
    assert commands
    for action in commands[:3]:
        echo = ["sh", "-c", f"printf '%s\\0' {action['shell']}"]
        printed = subprocess.run(
            echo, cwd=tmp_path, capture_output=True, check=True, timeout=PATIENCE_S
        )
        words = printed.stdout.decode().split("\0")[:-1]
        assert words == action["command"]
    assert not (tmp_path / "owned").exists()
