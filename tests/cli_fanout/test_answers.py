"""What `ungil fanout` prints: the answers of hosts on stdout, everything else on stderr."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

import pytest
from cli_fanout.hosts import Run, write_hosts
from terminals import Start, Terminal

TASKS = "tasks_that_answer.py"

# Of 200 hosts three cannot be reached, as ssh says it.
UPTIME = """\
case $0 in
sw7|sw70|sw177) echo "ssh: connect to host $0 port 22: Connection refused" >&2; exit 255;;
*) echo "up 3 days";;
esac
"""


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "ungil", "fanout", "--hosts", "hosts", *words]


# Where the answer goes to a pipe or a file.


def test_a_pipe_gets_the_answers_and_nothing_else(ungil: Run, folder: Path) -> None:
    write_hosts(folder, 200)
    outcome = ungil("fanout", "--hosts", "hosts", "--", "sh", "-c", UPTIME, "{}")
    assert outcome.returncode == 1
    failed = {"sw7", "sw70", "sw177"}
    names = {f"sw{n}" for n in range(1, 201)} - failed
    assert sorted(outcome.stdout.splitlines()) == sorted(f"{name}: up 3 days" for name in names)
    *told, summary = outcome.stderr.splitlines()
    assert sorted(told) == sorted(
        line
        for name in failed
        for line in (
            f"{name}: ssh: connect to host {name} port 22: Connection refused",
            f"{name}: exit 255",
        )
    )
    assert summary.endswith(": 197 ok, 3 failed (3 exit 255)")


def test_an_answer_comes_when_its_host_has_finished(start: Start, folder: Path) -> None:
    os.mkfifo(folder / "gate")
    script = "if [ $0 = sw1 ]; then cat gate; else echo at once; fi"
    process = start("fanout", "--hosts", "hosts", "--", "sh", "-c", script, "{}")
    assert process.stdout is not None
    first = {process.stdout.readline() for _ in range(2)}
    assert first == {"sw2: at once\n", "sw3: at once\n"}
    (folder / "gate").write_text("at last\n")
    assert process.stdout.readline() == "sw1: at last\n"
    assert process.wait() == 0


def test_what_a_command_that_fails_has_printed_is_its_answer(ungil: Run) -> None:
    script = "echo inactive; exit 3"
    for words in ([], ["--gather"]):
        outcome = ungil("fanout", "--hosts", "hosts", *words, "--", "sh", "-c", script, "{}")
        assert outcome.returncode == 1
        assert outcome.stdout.count("inactive") == (1 if words else 3)
        assert "exit 3" in outcome.stderr


def test_functions_answer_with_what_they_return(ungil: Run) -> None:
    outcome = ungil("fanout", "--hosts", "hosts", "tasks:numbers")
    assert sorted(outcome.stdout.splitlines()) == [f'sw{n}: [1, "sw{n}"]' for n in (1, 2, 3)]
    outcome = ungil("fanout", "--hosts", "hosts", "tasks:nothing")
    assert outcome.stdout == ""
    assert outcome.stderr.endswith(": 3 ok\n")


def test_what_the_journal_has_of_earlier_runs_is_an_answer_too(ungil: Run) -> None:
    words = ["fanout", "--hosts", "hosts", "--journal", "done", "--", "echo", "I am {}"]
    first = ungil(*words)
    again = ungil(*words)
    assert sorted(first.stdout.splitlines()) == [f"sw{n}: I am sw{n}" for n in (1, 2, 3)]
    assert sorted(again.stdout.splitlines()) == sorted(first.stdout.splitlines())
    assert again.stderr.endswith(": 3 ok (3 of them before)\n")


@pytest.mark.parametrize(
    ("words", "answer"), [([], ": 2.0\r\n"), (["--json"], '"value": "2.0"')], ids=["text", "json"]
)
def test_no_bar_is_drawn_where_the_reader_of_a_pipe_may_print_on_the_same_terminal(
    start: Start, words: list[str], answer: str
) -> None:
    line = ["sh", "-c", '"$@" | cat', "sh", *command(*words, "tasks:version")]
    terminal = Terminal(line, start)
    assert terminal.end() == 0
    assert "\x1b" not in terminal.seen
    assert terminal.seen.count(answer) == 3


def test_a_bar_is_drawn_on_the_terminal_while_answers_go_to_a_file(
    start: Start, folder: Path
) -> None:
    for number in (1, 2, 3):
        os.mkfifo(folder / f"gate-sw{number}")
    script = "cat gate-{}; echo {}"
    line = ["sh", "-c", '"$@" > answers', "sh", *command("--limit", "1", "--", "sh", "-c", script)]
    terminal = Terminal(line, start)
    terminal.read_until("1 running of at most 1")
    for number in (1, 2, 3):
        (folder / f"gate-sw{number}").write_text("")
    assert terminal.end() == 0
    assert (folder / "answers").read_text() == "sw1: sw1\nsw2: sw2\nsw3: sw3\n"
    assert [line for line in terminal.lines() if line][-1].endswith(": 3 ok")


# On a terminal.


def test_a_terminal_gets_equal_answers_once_with_their_hosts(start: Start, folder: Path) -> None:
    write_hosts(folder, 200)
    terminal = Terminal(command("-q", "--limit", "1", "--", "sh", "-c", UPTIME, "{}"), start)
    assert terminal.end() == 1
    first, answer, head, *rows, summary = [line for line in terminal.lines() if line]
    assert first == "197 hosts: sw1, sw2, sw3, sw4, sw5, sw6, sw8, sw9 and 189 more"
    assert answer == "  up 3 days"
    assert head.split() == ["HOST", "STATUS", "TIME", "RESULT"]
    assert [row.split()[:3] for row in rows] == [
        [name, "exit", "255"] for name in ("sw7", "sw70", "sw177")
    ]
    assert rows[0].endswith("ssh: connect to host sw7 port 22: Connection refused")
    assert summary.endswith(": 197 ok, 3 failed (3 exit 255)")


def test_answers_of_functions_are_gathered_as_well(start: Start, folder: Path) -> None:
    write_hosts(folder, 10)
    terminal = Terminal(command("-q", "--limit", "1", "tasks:version"), start)
    assert terminal.end() == 0
    first, answer, other, _ = [line for line in terminal.lines() if line]
    assert first == "9 hosts: sw1, sw2, sw3, sw4, sw5, sw6, sw8, sw9 and 1 more"
    assert (answer, other) == ("  2.0", "sw7: 1.9")


def test_gathered_answers_can_be_had_in_a_file(ungil: Run) -> None:
    script = "echo same; echo careful >&2; test $0 != sw3"
    words = ["--limit", "1", "--gather", "--", "sh", "-c", script, "{}"]
    outcome = ungil("fanout", "--hosts", "hosts", *words)
    assert outcome.stdout == "3 hosts: sw1, sw2, sw3\n  same\n"
    remarks, remark, head, row, summary = outcome.stderr.splitlines()
    assert (remarks, remark) == ("stderr: 2 hosts: sw1, sw2", "  careful")
    assert head.split() == ["HOST", "STATUS", "TIME", "RESULT"]
    assert row.split()[:3] == ["sw3", "exit", "1"]
    assert row.split()[-1] == "careful"
    assert summary.endswith(": 2 ok, 1 failed (1 exit 1)")


def test_of_many_failures_beside_gathered_answers_only_the_ways_are_shown(
    ungil: Run, folder: Path
) -> None:
    write_hosts(folder, 30)
    script = "case $0 in *0) echo fine;; *) exit 4;; esac"
    words = ["--limit", "1", "--gather", "--", "sh", "-c", script, "{}"]
    outcome = ungil("fanout", "--hosts", "hosts", *words)
    assert outcome.stdout == "3 hosts: sw10, sw20, sw30\n  fine\n"
    head, way, _, hint = outcome.stderr.splitlines()
    assert head.split() == ["HOSTS", "FAILED", "BY", "FOR", "EXAMPLE"]
    assert way.split() == ["27", "exit", "4", "sw1"]
    assert hint == "--table --all shows every host, --json prints them as JSON"


def test_tagged_answers_cannot_change_the_terminal(start: Start, folder: Path) -> None:
    script = r"printf 'x\033[31mred\n'"
    terminal = Terminal(command("-q", "--tag", "--", "sh", "-c", script, "{}"), start)
    assert terminal.end() == 0
    assert "\x1b" not in terminal.seen
    assert r"sw1: x\x1b[31mred" in terminal.seen
    # A file gets them as they are.
    with (folder / "answers").open("wb") as file:
        start(args=command("--", "sh", "-c", script, "{}"), stdout=file).wait()
    assert b"sw1: x\x1b[31mred\n" in (folder / "answers").read_bytes()


# The name of a failure.


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (["tasks:fails"], {"sw1": "timeout", "sw2": "ConnectionRefusedError"}),
        (
            ["--", "sh", "-c", "case $0 in sw1) exit 255;; sw2) kill -9 $$;; esac", "{}"],
            {"sw1": "exit 255", "sw2": "killed by SIGKILL"},
        ),
        (
            ["--timeout", "0.1", "--", "sh", "-c", "exec sleep 1000", "{}"],
            {"sw1": "timeout", "sw2": "timeout", "sw3": "timeout"},
        ),
    ],
    ids=["function", "command", "timeout"],
)
def test_a_failure_has_the_same_name_everywhere(
    ungil: Run, folder: Path, words: list[str], names: dict[str, str]
) -> None:
    counts = {name: list(names.values()).count(name) for name in names.values()}
    counted = {f"{count} {name}" for name, count in counts.items()}
    run = ["fanout", "--hosts", "hosts", "--plain"]
    as_json = ungil(*run, "--json", "--journal", "done", *words)
    told = [json.loads(line) for line in as_json.stdout.splitlines()]
    assert {one["host"]: one["kind"] for one in told if not one["ok"]} == names
    # As the bar writes it, and at the end.
    *_, progress, summary = as_json.stderr.splitlines()
    assert named_in(progress) == named_in(summary) == counted
    journal = [json.loads(line) for line in (folder / "done").read_text().splitlines()[1:]]
    assert {one["key"]: one["kind"] for one in journal if not one["ok"]} == names
    table = ungil(*run, "--table", *words).stdout.splitlines()
    for host, name in names.items():
        [row] = [line for line in table if line.startswith(f"{host} ")]
        assert row.split(maxsplit=1)[1].startswith(f"{name} ")
    tagged = ungil(*run, *words).stderr.splitlines()
    for host, name in names.items():
        assert any(re.match(rf"{host}: {name}(:|$)", line) for line in tagged)


def named_in(line: str) -> set[str]:
    """How many have failed in which way, as a line says it."""
    found = re.search(r"failed \((.*?)\)", line)
    assert found is not None, line
    return set(found[1].split(", "))


def test_many_failures_of_a_way_are_named_as_each_of_them(ungil: Run, folder: Path) -> None:
    write_hosts(folder, 30)
    outcome = ungil("fanout", "--hosts", "hosts", "--table", "--", "sh", "-c", "exit 5", "{}")
    _, way, summary, _ = outcome.stdout.splitlines()
    assert way.split()[:3] == ["30", "exit", "5"]
    assert summary.endswith("0 ok, 30 failed (30 exit 5)")


def test_two_forms_of_the_same_are_refused(ungil: Run) -> None:
    for words, sentence in (
        (
            ["--tag", "--gather"],
            "--tag and --gather print the same outcomes in two ways; leave one out",
        ),
        (
            ["--json", "--table"],
            "--json and --table print the same outcomes in two ways; leave one out",
        ),
        (["--all", "--gather"], "--all needs the table, which --gather does not print"),
    ):
        outcome = ungil("fanout", "--hosts", "hosts", *words, "tasks:version")
        assert (outcome.returncode, outcome.stdout) == (2, "")
        assert outcome.stderr == f"ungil: {sentence}\n"
