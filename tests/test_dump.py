"""`ungil dump`: who holds the GIL of a running process, who waits, since when, and where."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from typing import Any

import pytest
from looking import Start, is_left, running
from process_groups import program_of
from pythons import Python, pythons

Run = Callable[..., subprocess.CompletedProcess[str]]

LOOKED_INTO = pythons("3.8", "3.11", "3.11-debian", "3.13", since=(3, 8))


def dumped(ungil: Run, pid: int, *options: str) -> list[dict[str, Any]]:
    """What is dumped of a process and others."""
    outcome = ungil("dump", str(pid), "--json", *options)
    assert (outcome.returncode, outcome.stderr) == (0, "")
    return json.loads(outcome.stdout)["processes"]


def one(ungil: Run, pid: int) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """The dump of one process, and its threads by name."""
    (process,) = dumped(ungil, pid)
    return process, {it["name"]: it for it in process["threads"]}


@pytest.mark.parametrize("python", LOOKED_INTO, ids=str)
def test_a_hold_that_began_long_before_is_found_with_those_that_wait(
    ungil: Run, start: Start, python: Python
) -> None:
    pid = running(start, "hog", python.path)
    # It takes the GIL at once after it was started; until then nobody keeps it. A look that saw it
    # do so knows when that was.
    process, threads = one(ungil, pid)
    (gil,) = process["gils"]
    while threads["hog"]["state"] != "holds" or not gil["at_least"]:
        process, threads = one(ungil, pid)
        (gil,) = process["gils"]
    hog, victim = threads["hog"], threads["victim"]
    assert gil["holder"] == hog["tid"]
    assert victim["tid"] in gil["waiters"]
    assert (victim["state"], victim["waits_for"]) == ("waits", hog["tid"])
    assert 0 < victim["for_s"] <= gil["held_s"] <= process["seen_s"]
    assert victim["at_least"]
    assert [it["function"].rpartition(".")[2] for it in hog["stack"]][:2] == ["hog", "run"]
    assert threads["sleeper"]["state"] == "off"
    assert threads["sleeper"]["stack"][0]["function"] == "sleep"
    assert process["steady"]
    assert is_left(pid)


def test_a_dump_for_people_says_the_same_with_the_holder_first(ungil: Run, start: Start) -> None:
    pid = running(start, "hog")
    outcome = ungil("dump", str(pid))
    while "hog holds the GIL, for at least " not in outcome.stdout:
        outcome = ungil("dump", str(pid))
    blocks = outcome.stdout.split("\n\n")
    assert blocks[0].startswith(f"process {pid}: ")
    assert blocks[1].startswith("hog holds the GIL, for at least ")
    assert blocks[1].endswith(" for it")
    assert blocks[2].startswith("hog (thread ")
    assert "    hog (" in blocks[2]
    assert any(it.startswith("victim (thread ") and " waits for hog, for " in it for it in blocks)
    assert any(it.startswith("sleeper ") and " does not want the GIL" in it for it in blocks)
    assert "\x1b" not in outcome.stdout


def test_of_threads_that_take_turns_one_holds_and_the_other_waits_for_it(
    ungil: Run, start: Start
) -> None:
    pid = running(start, "computing")
    process, threads = one(ungil, pid)
    # Neither has to be at it at this very moment on a busy machine, which hands over in between.
    while {threads["first"]["state"], threads["second"]["state"]} != {"holds", "waits"}:
        process, threads = one(ungil, pid)
    (gil,) = process["gils"]
    both = [threads["first"], threads["second"]]
    (holder,) = [it for it in both if it["state"] == "holds"]
    (waiter,) = [it for it in both if it["state"] == "waits"]
    assert (gil["holder"], gil["waiters"]) == (holder["tid"], [waiter["tid"]])
    assert holder["stack"][0]["function"] == "compute"
    assert process["switch_interval_s"] == pytest.approx(0.005, rel=0.5)
    assert is_left(pid)


def test_where_nobody_uses_the_gil_nobody_holds_it(ungil: Run, start: Start) -> None:
    process, threads = one(ungil, running(start, "idle"))
    assert process["gils"] == [
        {"gil": 0, "holder": None, "held_s": None, "at_least": False, "waiters": []}
    ]
    assert {it["state"] for it in threads.values()} == {"off"}
    assert process["steady"]


def test_the_only_thread_is_not_borrowed_and_for_how_long_it_holds_is_not_told(
    ungil: Run, start: Start
) -> None:
    pid = running(start, "single")
    process, threads = one(ungil, pid)
    while threads["MainThread"]["state"] != "holds":
        process, threads = one(ungil, pid)
    (gil,) = process["gils"]
    assert (gil["holder"], gil["held_s"]) == (pid, None)
    assert process["notes"] == ["it has one thread, so no other thread can wait for the GIL"]
    assert threads["MainThread"]["stack"][0]["function"] == "compute"


def test_a_process_that_is_recorded_goes_on_being_recorded(ungil: Run, start: Start) -> None:
    pid = program_of(_traced(start, "taking"))
    process, threads = one(ungil, pid)
    assert process["notes"] == ["another ungil records it; these numbers come from that recording"]
    assert not is_left(pid)
    # It has been recorded from the start, so that nothing began before.
    assert not any(it["at_least"] for it in threads.values())
    while threads["victim"]["state"] != "waits":
        _, threads = one(ungil, pid)
    assert threads["victim"]["waits_for"] == threads["taker"]["tid"]


def _traced(start: Start, kind: str) -> int:
    return running(start, kind, "python", "trace", "--quiet")


def test_a_process_that_is_scheduled_keeps_its_policy(ungil: Run, start: Start) -> None:
    pid = running(start, "computing", "python", "run", "--policy", "fair")
    process, _ = one(ungil, pid)
    assert process["policy"] == "fair"
    assert ungil("policy", str(pid)).stdout.startswith(f"process {pid}: fair")
    assert is_left(pid)


def test_those_that_stand_in_a_line_under_a_policy_are_found(ungil: Run, start: Start) -> None:
    pid = running(start, "crowd", "python", "run", "--policy", "batch")
    process, _ = one(ungil, pid)
    # They look up once a second, later on a busy machine, and call nothing before.
    assert process["seen_s"] > 1
    while len(process["gils"][0]["waiters"]) < 5:
        process, _ = one(ungil, pid)


def test_children_are_dumped_if_they_are_to(ungil: Run, start: Start) -> None:
    pid = running(start, "forked")
    assert [it["pid"] for it in dumped(ungil, pid)] == [pid]
    both = dumped(ungil, pid, "--children")
    assert [it["pid"] for it in both][:1] == [pid]
    assert len(both) == 2
    for process in both:
        assert {"first", "second"} <= {it["name"] for it in process["threads"]}
        assert is_left(process["pid"])


@pytest.mark.parametrize(
    ("pid", "sentence"),
    [
        ("0", "PID: '0' is not a process id"),
        ("server", "PID: 'server' is not a process id"),
        ("2147483647", "there is no process 2147483647"),
    ],
)
def test_what_is_no_process_is_refused(ungil: Run, pid: str, sentence: str) -> None:
    outcome = ungil("dump", pid)
    assert (outcome.returncode, outcome.stdout) == (2, "")
    assert outcome.stderr == f"ungil: {sentence}\n"


def test_what_is_no_python_is_refused(ungil: Run, start: Start) -> None:
    process = start(args=["sleep", "600"])
    outcome = ungil("dump", str(process.pid))
    assert (outcome.returncode, outcome.stdout) == (2, "")
    assert outcome.stderr.startswith(f"ungil: process {process.pid} ")
    assert outcome.stderr.count("\n") == 1
    os.kill(process.pid, 0)
