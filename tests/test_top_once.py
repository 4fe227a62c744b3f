"""`ungil top --once`, also with `--json`: figures of a running process, whose holds are known."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from looking import Start, is_left, running
from process_groups import program_of
from pythons import Python, pythons
from terminals import Terminal

from ungil.cli.top.columns import COLUMNS

Run = Callable[..., subprocess.CompletedProcess[str]]

UNGIL = [sys.executable, "-m", "ungil"]
LOOKED_INTO = pythons("3.8", "3.11-debian", "3.13", since=(3, 8))


def shown(ungil: Run, pid: int, *options: str) -> list[dict[str, Any]]:
    """What is shown of a process and others."""
    outcome = ungil("top", str(pid), "--once", "--json", *options)
    assert (outcome.returncode, outcome.stderr) == (0, "")
    return json.loads(outcome.stdout)["processes"]


def by_name(process: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Its threads."""
    return {it["name"]: it for it in process["threads"]}


@pytest.mark.parametrize("python", LOOKED_INTO, ids=str)
def test_who_keeps_the_gil_is_blamed_for_the_wait_of_who_wants_it(
    ungil: Run, start: Start, python: Python
) -> None:
    pid = running(start, "taking", python.path)
    (process,) = shown(ungil, pid, "--interval", "2")
    threads = by_name(process)
    taker, victim = threads["taker"], threads["victim"]
    # 200 ms of hold, then a pause that is 50 ms long, or longer on a busy machine. The victim may
    # not run there while it has the GIL, either.
    assert taker["held"] > 2 * victim["held"]
    assert victim["waited"] > 2 * taker["waited"]
    assert victim["worst_wait_s"] > 0.1
    assert threads["sleeper"]["held"] == threads["sleeper"]["waited"] == 0
    blamed = process["blame"][0]
    assert (blamed["culprit"], blamed["culprit_name"]) == (taker["tid"], "taker")
    assert blamed["victims"][0]["name"] == "victim"
    # For the rest nobody held: the taker had let go, and no processor had run the victim yet.
    assert 0.3 * victim["waited"] < blamed["waited"] < 1.001 * victim["waited"]
    # Each hold that somebody waited for was ended by his asking, or by the sleep that followed.
    assert victim["free_releases_per_s"] > victim["forced_releases_per_s"]
    assert is_left(pid)


def test_the_parts_of_a_process_are_those_of_its_threads(ungil: Run, start: Start) -> None:
    (process,) = shown(ungil, running(start, "computing"))
    threads = by_name(process)
    both = [threads["first"], threads["second"]]
    assert process["held"] == pytest.approx(sum(it["held"] for it in both), abs=0.01)
    assert process["waited"] == pytest.approx(sum(it["waited"] for it in both), abs=0.01)
    assert process["waited"] == pytest.approx(
        sum(it["waited"] for it in process["blame"]), abs=0.01
    )
    # Neither ever lets go of its own accord.
    assert all(it["forced_releases_per_s"] > it["free_releases_per_s"] for it in both)
    assert process["handoffs_per_s"] > 0
    assert process["lost_events"] == 0
    assert all(0 < it["cpu"] <= 1.1 for it in both)
    assert process["interval_s"] >= 1


def test_a_hold_that_began_before_is_all_of_the_time_and_to_blame(ungil: Run, start: Start) -> None:
    pid = running(start, "hog")
    (process,) = shown(ungil, pid)
    while not process["holder"] or not process["holder"]["at_least"]:
        (process,) = shown(ungil, pid)
    threads = by_name(process)
    assert threads["hog"]["held"] == process["held"] == 1
    assert threads["victim"]["waited"] > 0.9
    assert {it["culprit_name"] for it in process["blame"]} == {"hog"}
    assert process["holder"]["stack"][0]["function"] == "hog"


def test_children_are_shown_if_they_are_to(ungil: Run, start: Start) -> None:
    pid = running(start, "forked")
    both = shown(ungil, pid, "--children")
    assert both[0]["pid"] == pid
    assert len(both) == 2
    for process in both:
        assert by_name(process)["first"]["held"] > 0
        assert is_left(process["pid"])


def test_a_policy_that_a_process_has_is_shown_and_stays(ungil: Run, start: Start) -> None:
    pid = running(start, "computing", "python", "run", "--policy", "batch")
    (process,) = shown(ungil, pid)
    assert (process["policy"], process["quantum_s"]) == ("batch", 0.1)
    assert ungil("policy", str(pid)).stdout.startswith(f"process {pid}: batch")


@pytest.mark.parametrize(
    ("who", "words"),
    [
        ("ungil top", ("top", "--once", "--json")),
        ("ungil trace --pid", ("trace", "--for", "1s", "--pid")),
        ("ungil trace --pid", ("trace", "--last", "5s", "--pid")),
    ],
)
def test_a_recording_of_others_is_not_ended(
    ungil: Run, start: Start, who: str, words: tuple[str, ...]
) -> None:
    pid = program_of(running(start, "computing", "python", "trace", "--quiet"))
    outcome = ungil(*words, str(pid))
    assert (outcome.returncode, outcome.stdout) == (2, "")
    assert outcome.stderr == (
        f"ungil: another ungil is recording process {pid}, and {who} would end that "
        f"recording; wait until it ends, or look once with: ungil dump {pid}\n"
    )
    assert not is_left(pid)


def test_a_process_whose_recorder_was_killed_is_nobodys(ungil: Run, start: Start) -> None:
    recorder = running(start, "computing", "python", "trace", "--quiet")
    pid = program_of(recorder)
    os.kill(recorder, signal.SIGKILL)
    os.waitid(os.P_PID, recorder, os.WEXITED | os.WNOWAIT)
    outcome = ungil("top", str(pid), "--once", "--json")
    assert (outcome.returncode, outcome.stderr) == (0, "")
    os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["x"], "PID: 'x' is not a process id"),
        (["1", "--interval", "0"], "--interval: '0' is not a number of seconds from 0.1 to 60"),
        (["1", "--json"], "--json needs --once: ungil top PID --once --json"),
        (["--once", "--json"], "--once needs the process id: ungil top PID --once"),
        (["2147483647", "--once", "--json"], "there is no process 2147483647"),
        (
            ["1"],
            "ungil top needs a terminal; ungil top PID --once does without one",
        ),
    ],
)
def test_a_mistake_gets_a_sentence(ungil: Run, words: list[str], sentence: str) -> None:
    outcome = ungil("top", *words)
    assert (outcome.returncode, outcome.stdout) == (2, "")
    assert outcome.stderr == f"ungil: {sentence}\n"


def test_as_text_the_same_figures_are_a_table(ungil: Run, start: Start) -> None:
    pid = running(start, "taking")
    outcome = ungil("top", str(pid), "--once", "--interval", "2")
    assert (outcome.returncode, outcome.stderr) == (0, "")
    lines = outcome.stdout.splitlines()
    assert lines[0].startswith(f"process {pid}: ")
    assert lines[1].startswith("watched for 2.")
    (head,) = [number for number, line in enumerate(lines) if line.startswith("thread ")]
    assert lines[head].split() == [it.title for it in COLUMNS]
    rows = {line[2:].split()[0]: line for line in lines[head + 1 :] if line[:1] in "●◌ " and line}
    assert {"taker", "victim", "sleeper"} <= set(rows)
    # Right-aligned numbers end where their titles do.
    end = lines[head].index("wait") + len("wait")
    assert {rows[name][end - 1] for name in ("taker", "victim")} == {"%"}
    assert any("waited for" in line for line in lines)
    assert is_left(pid)


def test_of_a_process_and_its_children_each_has_a_table(ungil: Run, start: Start) -> None:
    pid = running(start, "forked")
    outcome = ungil("top", str(pid), "--once", "--children")
    assert (outcome.returncode, outcome.stderr) == (0, "")
    lines = outcome.stdout.splitlines()
    for begin in ("process ", "thread "):
        assert sum(line.startswith(begin) for line in lines) == 2


@pytest.mark.parametrize("form", [[], ["--json"]], ids=["text", "json"])
def test_figures_without_a_screen_need_no_textual(
    ungil: Run, start: Start, tmp_path: Path, environment: dict[str, str], form: list[str]
) -> None:
    (tmp_path / "textual.py").write_text("raise ModuleNotFoundError(name='textual')")
    path = os.pathsep.join(filter(None, [str(tmp_path), environment.get("PYTHONPATH")]))
    pid = running(start, "computing")
    outcome = ungil("top", str(pid), "--once", *form, env=environment | {"PYTHONPATH": path})
    assert (outcome.returncode, outcome.stderr) == (0, "")


def test_on_a_narrow_terminal_the_numbers_are_there_and_lines_of_code_are_cut(start: Start) -> None:
    pid = running(start, "taking")
    terminal = Terminal([*UNGIL, "top", str(pid), "--once"], start, columns=80)
    assert terminal.end() == 0
    lines = terminal.lines()
    (head,) = [number for number, line in enumerate(lines) if line.startswith("thread ")]
    assert lines[head].split() == [it.title for it in COLUMNS]
    rows = [line for line in lines[head + 1 :] if line[:1] in "●◌ " and line]
    assert all(row.count("%") == 3 for row in rows if "taker" in row or "victim" in row)
    assert max(map(len, lines)) <= 80
