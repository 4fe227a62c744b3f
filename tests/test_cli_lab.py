"""`ungil lab` as a shell runs it: a small experiment, mistakes, kills and full disks."""

from __future__ import annotations

import json
import re
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from terminals import Terminal

from ungil.lab.experiments import NAMES

Ungil = Callable[..., subprocess.CompletedProcess[str]]
Start = Callable[..., "subprocess.Popen[str]"]
THIS = ("--python", sys.executable, "--quick")


@pytest.fixture(autouse=True)
def state(tmp_path: Path, environment: dict[str, str]) -> Path:
    """Where results go that nobody names: not to where those of whoever runs the tests are."""
    environment["XDG_STATE_HOME"] = str(tmp_path / "state")
    return tmp_path / "state" / "ungil"


def cells(path: Path) -> list[dict[str, Any]]:
    return json.loads(path.read_text())["cells"]


def test_the_list_names_every_experiment_and_its_source(ungil: Ungil) -> None:
    outcome = ungil("lab", "list")
    assert (outcome.returncode, outcome.stderr) == (0, "")
    assert [line.split()[0] for line in outcome.stdout.splitlines() if line[0] != " "] == list(
        NAMES
    )
    assert "Tim Peters" in outcome.stdout


def test_an_experiment_is_run_shown_and_kept(ungil: Ungil, tmp_path: Path) -> None:
    outcome = ungil("lab", "countdown", *THIS, "--json", "lab.json")
    assert outcome.returncode == 0, outcome.stderr
    whole = json.loads((tmp_path / "lab.json").read_text())
    assert (whole["schema"], whole["quick"]) == (1, True)
    assert [one["path"] for one in whole["interpreters"]] == [sys.executable]
    assert {cell["status"] for cell in whole["cells"]} <= {"measured", "missing"}
    name = whole["interpreters"][0]["name"]
    lines = [line.strip() for line in outcome.stdout.splitlines()]
    assert any(line.startswith("Beazley 2009, n = 100,000,000") for line in lines)
    assert any(line.startswith(f"{name}  ") for line in lines)
    assert f"countdown on {name}, " in outcome.stderr


def test_what_is_there_is_shown_again_without_measuring(ungil: Ungil, state: Path) -> None:
    first = ungil("lab", "tick", *THIS)
    before = cells(state / "lab-quick.json")
    again = ungil("lab", "tick", *THIS)
    assert again.returncode == first.returncode == 0
    assert cells(state / "lab-quick.json") == before
    assert again.stdout == first.stdout
    assert "3 of 3 cells were measured before" in again.stderr
    assert "--fresh measures them again" in again.stderr
    fresh = ungil("lab", "tick", *THIS, "--fresh")
    assert fresh.returncode == 0
    # No time is measured twice to the nanosecond.
    assert cells(state / "lab-quick.json") != before


def test_a_killed_run_goes_on_where_it_was(ungil: Ungil, start: Start, tmp_path: Path) -> None:
    path = tmp_path / "lab.json"
    words = ("lab", "tick", "countdown", *THIS, "--json", str(path))
    process = start(*words)
    assert process.stderr is not None
    # The line for the second experiment comes when the first is saved.
    for line in process.stderr:
        if line.startswith("tick on"):
            break
    process.send_signal(signal.SIGKILL)
    process.wait()
    saved = cells(path)
    assert saved
    outcome = ungil(*words)
    assert outcome.returncode == 0, outcome.stderr
    assert f"{len(saved)} of {len(cells(path))} cells were measured before" in outcome.stderr
    assert cells(path)[: len(saved)] == saved


def test_ctrl_c_ends_a_run_and_keeps_what_it_measured(start: Start, tmp_path: Path) -> None:
    path = tmp_path / "lab.json"
    process = start("lab", "countdown", "tick", *THIS, "--json", str(path))
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("tick on"):
            break
    process.send_signal(signal.SIGINT)
    assert process.wait() == 130
    assert {cell["experiment"] for cell in cells(path)} >= {"countdown"}


def test_on_a_terminal_a_bar_says_what_runs_and_for_how_long(
    start: Start, environment: dict[str, str]
) -> None:
    command = [sys.executable, "-m", "ungil", "lab", "tick", *THIS]
    terminal = Terminal(command, start, columns=120, env=environment | {"TERM": "xterm"})
    assert terminal.end() == 0
    seen = re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", terminal.seen)
    assert re.search(r"0/3 tick on [^:]+: stock, \d+ s left", seen)
    assert re.search(r"2/3 tick on [^:]+: ungil trace, \d+ s left", seen)


MISTAKES = [
    (("luck",), "there is no experiment 'luck'; there are fairness"),
    (("list", "tick"), "there is no experiment 'list'"),
    (("tick", "--python", "no-such-python"), "--python: there is no interpreter 'no-such-python'"),
    (("tick", "--python", "/bin/true"), "'/bin/true' does not start as a Python"),
    (("tick", "--html", "/no/such/folder/lab.html"), "cannot write '/no/such/folder/lab.html'"),
    (("tick", "--html", "x", "--json", "x"), "cannot both be written to 'x'"),
    (("tick", "--json", "/proc/lab.json", *THIS), "cannot save results to '/proc/lab.json'"),
]


@pytest.mark.parametrize(("words", "sentence"), MISTAKES)
def test_a_mistake_is_a_sentence(ungil: Ungil, words: tuple[str, ...], sentence: str) -> None:
    outcome = ungil("lab", *words)
    assert (outcome.returncode, outcome.stdout) == (2, "")
    assert outcome.stderr.count("\n") == 1
    assert sentence in outcome.stderr


def test_a_full_disk_ends_a_run_with_a_sentence_and_keeps_what_was_there(
    ungil: Ungil, tmp_path: Path
) -> None:
    path = tmp_path / "lab.json"
    assert ungil("lab", "tick", *THIS, "--json", str(path)).returncode == 0
    before = path.read_bytes()

    def fill() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 100, len(before) + 100))

    outcome = ungil("lab", "tick", "countdown", *THIS, "--json", str(path), preexec_fn=fill)
    assert outcome.returncode == 2
    assert outcome.stdout == ""
    last = outcome.stderr.splitlines()[-1]
    assert last.startswith(f"ungil: cannot save results to '{path}': ")
    assert last.endswith("; what was saved before is kept")
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_page_is_made_of_results_without_measuring_again(ungil: Ungil, tmp_path: Path) -> None:
    assert ungil("lab", "tick", *THIS).returncode == 0
    outcome = ungil("lab", "tick", *THIS, "--html", "lab.html")
    assert outcome.returncode == 0, outcome.stderr
    assert "3 of 3 cells were measured before" in outcome.stderr
    page = (tmp_path / "lab.html").read_text(encoding="utf-8")
    assert page.startswith("<!DOCTYPE html>")
    assert "ungil lab tick --quick" in page


def test_results_of_a_quick_run_are_not_mixed_with_those_of_a_full_one(
    ungil: Ungil, tmp_path: Path
) -> None:
    assert ungil("lab", "tick", *THIS, "--json", "lab.json").returncode == 0
    outcome = ungil("lab", "tick", "--python", sys.executable, "--json", "lab.json")
    assert outcome.returncode == 2
    assert "'lab.json' holds results of a quick run; name another file" in outcome.stderr


def test_a_missing_tool_is_no_failure_and_says_what_to_install(
    ungil: Ungil, environment: dict[str, str]
) -> None:
    environment["PATH"] = "/nowhere"
    outcome = ungil("lab", "countdown", *THIS, env=environment)
    assert outcome.returncode == 0, outcome.stderr
    assert "strace is not installed: apt install strace" in " ".join(outcome.stdout.split())
