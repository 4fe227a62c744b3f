"""`ungil simulate`, as a user sees it."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ungil.cli.simulate.rules import Choice, Rules
from ungil.cli.simulate.screen import notes_of, print_answers

CONVOY = """
import os, threading, time
def computes():
    end = time.monotonic() + 0.5
    while time.monotonic() < end:
        sum(range(1000))
def blocks():
    read, write = os.pipe()
    while worker.is_alive():
        time.sleep(0.001)
        os.write(write, b"x")
        os.read(read, 1)
worker = threading.Thread(target=computes, name="<b>report</b>\\x1b[31m")
worker.start()
threading.Thread(target=blocks, name="reader").start()
"""

BATCHES = {
    "threads that are joined": """
import threading
threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
""",
    "results of a pool": """
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(4) as pool: list(pool.map(lambda _: work(10), range(40)))
""",
}
WORK = """
def work(part=1):
    for number in range(3_000_000 // part): number * number
"""


def ungil(
    *words: str | Path, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ungil", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=env)


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("simulate") / "convoy.pftrace"
    done = ungil("trace", "-q", "-o", file, "-c", CONVOY)
    assert done.returncode == 0, done.stderr
    return file


def predictions(*words: str | Path) -> list[dict[str, Any]]:
    done = ungil("simulate", *words, "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["schema"] == 1
    return told["predictions"]


def test_without_rules_all_policies_are_compared(trace: Path) -> None:
    under = [one["rules"]["policy"] for one in predictions(trace)]
    assert under[0] == "stock"
    assert {"interactive", "fair", "batch", None} <= set(under)


def test_a_prediction_has_every_thread_with_its_range(trace: Path) -> None:
    (answer,) = predictions(trace, "--policy", "interactive")
    names = {thread["name"] for thread in answer["predicted"]["threads"]}
    assert "reader" in names
    assert len(answer["ranges"]["threads"]) == len(answer["predicted"]["threads"])
    for spread in answer["ranges"]["threads"]:
        assert spread["waited_s"]["low"] <= spread["waited_s"]["high"]


def test_the_same_seed_brings_the_same_answer(trace: Path) -> None:
    words = [trace, "--policy", "fair", "--seed", "7"]
    assert predictions(*words) == predictions(*words)


def test_a_thread_that_is_left_out_is_missed_by_name(trace: Path) -> None:
    (answer,) = predictions(trace, "--without", "*report*")
    assert len(answer["rules"]["without"]) == 1
    kept = [thread["name"] for thread in answer["predicted"]["threads"]]
    assert "reader" in kept
    assert len(kept) == len(answer["recorded"]["threads"]) - 1


def test_without_a_gil_nobody_waits(trace: Path) -> None:
    (answer,) = predictions(trace, "--no-gil", "--cores", "2")
    assert answer["predicted"]["waits"]["count"] == 0
    assert answer["rules"]["policy"] is None


@pytest.mark.parametrize("batch", BATCHES.values(), ids=BATCHES)
def test_without_a_gil_a_batch_is_done_when_its_last_thread_is(tmp_path: Path, batch: str) -> None:
    file = tmp_path / "batch.pftrace"
    assert ungil("trace", "-q", "-o", file, "-c", WORK + batch).returncode == 0
    (free,) = predictions(file, "--no-gil", "--once", "--cores", "4")
    (in_turns,) = predictions(file, "--policy", "stock", "--once", "--cores", "4")
    (same,) = predictions(file, "--policy", "stock", "--once")
    # What the program did before its threads, and how long that took on a busy machine, is in both.
    saved_s = in_turns["predicted"]["duration_s"] - free["predicted"]["duration_s"]
    assert saved_s > sum(thread["held_s"] for thread in free["predicted"]["threads"]) / 2
    recorded_s = same["recorded"]["duration_s"]
    assert recorded_s * 0.8 < same["predicted"]["duration_s"] < recorded_s * 1.25


def test_without_a_gil_there_are_the_processors_that_the_recorded_process_might_use(
    tmp_path: Path,
) -> None:
    file = tmp_path / "pinned.pftrace"
    core = min(os.sched_getaffinity(0))
    command = [sys.executable, "-m", "ungil", "trace", "-q", "-o", str(file), "-c", CONVOY]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: os.sched_setaffinity(0, {core}),
    )
    assert done.returncode == 0, done.stderr
    (answer,) = predictions(file, "--no-gil")
    assert answer["rules"]["cores"] == 1
    # Notes come below the table.
    row = next(it for it in ungil("simulate", file).stdout.splitlines() if it[:6] == "no GIL")
    assert row.startswith("no GIL, 1 core")
    # Nobody holds a GIL that there is not.
    assert "%" not in row
    told = json.loads(ungil("report", file, "--json").stdout)
    assert told["processes"][0]["processors"]["allowed"] == 1


def test_where_a_trace_does_not_tell_there_are_the_processors_of_this_machine() -> None:
    options = dict.fromkeys(["policy", "quantum", "interval", "cores"])
    options |= {"no_gil": True, "changes": (), "without": (), "priorities": (), "once": False}
    rules = Rules.read(options | {"runs": "1", "seed": "0"})
    listed: Any = {"threads": [], "recorded_under": {"policy": "stock", "quantum_ms": 5.0}}
    known, unknown = (Choice(0, listed | {"processors": it}) for it in (3, None))
    assert rules.arguments(known)["cores"] == 3
    assert rules.arguments(unknown)["cores"] == os.cpu_count()


def test_twice_as_many_threads_are_twice_as_many_rows(trace: Path) -> None:
    (answer,) = predictions(trace, "--threads", "reader=*3")
    rows = [it for it in answer["predicted"]["threads"] if it["name"] == "reader"]
    assert len(rows) == 3


def test_where_nobody_waited_there_is_nothing_to_gain(tmp_path: Path) -> None:
    file = tmp_path / "alone.pftrace"
    assert ungil("trace", "-q", "-o", file, "-c", "sum(range(1_000_000))").returncode == 0
    said = ungil("simulate", file).stdout
    assert "No thread waited for this GIL in the recording" in said
    assert "The ranges include" not in said


def test_names_of_threads_cannot_command_the_terminal(trace: Path) -> None:
    done = ungil("simulate", trace, "--policy", "fair")
    assert done.returncode == 0, done.stderr
    assert "\x1b" not in done.stdout
    assert "recorded under stock" in done.stdout


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--policy", "fifo"], "is not a policy; the policies are"),
        (["--no-gil", "--policy", "fair"], "--no-gil cannot be combined"),
        (["--interval", "0"], "--interval: '0'"),
        (["--policy", "fair", "--interval", "5"], "a policy's time slice is --quantum"),
        (["--policy", "stock", "--quantum", "5"], "for stock, give --interval"),
        (["--cores", "0"], "--cores: '0' is not a whole number"),
        (["--threads", "reader"], "is not PATTERN=xFACTOR"),
        (["--threads", "reader=*0.5"], "is not PATTERN=xFACTOR"),
        (["--without", "nobody"], "no thread's name matches 'nobody'"),
        (["--without", "*"], "no thread is left to simulate"),
        (["--process", "1"], "has no such GIL; it has: process "),
        (["--priority", "reader=urgent"], "is not PATTERN=LEVEL"),
        (["--priority", "reader=high"], "under CPython's own rules: add --policy priority"),
        (["--priority", "reader=high", "--interval", "1"], "add --policy priority"),
        (["--priority", "reader=high", "--no-gil"], "--priority has no effect without a GIL"),
        (["--runs", "many"], "--runs: 'many' is not a whole number"),
    ],
)
def test_a_mistake_is_one_sentence(trace: Path, words: list[str], says: str) -> None:
    done = ungil("simulate", trace, *words)
    assert done.returncode == 2
    assert says in done.stderr
    assert done.stderr.count("\n") == 1
    assert not done.stdout


def test_a_file_that_is_no_trace_is_one_sentence(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text("something else")
    for file in (other, tmp_path / "missing"):
        done = ungil("simulate", file)
        assert done.returncode == 2
        assert done.stderr.count("\n") == 1
        assert str(file) in done.stderr


# What a unit ends, and no digit: 13.1ms, 47.2us-2.41ms, 0.78 s, 92%, 2,429, 0.60.
A_NUMBER = re.compile(r"-|<?[0-9][0-9.,]*(%|k|M|[nµm]?s)?(-[0-9][0-9.]*([nµm]?s)?)?|s")


@pytest.mark.parametrize("columns", [24, 40, 60, 80, 100, 120, 160])
@pytest.mark.parametrize("rules", [[], ["--policy", "fair", "--threads", "reader=*3"]])
def test_however_narrow_the_screen_no_number_is_cut(
    trace: Path, columns: int, rules: list[str]
) -> None:
    narrow = {**os.environ, "COLUMNS": str(columns)}
    done = ungil("simulate", trace, *rules, env=narrow)
    assert done.returncode == 0, done.stderr
    assert max(map(len, done.stdout.splitlines())) <= columns
    table = done.stdout.partition("rules")[2].partition("the simulation gives")[0]
    assert not re.search(r"[0-9.]…", table)
    # Where the screen is narrow, a line of a note below the table may begin so, too.
    recorded, *_ = re.findall(r"^recorded +(.*)$", table, re.MULTILINE)
    assert all(A_NUMBER.fullmatch(word) for word in recorded.split())


def test_rules_with_a_long_name_are_named_whole(trace: Path) -> None:
    rules = ["--policy", "fair", "--without", "*report*", "--cores", "2", "--once"]
    done = ungil("simulate", trace, *rules, env={**os.environ, "COLUMNS": "80"})
    (named,) = re.findall(r"^(fair .*)\n(\S.*)\n$", done.stdout, re.MULTILINE)
    words = [re.split(r" {2,}", line)[0] for line in named]
    assert " ".join(words) == "fair 5 ms, 2 cores, without 1 thread, once"


def test_blocking_calls_a_second_are_told_and_where_the_simulation_misses_them(
    trace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    answer: Any = predictions(trace, "--policy", "interactive")[0]

    def shown(reproduced: int) -> str:
        answer["recorded"]["duration_s"] = answer["reproduced"]["duration_s"] = 2.0
        answer["recorded"]["returns"]["count"] = 3000
        answer["reproduced"]["returns"]["count"] = reproduced
        file = io.StringIO()
        print_answers([answer], others=0, file=file)
        return " ".join(file.getvalue().split())

    assert re.search(r"calls/s .* recorded .* 1,500 ", shown(3000))
    assert "blocking calls a second" not in shown(3000)
    assert "It has 700 blocking calls a second (recorded 1,500)." in shown(1400)


def test_a_note_says_which_rows_it_is_about() -> None:
    def answer(policy: str | None, *notes: str) -> Any:
        rules: dict[str, Any] = {"policy": policy, "quantum_ms": None, "cores": None}
        rules |= {"without": [], "changes": [], "levels": [], "once": False}
        return {"rules": rules, "notes": notes}

    answers = [
        answer("stock", "all", "most"),
        answer("fair", "all", "most"),
        answer(None, "all", "one"),
    ]
    assert notes_of(answers) == ["all", "all rules but no GIL: most", "no GIL: one"]
