"""`ungil fanout --engine`: the same commands and functions, in workers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cli_fanout.hosts import Run, jsons

TASKS = "tasks_in_workers.py"


@pytest.fixture(autouse=True)
def _hosts_with_ports(folder: Path) -> None:
    (folder / "hosts.csv").write_text("host,port\nsw1,22\nsw2,23\n")


def test_a_command_runs_below_worker_processes(ungil: Run) -> None:
    words = ["--engine", "processes:2", "--", "sh", "-c", "echo $PPID {}"]
    outcome = ungil("fanout", "--hosts", "hosts", *words)
    assert outcome.returncode == 0, outcome.stderr
    answers = dict(line.split(": ") for line in outcome.stdout.splitlines())
    assert {answer.split()[1] for answer in answers.values()} == {"sw1", "sw2", "sw3"} == {*answers}
    here = ungil("fanout", "--hosts", "hosts", "--", "sh", "-c", "echo $PPID {}")
    # Here all of them have one parent; there, not that of this run either.
    assert len({line.split()[1] for line in here.stdout.splitlines()}) == 1
    assert ", asyncio by processes:2" in outcome.stderr
    assert outcome.stderr.endswith(": 3 ok\n")


@pytest.mark.parametrize(
    ("words", "values"),
    [
        (["tasks:hello"], ["hello sw1", "hello sw2", "hello sw3"]),
        (["tasks:Switch.name"], ["sw1", "sw2", "sw3"]),
        (["--hosts", "hosts.csv", "tasks:fields"], [[["host", "sw1"], ["port", "22"]]]),
        (["--hosts", "hosts.csv", "--", "echo", "{host}:{port}"], ["sw1:22\n", "sw2:23\n"]),
    ],
)
def test_workers_import_the_function_from_the_folder_of_the_command(
    ungil: Run, words: list[str], values: list[Any]
) -> None:
    hosts = [] if "--hosts" in words else ["--hosts", "hosts"]
    outcome = ungil("fanout", *hosts, "--engine", "processes:1", "--json", *words)
    assert outcome.returncode == 0, outcome.stderr
    told = [one["value"] for one in jsons(outcome.stdout)]
    told = [one["stdout"] if isinstance(one, dict) else one for one in told]
    assert told[: len(values)] == values


def test_a_function_runs_in_other_processes(ungil: Run) -> None:
    outcome = ungil(
        "fanout", "--hosts", "hosts", "--engine", "processes:1", "--json", "tasks:whose"
    )
    here = ungil("fanout", "--hosts", "hosts", "--json", "tasks:whose")
    assert {one["value"] for one in jsons(here.stdout)} == {os.getpid()}
    assert os.getpid() not in {one["value"] for one in jsons(outcome.stdout)}


def test_failures_in_workers_have_the_same_names(ungil: Run, folder: Path) -> None:
    (folder / "hosts").write_text("sw1\nsw2\ntwo words\n")
    words = ["--engine", "processes:1", "--json", "--plain"]
    outcome = ungil("fanout", "--hosts", "hosts", *words, "tasks:fails")
    told = {one["host"]: (one["kind"], one["error"]) for one in jsons(outcome.stdout)}
    assert told["sw1"] == ("ValueError", "ValueError: no sw1")
    assert told["hosts, line 3"][0] == "bad line"
    # Of the last line of progress, of which a slow worker makes several, and of the summary.
    assert outcome.stderr.count("(2 ValueError, 1 bad line)") >= 2
    outcome = ungil("fanout", "--hosts", "hosts", *words, "--", "sh", "-c", "exit 255 # {}")
    assert [one["kind"] for one in jsons(outcome.stdout)] == ["bad line", "exit 255", "exit 255"]
    assert outcome.stderr.count("(2 exit 255, 1 bad line)") >= 2


def test_a_host_that_kills_its_worker_is_told_and_the_others_run(ungil: Run) -> None:
    words = ["--engine", "processes:1", "--json", "tasks:dies"]
    outcome = ungil("fanout", "--hosts", "hosts", *words)
    assert outcome.returncode == 1
    told = jsons(outcome.stdout)
    assert [one["ok"] for one in told] == [True, False, True]
    assert told[1]["kind"] == "WorkerDied"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--engine", "threads", "tasks:hello"], "--engine 'threads' is not one of processes"),
        (["--engine", "processes:0", "--", "echo", "{}"], "--engine 'processes:0' is not one of "),
        (
            ["--engine", "http://x", "--", "echo", "{}"],
            "--engine 'http://x' is not one of processes",
        ),
        (
            ["--engine", "processes", "--mode", "green", "tasks:whose"],
            "--engine processes and --mode green cannot be combined: the workers of an engine ",
        ),
        (
            ["--engine", "dask", "--mode", "lean", "tasks:hello"],
            "--engine dask and --mode lean cannot be combined: ",
        ),
        (
            ["--engine", "processes", "--mode", "threads", "--", "echo", "{}"],
            "--mode threads applies to functions, and a command runs as a process; leave it out",
        ),
    ],
)
def test_an_engine_that_cannot_be_is_told_in_one_sentence(
    ungil: Run, words: list[str], sentence: str
) -> None:
    outcome = ungil("fanout", "--hosts", "hosts", *words)
    assert (outcome.returncode, outcome.stdout) == (2, "")
    assert outcome.stderr.startswith(f"ungil: {sentence}")
    assert outcome.stderr.count("\n") == 1
    assert "engine=" not in outcome.stderr


def test_an_engine_whose_package_is_missing_says_what_to_install(
    folder: Path, environment: dict[str, str]
) -> None:
    program = (
        "import sys; sys.modules['distributed'] = None\n"
        "from ungil.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    words = ["fanout", "--hosts", "hosts", "--engine", "dask", "tasks:hello"]
    outcome = subprocess.run(
        [sys.executable, "-c", program, *words],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert (outcome.returncode, outcome.stdout) == (2, "")
    assert outcome.stderr == (
        "ungil: --engine dask needs the package distributed: pip install 'ungil[dask]'\n"
    )


def test_a_cluster_that_does_not_answer_is_told_in_one_sentence(
    ungil: Run, environment: dict[str, str]
) -> None:
    quick = environment | {"DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "0.1"}
    words = ["--engine", "tcp://127.0.0.1:1", "tasks:hello"]
    outcome = ungil("fanout", "--hosts", "hosts", *words, env=quick)
    assert (outcome.returncode, outcome.stdout) == (1, "")
    assert outcome.stderr.startswith("ungil: no dask scheduler answers at tcp://127.0.0.1:1: ")
    assert outcome.stderr.count("\n") == 1
