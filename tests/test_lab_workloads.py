"""The workloads of the lab run on every Python, and what they say makes sense."""

from __future__ import annotations

import ast
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from blocked import wait_until_in_a_lock
from lab import chosen
from process_groups import wait_until_nobody_is_left_of
from pythons import Python, pythons
from suite import PROGRAMS

from ungil.lab import conditions
from ungil.lab.conditions import STOCK, Conditions
from ungil.lab.experiment import CellFailed, Missing
from ungil.lab.workload import FOLDER, run, running, words_of

ALL = pytest.mark.parametrize("python", pythons(), ids=str)
# Those that can be scheduled.
NEW = pytest.mark.parametrize("python", pythons("3.8", "3.11", "3.13", since=(3, 7)), ids=str)


# What these measure is packages.
PACKAGES = {
    "fanout_asyncio": {"fanout_work", "uvloop"},
    "fanout_nornir": {"fanout_work", "gevent", "nornir", "ungil"},
    "fanout_threads": {"fanout_work"},
    "fanout_ungil": {"fanout_asyncio", "fanout_work", "gevent", "ungil"},
    "matmul": {"ungil", "_interpreters", "_xxsubinterpreters"},
}


def test_a_workload_imports_nothing_but_the_standard_library_and_what_it_measures() -> None:
    for path in FOLDER.glob("*.py"):
        known = sys.stdlib_module_names | PACKAGES.get(path.stem, set())
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                names = [name.name for name in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            else:
                continue
            assert {name.partition(".")[0] for name in names} <= known, path.name


@ALL
@pytest.mark.parametrize("how", ["sequence", "threads"])
def test_countdown_says_what_it_took(python: Python, how: str) -> None:
    said = run(chosen(python.path), "countdown", 100_000, how)
    counted = {"voluntary_switches", "involuntary_switches"}
    assert set(said) == {"wall_s", "cpu_s", "system_s"} | counted
    assert said["wall_s"] > 0
    # One is a sum, and rounded once more.
    assert said["cpu_s"] >= said["system_s"] - 1e-9 >= -1e-9
    # What was there before is subtracted, and whole numbers are.
    assert all(type(said[name]) is int and said[name] >= 0 for name in counted)


@ALL
def test_fairness_has_a_row_for_each_thread_of_each_number(python: Python) -> None:
    said = run(chosen(python.path), "fairness", 0.05, 4)
    assert [len(rows) for rows in said["threads"]] == [1, 2, 3, 4]
    for rows in said["threads"]:
        assert [row["tid"] for row in rows] == list(range(len(rows)))
        for row in rows:
            assert 0 < row["mean_gap_ms"] <= row["max_gap_ms"]
            assert 0 <= row["at_turn"] < row["turns"]
            assert 0 <= row["silent_ms"] <= row["max_gap_ms"] + 1e-9


@ALL
def test_the_gaps_of_a_thread_add_up_to_the_time_in_peters_program_and_in_ours(
    python: Python,
) -> None:
    span_s, threads = 0.1, 3
    words = [python.path, str(PROGRAMS / "peters.py"), str(span_s), str(threads)]
    table = subprocess.run(words, capture_output=True, check=True, text=True).stdout
    his = [list(map(float, line.split())) for line in table.splitlines()]
    ours = run(chosen(python.path), "fairness", span_s, threads)["threads"][-1]
    figures = ("tid", "mean_gap_ms", "max_gap_ms", "at_turn", "turns")
    for rows in (his, [[row[name] for name in figures] for row in ours]):
        assert [row[0] for row in rows] == [0, 1, 2]
        for _, mean_ms, longest_ms, where, turns in rows:
            assert mean_ms * turns >= span_s * 1e3 * 0.999
            assert longest_ms >= mean_ms
            assert 0 <= where < turns


def fairness_functions() -> dict[str, Any]:
    """What the workload defines, without what it does."""
    tree = ast.parse((FOLDER / "fairness.py").read_text())
    tree.body = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    names: dict[str, Any] = {}
    exec(compile(tree, "fairness.py", "exec"), names)
    return names


def test_a_gap_is_the_kernels_as_far_as_standstills_cover_it() -> None:
    covered = fairness_functions()["covered"]
    assert covered((10.0, 20.0), []) == 0.0
    assert covered((10.0, 20.0), [(0.0, 5.0), (25.0, 30.0)]) == 0.0
    # Two threads report the same one, and another begins before the gap.
    assert covered((10.0, 20.0), [(8.0, 12.0), (15.0, 18.0), (15.0, 18.0), (16.0, 19.0)]) == 6.0
    assert covered((10.0, 20.0), [(0.0, 100.0)]) == 10.0


def cpu_s(pid: int) -> float:
    """CPU time of a process so far, see proc_pid_stat(5)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.parametrize("python", pythons("2.7", "3.11", "3.13"), ids=str)
def test_a_process_that_the_kernel_stops_has_gaps_that_are_not_the_gils(python: Python) -> None:
    stopped_ms = 1000
    with running(words_of(chosen(python.path), "fairness", 1.0, 2)) as program:
        # Starting takes far less, all of the looping far more.
        while cpu_s(program.pid) < 0.25:
            time.sleep(0.01)
        os.kill(program.pid, signal.SIGSTOP)
        time.sleep(stopped_ms / 1e3)
        os.kill(program.pid, signal.SIGCONT)
        said = program.result()
    longest = max(
        (row for rows in said["threads"] for row in rows), key=lambda it: it["max_gap_ms"]
    )
    # A stop takes effect when the kernel comes to it, which may be a little later.
    assert longest["max_gap_ms"] >= 0.8 * stopped_ms
    assert longest["silent_ms"] >= 0.8 * stopped_ms


@ALL
def test_an_interrupt_during_one_operation_is_seen_after_it(python: Python) -> None:
    with running(words_of(chosen(python.path), "tick", 3_000_000)) as program:
        ready = program.says()["ready"]
        program.interrupt()
        said = program.result()
    assert said["seen"] >= ready
    assert said["tick_s"] > 0
    assert set(said["still_s"]) == {"computing", "sleeping"}


def switches(pid: int) -> str:
    """How often the main thread of a process has waited."""
    status = Path(f"/proc/{pid}/task/{pid}/status").read_text()
    return status.partition("\nvoluntary_ctxt_switches:")[2].split()[0]


def wait_until_the_main_thread_waits(pid: int) -> None:
    """Until it is in a lock, and not that of the GIL: the others compute, and do not wake it."""
    while True:
        wait_until_in_a_lock(pid)
        before, until_s = switches(pid), cpu_s(pid) + 0.05
        while cpu_s(pid) < until_s:
            time.sleep(0.001)
        wait_until_in_a_lock(pid)
        if switches(pid) == before:
            return


def interrupted(python: Python, where: str, seconds: float) -> dict[str, Any]:
    with running(words_of(chosen(python.path), "interrupt", where, seconds)) as program:
        program.says()
        if where != "compute":
            wait_until_the_main_thread_waits(program.pid)
        program.interrupt()
        return program.result()


@pytest.mark.parametrize("where", ["join", "lock", "compute"])
@pytest.mark.parametrize("python", pythons(since=(3, 8)), ids=str)
def test_a_main_thread_that_waits_can_be_interrupted(python: Python, where: str) -> None:
    # So long that only an interrupt can end it before the watchdog does.
    said = interrupted(python, where, 200.0)
    assert said["caught"] < said["end"]


@pytest.mark.parametrize("where", ["join", "lock"])
@pytest.mark.parametrize(
    "python", [one for one in pythons("2.7") if one.version == (2, 7)], ids=str
)
def test_the_main_thread_of_2_7_is_deaf_while_it_waits(python: Python, where: str) -> None:
    said = interrupted(python, where, 2.0)
    assert said["caught"] >= said["end"]


@ALL
def test_a_workload_that_answers_says_how_much_was_computed_meanwhile(python: Python) -> None:
    with running(words_of(chosen(python.path), "response", 1)) as server:
        port = server.says()["port"]
        words = words_of(chosen(), "response_client", port, 200.0, 0.1)
        with running(words) as client:
            answered = client.result()
        said = server.result()
    assert len(answered["taken_ms"]) == 20
    assert min(answered["taken_ms"]) > 0
    assert 0 <= answered["unsent"] < 20
    # Each answer waits for the thread that computes, which computes meanwhile.
    assert said["rounds"] > 0
    assert said["wall_s"] > 0


@NEW
@pytest.mark.parametrize("policy", ["interactive", "fair", "batch"])
def test_a_workload_runs_under_the_policy_that_was_asked_for(python: Python, policy: str) -> None:
    Conditions(policy).check(chosen(python.path))


@pytest.mark.parametrize(
    "python", [one for one in pythons("2.7") if one.version == (2, 7)], ids=str
)
def test_an_interpreter_that_cannot_be_scheduled_is_told_with_the_reason(python: Python) -> None:
    with pytest.raises(Missing, match=r"^this interpreter is older than Python 3\.7"):
        run(chosen(python.path), "countdown", 1, "threads", conditions=Conditions("fair"))


def test_a_policy_that_is_not_obeyed_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def stock(_python: str, _policy: str) -> str:
        return "stock"

    monkeypatch.setattr(conditions, "_policy_of", stock)
    with pytest.raises(CellFailed, match="it runs under 'stock' although 'fair' was asked for"):
        Conditions("fair").check(chosen())


def test_more_cores_than_there_are_is_something_missing() -> None:
    with pytest.raises(Missing, match="fewer than 4096 cores"):
        STOCK.on(4096).check(chosen())


def test_a_workload_on_one_core_has_one_and_leaves_ours_alone() -> None:
    ours = os.sched_getaffinity(0)
    code = "import json, os; print(json.dumps(len(os.sched_getaffinity(0))))"
    with running([chosen().path, "-c", code], STOCK.on(1)) as program:
        assert program.result() == 1
    assert os.sched_getaffinity(0) == ours


ENDINGS = [
    ("import sys; sys.exit('it broke')", "ended with status 1: it broke"),
    ("import os; os.kill(os.getpid(), 9)", "ended with signal 9"),
    ("print('no JSON')", "printed b'no JSON'"),
    ("print('{}', flush=True); raise SystemExit(3)", "ended with status 3"),
    ("import time; time.sleep(1000)", "did not end in time and was killed"),
]


@pytest.mark.parametrize(("code", "sentence"), ENDINGS)
def test_a_workload_that_does_not_end_well_fails_with_a_sentence(code: str, sentence: str) -> None:
    words = [chosen().path, "-c", code]
    with pytest.raises(CellFailed, match=sentence), running(words, patience_s=1.0) as program:
        program.result()


def test_nothing_of_a_workload_is_left_when_it_is_given_up() -> None:
    code = "import os, time; print(os.getpid(), flush=True); os.fork(); time.sleep(1000)"
    with running([chosen().path, "-c", code]) as program:
        group = program.pid
        program.says()
    wait_until_nobody_is_left_of(group)
