"""Processes that a traced program starts are recorded too, however it starts them."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from pythons import Python, pythons
from suite import PROGRAMS
from tracing import Recording, Running, check_releases, trace

PYTHONS = pythons("2.7", "3.8", "3.11", "3.11-debian", "3.12", "3.13")
PYTHONS_3 = pythons("3.8", "3.11", "3.11-debian", "3.12", "3.13")
COUNT = 10
TIMES = 50


def readers(recording: Recording, pids: list[int]) -> list[dict[str, Any]]:
    """The second threads of the processes with these ids, each the only one of its process."""
    found: list[dict[str, Any]] = []
    for pid in pids:
        (process,) = [it for it in recording.processes if it["pid"] == pid]
        (gil,) = process["gils"]
        main, reader = sorted(gil["threads"], key=lambda it: not it["main"])
        assert main["tid"] == pid
        found.append(reader)
    return found


@pytest.mark.parametrize("python", PYTHONS_3, ids=str)
@pytest.mark.parametrize("method", ["spawn", "fork", "forkserver"])
def test_ten_children_of_multiprocessing(tmp_path: Path, python: Python, method: str) -> None:
    program = PROGRAMS / "children.py"
    recording = trace(tmp_path, python.path, program, method, str(COUNT), str(TIMES))
    pids: list[int] = recording.told
    assert len(set(pids)) == COUNT
    for reader in readers(recording, pids):
        # os.open, os.read, and the end of the thread.
        check_releases(reader["voluntary"] + reader["forced"], reader["forced"], TIMES + 2)


@pytest.mark.parametrize("python", PYTHONS, ids=str)
def test_a_threaded_server_that_forks_its_workers(tmp_path: Path, python: Python) -> None:
    program = PROGRAMS / "prefork.py"
    recording = trace(tmp_path, python.path, program, str(COUNT), str(TIMES))
    pids: list[int] = recording.told
    assert len(recording.processes) == COUNT + 1
    master = next(it for it in recording.processes if it["pid"] not in pids)
    assert {it["parent_pid"] for it in recording.processes if it != master} == {master["pid"]}
    for reader in readers(recording, pids):
        if python.version >= (3, 0):
            check_releases(reader["voluntary"] + reader["forced"], reader["forced"], TIMES + 2)
        else:
            # 2.7 also lets go whenever its ticks have run out, and when threads use its locks.
            assert reader["voluntary"] + reader["forced"] >= TIMES + 2, reader


def test_a_python_that_starts_every_other_python(tmp_path: Path) -> None:
    others = pythons()
    code = "import subprocess, sys\nfor it in sys.argv[1:]: subprocess.check_call([it, '-c', {!r}])"
    # Threads, because 2.7 has no GIL without.
    child = "import threading; it = threading.Thread(target=int); it.start(); it.join()"
    paths = [it.path for it in others]
    recording = trace(tmp_path, sys.executable, "-c", code.format(child), *paths)
    first, *children = sorted(recording.processes, key=lambda it: it["started_s"])
    assert [tuple(map(int, it["python"].split(".")[:2])) for it in children] == [
        it.version for it in others
    ]
    assert [it["argv"] for it in children] == [[it.path, "-c", child] for it in others]
    assert {it["parent_pid"] for it in children} == {first["pid"]}
    assert all(len(it["gils"]) == 1 for it in children)


def test_a_hundred_processes_one_after_the_other(tmp_path: Path) -> None:
    code = (
        "import subprocess, sys\nfor _ in range(100): subprocess.check_call([sys.executable, '-S'])"
    )
    recording = trace(tmp_path, sys.executable, "-c", code)
    assert len(recording.processes) == 101
    assert all(len(it["gils"]) == 1 for it in recording.processes)


def test_a_child_that_is_killed_is_whole_all_the_same(tmp_path: Path) -> None:
    code = """
import os, signal, subprocess, sys
child = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE)
assert child.stdout.readline() == b"ready\\n"
child.kill()
assert child.wait() == -signal.SIGKILL
print(child.pid)
"""
    ending = [sys.executable, PROGRAMS / "ending.py", "stay"]
    recording = trace(tmp_path, sys.executable, "-c", code, *ending)
    (killed,) = [it for it in recording.processes if it["pid"] == int(recording.stdout)]
    (gil,) = killed["gils"]
    assert len(gil["threads"]) == 3
    assert gil["forced"] >= 4


def test_a_process_that_outlives_the_program_is_recorded_until_then(tmp_path: Path) -> None:
    words = [sys.executable, PROGRAMS / "orphan.py"]
    with Running(tmp_path, words, stdin=subprocess.PIPE) as running:
        pid = int(running.read_line())
        # Its input is still open, so it computes on.
        running.popen.wait()
        assert Path(f"/proc/{pid}").exists()
        recording = running.finish()
    assert recording.status == 0
    told = (
        "one process outlived the program that started it; it was recorded until the program "
        f"ended; to record it from now on: ungil trace --pid {pid}"
    )
    assert told in recording.report["notes"]
    (orphan,) = [it for it in recording.processes if it["pid"] == pid]
    (gil,) = orphan["gils"]
    assert len(gil["threads"]) == 3


def test_a_daemon_that_goes_on_at_once_is_told_with_how_to_record_it(tmp_path: Path) -> None:
    code = """
import os, sys
for _ in range(2):
    if os.fork():
        os._exit(0)
    os.setsid()
print(os.getpid(), flush=True)
sys.stdin.read()
"""
    with Running(tmp_path, [sys.executable, "-c", code], stdin=subprocess.PIPE) as running:
        pid = int(running.read_line())
        running.popen.wait()
        recording = running.finish()
    assert recording.status == 0
    assert [it for it in recording.report["notes"] if f"ungil trace --pid {pid}" in it]
    assert pid in [it["pid"] for it in recording.processes]


@pytest.mark.parametrize("python", PYTHONS, ids=str)
def test_children_can_be_left_alone(tmp_path: Path, python: Python) -> None:
    code = """
import os, subprocess, sys
child = "import json, os, sys; json.dump(dict(os.environ), sys.stdout)"
subprocess.check_call([sys.executable, "-c", child])
if os.fork() == 0:
    os._exit(0)
os.wait()
"""
    recording = trace(
        tmp_path,
        python.path,
        "-c",
        code,
        options=["--no-children"],
        env={**os.environ, "LD_PRELOAD": str(empty_library(tmp_path))},
    )
    assert len(recording.processes) == 1
    seen: dict[str, str] = recording.told
    assert seen["LD_PRELOAD"] == str(empty_library(tmp_path))
    assert not [it for it in seen if it.startswith("UNGIL")]


@pytest.mark.parametrize("python", PYTHONS, ids=str)
def test_what_the_user_preloads_stays_in_force(tmp_path: Path, python: Python) -> None:
    library = empty_library(tmp_path)
    code = f"print({str(library)!r} in open('/proc/self/maps').read())"
    environment = {**os.environ, "LD_PRELOAD": str(library)}
    recording = trace(tmp_path, python.path, "-c", code, env=environment)
    assert recording.stdout == "True\n"
    assert len(recording.processes) == 1


def empty_library(folder: Path) -> Path:
    """A library that does nothing."""
    library = folder / "empty.so"
    if not library.exists():
        compile_it = ["cc", "-shared", "-fPIC", "-x", "c", "-o", library, "/dev/null"]
        subprocess.run(compile_it, check=True)
    return library


def exec_after(seconds: float, *words: str) -> str:
    """A program that computes in a second thread for so long, and then becomes another program."""
    return f"""
import os, threading, time
def compute():
    while True:
        pass
threading.Thread(target=compute, name="computing", daemon=True).start()
time.sleep({seconds})
os.execvp({words[0]!r}, {list(words)!r})
"""


def test_a_program_that_executes_another_one_ends_then(tmp_path: Path) -> None:
    begun = time.monotonic()
    process = trace(tmp_path, sys.executable, "-c", exec_after(0.2, "sleep", "1")).process
    took = time.monotonic() - begun
    assert process["duration_s"] <= took - 1
    assert process["argv"][0] == sys.executable
    (gil,) = process["gils"]
    assert gil["held_s"] <= process["duration_s"]
    assert max(thread["waits"]["max_us"] for thread in gil["threads"]) / 1e6 <= took - 1


def test_the_python_that_another_one_executes_is_a_process_with_names_and_stacks(
    tmp_path: Path,
) -> None:
    holding = """
import re, threading
def search():
    re.match("(a+)+b", "a" * 25)
thread = threading.Thread(target=search, name="searching")
thread.start()
thread.join()
"""
    code = exec_after(0.0, sys.executable, "-c", holding)
    processes = trace(tmp_path, sys.executable, "-c", code).report["processes"]
    first, second = sorted(processes, key=lambda process: process["started_s"])
    assert first["pid"] == second["pid"]
    assert (first["argv"][-1], second["argv"][-1]) == (code, holding)
    assert first["started_s"] + first["duration_s"] <= second["started_s"]
    (thread,) = [it for it in second["gils"][0]["threads"] if it["name"] == "searching"]
    (hold, *_) = second["gils"][0]["long_holds"]
    assert (hold["tid"], hold["samples"] > 0) == (thread["tid"], True)


def test_a_program_that_fails_to_execute_another_one_goes_on(tmp_path: Path) -> None:
    code = """
import os, threading, time
def compute():
    end = time.monotonic() + 0.5
    while time.monotonic() < end:
        pass
try:
    os.execv("/no/such/program", ["x"])
except FileNotFoundError:
    thread = threading.Thread(target=compute, name="computing")
    thread.start()
    thread.join()
"""
    (process,) = trace(tmp_path, sys.executable, "-c", code).report["processes"]
    (thread,) = [it for it in process["gils"][0]["threads"] if it["name"] == "computing"]
    assert thread["held_s"] > 0.2
