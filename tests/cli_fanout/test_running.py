"""`ungil fanout`: what runs, for how long, how often, and what is not done again."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from cli_fanout.hosts import Run, jsons, words_of, write_hosts

TASKS = "tasks_to_run.py"


@pytest.mark.parametrize(
    ("words", "mode", "value"),
    [
        (["tasks:length"], "threads", "3"),
        (["tasks:hello"], "lean", "hello sw1"),
        (["tasks:hello", "--mode", "asyncio"], "asyncio", "hello sw1"),
        (["tasks:length", "--mode", "green"], "green", "3"),
        (["tasks:Switch.name"], "threads", "sw1"),
    ],
)
def test_a_function_is_called_for_every_host(
    ungil: Run, words: list[str], mode: str, value: str
) -> None:
    outcome = ungil("fanout", "--hosts", "hosts", "--table", *words)
    assert (outcome.returncode, outcome.stderr) == (0, "")
    head, first, *_, summary = outcome.stdout.splitlines()
    assert head.split() == ["HOST", "STATUS", "TIME", "RESULT"]
    assert first.split(maxsplit=4)[:3:2] == ["sw1", first.split()[2]]
    assert first.rstrip().endswith(f" {value}")
    assert summary.startswith("3 hosts in ")
    assert f", {mode}" in summary
    assert summary.endswith(": 3 ok")


def test_a_command_runs_for_every_host_without_a_shell(ungil: Run, folder: Path) -> None:
    (folder / "hosts").write_text("$(touch_x)\n;ls\n'q\n")
    script = "import sys; print(sys.argv[1:])"
    command = [sys.executable, "-c", script, "{host}:{}", "{{host}}", "a b", "{print $1}", "${x}y"]
    (folder / "hosts.csv").write_text("host,x\n$(touch_x),1\n;ls,2\n'q,3\n")
    outcome = ungil("fanout", "--hosts", "hosts.csv", "--json", "--", *command)
    assert outcome.returncode == 0
    for told, number in zip(jsons(outcome.stdout), (1, 3, 2), strict=True):
        host = told["host"]
        expected = [f"{host}:{host}", "{host}", "a b", "{print $1}", f"${number}y"]
        assert told["value"] == {"exit": 0, "stdout": f"{expected}\n", "stderr": ""}


def test_a_command_that_fails_says_how(ungil: Run) -> None:
    script = (
        "case $0 in sw1) echo out; echo why >&2; exit 3;; sw2) kill -TERM $$;; "
        "sw3) echo a; echo b;; esac"
    )
    command = ["--", "sh", "-c", script, "{}"]
    outcome = ungil("fanout", "--hosts", "hosts", "--table", *command)
    assert outcome.returncode == 1
    *output, _, first, second, summary = outcome.stdout.splitlines()
    assert output == ["1 host: sw3", "  a", "  b"]
    assert first.split()[:3] == ["sw1", "exit", "3"]
    assert first.rstrip().endswith(" s  why")
    assert second.split()[:4] == ["sw2", "killed", "by", "SIGTERM"]
    assert summary.endswith("1 ok, 2 failed (1 exit 3, 1 killed by SIGTERM)")
    told = jsons(ungil("fanout", "--hosts", "hosts", "--json", *command).stdout)
    assert told[0]["exit"] == 3
    assert (told[0]["stdout"], told[0]["stderr"]) == ("out\n", "why\n")
    assert (told[1]["exit"], told[1]["kind"]) == (-15, "killed by SIGTERM")


def test_a_command_reads_nothing_and_has_no_terminal(ungil: Run) -> None:
    outcome = ungil("fanout", "--json", "--", "sh", "-c", "cat; tty; echo {}", input="sw1\n")
    [told] = jsons(outcome.stdout)
    assert told["value"]["stdout"] == "not a tty\nsw1\n"


def test_of_a_long_output_the_begin_and_the_end_are_kept(ungil: Run) -> None:
    script = "print('begin'); print('x' * 10_000_000); print('end')"
    outcome = ungil(
        "fanout", "--json", "--", sys.executable, "-c", f"{script} # {{}}", input="sw1\n"
    )
    text = jsons(outcome.stdout)[0]["value"]["stdout"]
    assert text.startswith("begin\nxxx")
    assert text.endswith("xxx\nend\n")
    assert "\n[... 9,934,475 bytes left out ...]\n" in text


def test_a_process_that_a_command_leaves_behind_does_not_keep_it(ungil: Run) -> None:
    command = ["sh", "-c", "sleep 1000 & echo $! {}"]
    [told] = jsons(ungil("fanout", "--json", "--", *command, input="sw1\n").stdout)
    pid, name = told["value"]["stdout"].split()
    assert name == "sw1"
    os.kill(int(pid), 9)  # it was left alone


def test_a_command_that_takes_too_long_is_killed_with_all_it_started(
    ungil: Run, folder: Path
) -> None:
    script = 'trap "" TERM; sleep 1000 & echo $! > pid-$0; wait; wait'
    words = ["--table", "--timeout", "0.5", "--", "sh", "-c", script, "{}"]
    outcome = ungil("fanout", "--hosts", "hosts", *words)
    assert outcome.returncode == 1
    for row in words_of(outcome.stdout)[1:4]:
        assert row[1] == "timeout"
        assert row[4:] == ["not", "done", "within", "0.5", "s"]
    assert outcome.stdout.rstrip().endswith("0 ok, 3 failed (3 timeout)")
    for path in folder.glob("pid-*"):
        assert has_ended(int(path.read_text()))


def has_ended(pid: int) -> bool:
    """Whether a process is no more, or dead and not yet reaped by whoever inherited it."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return True
    return state in "ZX"


def test_threads_that_take_too_long_are_said_to_go_on(ungil: Run) -> None:
    outcome = ungil("fanout", "--hosts", "hosts", "--table", "--timeout", "0.2", "tasks:hangs")
    assert outcome.returncode == 1
    for row in words_of(outcome.stdout)[1:4]:
        assert row[1] == "timeout"
    assert "not done within 0.2 s; its thread goes on" in outcome.stdout
    assert outcome.stdout.rstrip().endswith("3 failed (3 timeout), 3 threads abandoned")


def test_what_fails_is_tried_again(ungil: Run) -> None:
    words = ["--table", "--retries", "2", "--backoff", "0.01", "tasks:third_time"]
    outcome = ungil("fanout", "--hosts", "hosts", *words)
    assert outcome.returncode == 0
    assert words_of(outcome.stdout)[0] == ["HOST", "STATUS", "TIME", "TRIES", "RESULT"]
    assert outcome.stdout.splitlines()[1].split()[-2:] == ["3", "3"]
    assert outcome.stdout.rstrip().endswith("3 ok, 3 tried more than once")
    assert ungil("fanout", "--hosts", "hosts", "tasks:third_time").returncode == 1


def test_hosts_of_a_group_do_not_all_run_at_once(ungil: Run, folder: Path) -> None:
    (folder / "sites.csv").write_text("host,site\n" + "".join(f"sw{n},{n % 2}\n" for n in range(8)))
    # Fails if another one of the same site runs.
    script = "mkdir at_$0 && sleep 0.01 && rmdir at_$0"
    words = ["--hosts", "sites.csv", "--group-by", "site", "--per-group", "1"]
    outcome = ungil("fanout", *words, "--", "sh", "-c", script, "{site}", "{host}")
    assert outcome.returncode == 0, outcome.stdout


@pytest.mark.parametrize("limit", [["--limit", "50"], ["--limit", "auto"], []], ids=str)
def test_more_commands_than_files_may_be_open_are_not_started(
    ungil: Run, folder: Path, limit: list[str]
) -> None:
    write_hosts(folder, 60)
    words = ["fanout", "--hosts", "hosts", *limit, "--", "echo", "{}"]
    few = ["sh", "-c", 'ulimit -n 128; exec "$@"', "sh", sys.executable, "-m", "ungil", *words]
    outcome = subprocess.run(few, cwd=folder, capture_output=True, text=True)
    assert outcome.returncode == 0
    first, summary = outcome.stderr.splitlines()
    assert first == "ungil: 16 commands at once is the most that 128 open files allow (ulimit -Hn)"
    assert summary.endswith(": 60 ok")


def test_with_a_journal_only_what_is_not_done_runs(ungil: Run, folder: Path) -> None:
    words = ["fanout", "--hosts", "hosts", "--table", "--journal", "done", "--", "sh", "-c"]
    script = "echo $0 >> ran; test $0 != sw2 -o -e fixed"
    assert ungil(*words, script, "{}").returncode == 1
    (folder / "fixed").touch()
    write_hosts(folder, 4)
    outcome = ungil(*words, script, "{}")
    assert outcome.returncode == 0
    assert sorted((folder / "ran").read_text().split()) == ["sw1", "sw2", "sw2", "sw3", "sw4"]
    assert [row[:3] for row in words_of(outcome.stdout)[1:5]] == [
        ["sw1", "done", "before"],
        ["sw2", "ok", words_of(outcome.stdout)[2][2]],
        ["sw3", "done", "before"],
        ["sw4", "ok", words_of(outcome.stdout)[4][2]],
    ]
    assert outcome.stdout.rstrip().endswith("4 ok (2 of them before)")
    outcome = ungil(*words, "echo $0", "{}")
    assert outcome.returncode == 2
    assert outcome.stderr.startswith("ungil: the journal 'done' was written with function sh -c")
    assert outcome.stderr.count("\n") == 1


def test_a_file_that_is_no_journal_stays_as_it_is(ungil: Run, folder: Path) -> None:
    for name, why in (
        ("tasks.py", "'tasks.py' is not a journal of a fan-out"),
        ("hosts", "cannot write 'hosts': that is the file with the hosts"),
    ):
        before = (folder / name).read_bytes()
        outcome = ungil("fanout", "--hosts", "hosts", "--journal", name, "tasks:length")
        assert (outcome.returncode, outcome.stderr) == (2, f"ungil: {why}; name another file\n")
        assert (folder / name).read_bytes() == before


def test_an_answer_that_came_before_the_time_was_over_is_kept(ungil: Run, folder: Path) -> None:
    script = "echo partial $0; echo why >&2; exec sleep 1000"
    command = ["--timeout", "2", "--", "sh", "-c", script, "{}"]
    for engine in ([], ["--engine", "processes:1"]):
        words = ["fanout", "--hosts", "hosts", *engine]
        outcome = ungil(*words, "--json", "--outdir", "kept", *command)
        assert outcome.returncode == 1
        told = jsons(outcome.stdout)
        assert {(it["kind"], it["error"]) for it in told} == {("timeout", "not done within 2.0 s")}
        assert [it["stdout"] for it in told] == [f"partial sw{n}\n" for n in (1, 2, 3)]
        assert {it["stderr"] for it in told} == {"why\n"}
        assert "exit" not in told[0]
    assert (folder / "kept" / "sw1.out").read_text() == "partial sw1\n"
    assert (folder / "kept" / "sw1.err").read_text() == "why\n"
    outcome = ungil("fanout", "--hosts", "hosts", "--tag", *command)
    assert sorted(outcome.stdout.splitlines()) == [f"sw{n}: partial sw{n}" for n in (1, 2, 3)]


def test_one_host_is_not_followed_by_a_wait_for_the_rate(ungil: Run) -> None:
    outcome = ungil("fanout", "--rate", "1/h", "tasks:length", input="sw1\n")
    assert (outcome.returncode, outcome.stdout) == (0, "sw1: 3\n")
