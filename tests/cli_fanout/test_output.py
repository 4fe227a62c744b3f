"""`ungil fanout`: the table, JSON, tags and progress."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cli_fanout.hosts import Run, jsons, words_of, write_hosts
from terminals import Start, Terminal

TASKS = "tasks_to_run.py"


def test_of_many_hosts_only_those_that_failed_are_shown(ungil: Run, folder: Path) -> None:
    write_hosts(folder, 30)
    outcome = ungil("fanout", "--hosts", "hosts", "--table", "tasks:odd_fails")
    assert outcome.returncode == 1
    rows = words_of(outcome.stdout)
    assert [row[0] for row in rows[1:-1]] == [f"sw{n}" for n in range(1, 31, 2)]
    summary = "15 ok, 15 failed (8 ConnectionRefusedError, 7 ValueError)"
    assert outcome.stdout.rstrip().endswith(summary)
    everything = ungil("fanout", "--hosts", "hosts", "--all", "tasks:odd_fails").stdout
    assert [row[0] for row in words_of(everything)[1:-1]] == [
        *(f"sw{n}" for n in range(1, 31, 2)),
        *(f"sw{n}" for n in range(2, 31, 2)),
    ]


def test_of_many_failures_it_is_said_how_many_failed_in_which_way(ungil: Run, folder: Path) -> None:
    write_hosts(folder, 10_000)
    outcome = ungil("fanout", "--hosts", "hosts", "--table", "--limit", "50", "tasks:odd_fails")
    head, *kinds, summary, hint = outcome.stdout.splitlines()
    assert head.split() == ["HOSTS", "FAILED", "BY", "FOR", "EXAMPLE"]
    assert sorted(line.split()[:2] for line in kinds) == [
        ["2,500", "ConnectionRefusedError"],
        ["2,500", "ValueError"],
    ]
    [refused, value] = sorted(kinds, key=lambda line: "ValueError" in line)
    assert refused.rstrip().endswith(": [Errno 111] Connection refused")
    assert ": bad answer from sw" in value
    assert summary.startswith("10,000 hosts in ")
    assert hint == "--all shows every host, --json prints them as JSON"


def test_equal_outputs_of_commands_are_shown_once_with_their_hosts(
    ungil: Run, folder: Path
) -> None:
    write_hosts(folder, 30)
    script = (
        "case $0 in sw7|sw9) echo old; echo kernel;; sw5) echo alone;; sw6) ;; *) echo new;; esac"
    )
    words = ["--table", "--limit", "1", "--", "sh", "-c", script, "{}"]
    outcome = ungil("fanout", "--hosts", "hosts", *words)
    *lines, summary = outcome.stdout.splitlines()
    assert lines == [
        "26 hosts: sw1, sw2, sw3, sw4, sw8, sw10, sw11, sw12 and 18 more",
        "  new",
        "2 hosts: sw7, sw9",
        "  old",
        "  kernel",
        "sw5: alone",
        "sw6: (no output)",
    ]
    assert summary.endswith(": 30 ok")


def test_outputs_are_kept_in_a_folder(ungil: Run, folder: Path) -> None:
    (folder / "hosts").write_text("sw1\nsw2\n10.0.0.0/8\n")
    script = "echo out of $0; case $0 in sw2) echo why >&2; exit 3;; esac"
    command = ["--", "sh", "-c", script, "{}"]
    outcome = ungil("fanout", "--hosts", "hosts", "--outdir", "kept/here", *command)
    assert outcome.returncode == 1
    kept = {it.name: it.read_text() for it in (folder / "kept/here").iterdir()}
    assert kept == {
        "sw1.out": "out of sw1\n",
        "sw2.out": "out of sw2\n",
        "sw2.err": "why\n",
        "10.0.0.0%2F8.out": "out of 10.0.0.0/8\n",
    }
    refused = ungil("fanout", "--hosts", "hosts", "--outdir", "hosts", *command)
    assert refused.returncode == 2
    assert refused.stderr == "ungil: cannot write to the folder 'hosts': file exists\n"


def test_what_hosts_say_cannot_change_the_terminal(ungil: Run) -> None:
    outcome = ungil("fanout", "--hosts", "hosts", "--table", "tasks:lines")
    assert "\x1b" not in outcome.stdout
    assert r"first of sw1 second\x1b[31m" in outcome.stdout


def test_what_the_terminal_cannot_show_is_told_in_ascii(
    ungil: Run, folder: Path, environment: dict[str, str]
) -> None:
    (folder / "hosts").write_text("köln\n")
    ascii_only = environment | {"PYTHONIOENCODING": "ascii"}
    for words in (["--table"], ["--gather"], ["--tag"]):
        outcome = ungil("fanout", "--hosts", "hosts", *words, "tasks:hello", env=ascii_only)
        assert outcome.returncode == 0
        assert r"hello k\xf6ln" in outcome.stdout


def test_a_terminal_gets_colour_unless_no_color_is_set(
    start: Start, environment: dict[str, str]
) -> None:
    command = [sys.executable, "-m", "ungil", "fanout", "-q", "--hosts", "hosts", "tasks:odd_fails"]
    for extra, coloured in (({}, True), ({"NO_COLOR": "1"}, False)):
        variables = environment | {"TERM": "xterm-256color"} | extra
        terminal = Terminal(command, start, env=variables)
        assert terminal.end() == 1
        assert ("\x1b[31mValueError" in terminal.seen) is coloured


def test_a_narrow_terminal_cuts_the_last_column(start: Start) -> None:
    command = [sys.executable, "-m", "ungil", "fanout", "-q", "--table", "--hosts", "hosts"]
    terminal = Terminal([*command, "tasks:odd_fails"], start, columns=50)
    assert terminal.end() == 1
    rows = [line for line in terminal.lines() if line.startswith("sw")]
    assert len(rows) == 3, terminal.lines()
    assert rows[0].endswith("…")
    assert max(map(len, rows)) <= 50


def test_json_is_a_line_for_each_host(ungil: Run) -> None:
    outcome = ungil("fanout", "--hosts", "hosts", "--json", "tasks:odd_fails")
    assert outcome.returncode == 1
    assert outcome.stderr.startswith("3 hosts in ")
    told = jsons(outcome.stdout)
    for one in told:
        assert one.pop("seconds") >= 0
        assert 1.7e9 < one.pop("started") <= one.pop("finished") <= time.time() + 0.001
    assert told == [
        {
            "host": "sw1",
            "ok": False,
            "kind": "ConnectionRefusedError",
            "error": "ConnectionRefusedError: [Errno 111] Connection refused",
            "attempts": 1,
        },
        {"host": "sw2", "ok": True, "value": None, "attempts": 1},
        {
            "host": "sw3",
            "ok": False,
            "kind": "ValueError",
            "error": "ValueError: bad answer from sw3",
            "attempts": 1,
        },
    ]


def test_values_that_json_cannot_hold_are_told_as_python_writes_them(ungil: Run) -> None:
    told = jsons(ungil("fanout", "--hosts", "hosts", "--json", "tasks:odd_value").stdout)
    assert told[0]["value"] == {"host": "sw1", "what": "<class 'object'>"}


def test_json_comes_as_hosts_finish(start: Start, folder: Path) -> None:
    os.mkfifo(folder / "gate")
    script = "if [ $0 = sw1 ]; then cat gate; fi"
    process = start("fanout", "--hosts", "hosts", "--json", "--", "sh", "-c", script, "{}")
    assert process.stdout is not None
    first = [json.loads(process.stdout.readline())["host"] for _ in range(2)]
    assert sorted(first) == ["sw2", "sw3"]
    (folder / "gate").write_text("now\n")
    assert json.loads(process.stdout.readline())["value"]["stdout"] == "now\n"
    assert process.wait() == 0


def test_tagged_lines_say_whose_they_are(ungil: Run) -> None:
    script = "echo one; echo two; echo bad >&2; test $0 != sw2"
    outcome = ungil("fanout", "--hosts", "hosts", "--tag", "--", "sh", "-c", script, "{}")
    assert sorted(outcome.stdout.splitlines()) == sorted(
        f"sw{n}: {word}" for n in (1, 2, 3) for word in ("one", "two")
    )
    *errors, summary = outcome.stderr.splitlines()
    assert sorted(errors) == ["sw1: bad", "sw2: bad", "sw2: exit 1", "sw3: bad"]
    assert summary.endswith("2 ok, 1 failed (1 exit 1)")
    assert "sw1: hello sw1\n" in ungil("fanout", "--hosts", "hosts", "--tag", "tasks:hello").stdout


@pytest.mark.parametrize("form", ["--json", "--tag", "--gather", "--table"])
def test_whoever_stops_reading_ends_it_quietly(start: Start, folder: Path, form: str) -> None:
    write_hosts(folder, 20_000)
    everything = ["--all"] if form == "--table" else []
    process = start("fanout", "--hosts", "hosts", form, *everything, "tasks:hello")
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.stderr is not None
    assert (process.stderr.read(), process.wait()) == ("", 1)


def test_plain_progress_is_lines_on_stderr(ungil: Run) -> None:
    outcome = ungil("fanout", "--hosts", "hosts", "--plain", "--json", "tasks:odd_fails")
    assert outcome.stderr.splitlines()[-2].startswith(
        "3 of 3 (100 %) done, 2 failed (1 ConnectionRefusedError, 1 ValueError), 0 running of at "
    )


def test_a_bar_is_drawn_on_a_terminal_and_goes_before_the_table(start: Start) -> None:
    command = [sys.executable, "-m", "ungil", "fanout", "--hosts", "hosts", "--timeout", "1"]
    terminal = Terminal([*command, "--limit", "7", "tasks:waits"], start)
    assert "0/3  0 %" in terminal.read_until("3 running of at most 7")
    assert terminal.end() == 1
    lines = terminal.lines()
    assert lines[0].split() == ["HOST", "STATUS", "TIME", "RESULT"]
    assert not any("running of at most" in line for line in lines)


def test_no_bar_is_drawn_between_lines_of_json_on_the_same_terminal(start: Start) -> None:
    command = [sys.executable, "-m", "ungil", "fanout", "--hosts", "hosts", "--json"]
    terminal = Terminal([*command, "tasks:length"], start)
    assert terminal.end() == 0
    assert "\x1b" not in terminal.seen


def test_what_json_has_no_place_for_is_told_as_python_writes_it(ungil: Run) -> None:
    for name, expected in {
        "nan": "nan",
        "not_numbers": {"a": ["nan", "-inf", 1.5], "b": {"c": "inf"}},
        "odd_keys": {"(1, 2)": [1, "<class 'object'>"], "3": None},
        "ring": "[[...]]",
    }.items():
        outcome = ungil("fanout", "--json", f"tasks:{name}", input="sw1\n")
        assert outcome.returncode == 0, outcome.stderr
        told = json.loads(outcome.stdout, parse_constant=_refuse)
        assert told["value"] == expected
    assert ungil("fanout", "--tag", "tasks:nan", input="sw1\n").stdout == "sw1: nan\n"


def _refuse(constant: str) -> None:
    raise AssertionError(f"{constant} is no JSON")


@pytest.mark.parametrize("form", ["--json", "--tag", "--gather", "--table"])
def test_an_output_that_is_full_ends_it_and_is_named(ungil: Run, folder: Path, form: str) -> None:
    os.mkfifo(folder / "gate")
    # One thread never ends; with --gather and --table nothing is printed before all have.
    function = "tasks:reads_gate" if form in ("--json", "--tag") else "tasks:length"
    with Path("/dev/full").open("w") as full:
        outcome = ungil(
            *("fanout", "--hosts", "hosts", form, function),
            capture_output=False,
            stdout=full,
            stderr=subprocess.PIPE,
        )
    assert outcome.returncode == 1
    sentence = "ungil: cannot write the standard output: no space left on device"
    assert outcome.stderr.splitlines()[-1] == sentence
    assert "Traceback" not in outcome.stderr


def test_coroutines_end_quietly_when_the_output_is_full(ungil: Run, folder: Path) -> None:
    write_hosts(folder, 300)
    with Path("/dev/full").open("w") as full:
        outcome = ungil(
            *("fanout", "--hosts", "hosts", "--limit", "300", "--mode", "asyncio"),
            "tasks:first_ends",
            capture_output=False,
            stdout=full,
            stderr=subprocess.PIPE,
        )
    assert outcome.returncode == 1
    assert len(outcome.stderr.splitlines()) == 2, outcome.stderr
