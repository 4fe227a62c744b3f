"""`ungil fanout`: a function or a command for every host of a file."""

from __future__ import annotations

import codecs
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from terminals import Start, Terminal

Run = Callable[..., subprocess.CompletedProcess[str]]

TASKS = """\
import time
from ungil.fanout import sleep

def length(host):
    return len(host)

async def hello(host):
    await sleep(0)
    return f"hello {host}"

class Switch:
    @staticmethod
    def name(host):
        return host

def fields(host):
    return sorted(host.items())

def odd_fails(host):
    number = int(host[2:])
    if number % 4 == 1:
        raise ConnectionRefusedError(111, "Connection refused")
    if number % 4 == 3:
        raise ValueError(f"bad answer from {host}")

def hangs(host):
    time.sleep(1000)

async def waits(host):
    await sleep(1000)

tries = {}
def third_time(host):
    tries[host] = tries.get(host, 0) + 1
    if tries[host] < 3:
        raise ConnectionResetError("again")
    return tries[host]

def odd_value(host):
    return {"host": host, "what": object}

def lines(host):
    return f"first of {host}\\nsecond\\x1b[31m"

number = 7
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tasks.py").write_text(TASKS)
    hosts(tmp_path, 3)
    return tmp_path


def hosts(folder: Path, count: int) -> None:
    (folder / "hosts").write_text("".join(f"sw{n}\n" for n in range(1, count + 1)))


def words_of(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


def jsons(text: str) -> list[dict[str, Any]]:
    return sorted((json.loads(line) for line in text.splitlines()), key=lambda it: it["host"])


# What runs.


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


# Time-outs and retries.


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


# The table.


def test_of_many_hosts_only_those_that_failed_are_shown(ungil: Run, folder: Path) -> None:
    hosts(folder, 30)
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
    hosts(folder, 10_000)
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
    assert hint == "every host is shown by --all, or as JSON by --json"


def test_equal_outputs_of_commands_are_shown_once_with_their_hosts(
    ungil: Run, folder: Path
) -> None:
    hosts(folder, 30)
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


def test_hosts_of_a_group_do_not_all_run_at_once(ungil: Run, folder: Path) -> None:
    (folder / "sites.csv").write_text("host,site\n" + "".join(f"sw{n},{n % 2}\n" for n in range(8)))
    # Fails if another one of the same site runs.
    script = "mkdir at_$0 && sleep 0.01 && rmdir at_$0"
    words = ["--hosts", "sites.csv", "--group-by", "site", "--per-group", "1"]
    outcome = ungil("fanout", *words, "--", "sh", "-c", script, "{site}", "{host}")
    assert outcome.returncode == 0, outcome.stdout


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


# JSON and tags.


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
    hosts(folder, 20_000)
    everything = ["--all"] if form == "--table" else []
    process = start("fanout", "--hosts", "hosts", form, *everything, "tasks:hello")
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.stderr is not None
    assert (process.stderr.read(), process.wait()) == ("", 1)


# Progress.


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


# The hosts.


def test_a_file_may_have_comments_blank_lines_crlf_and_a_mark(ungil: Run, folder: Path) -> None:
    text = "# all of them\r\n\r\nsw1\r\n  sw2  # the second\r\n\t\r\nsw3"
    (folder / "hosts").write_bytes(codecs.BOM_UTF8 + text.encode())
    outcome = ungil("fanout", "--hosts", "hosts", "--json", "tasks:length")
    assert [told["host"] for told in jsons(outcome.stdout)] == ["sw1", "sw2", "sw3"]
    assert outcome.returncode == 0


def test_lines_that_are_no_hosts_fail_and_the_others_run(ungil: Run, folder: Path) -> None:
    bad = [b"two words", b"-oProxyCommand=x", b"caf\xe9", b"nul\0", b"x" * 70_000, b"sw1"]
    (folder / "hosts").write_bytes(b"sw1\n" + b"\n".join(bad) + b"\nsw2\n")
    outcome = ungil("fanout", "--hosts", "hosts", "--retries", "3", "--json", "tasks:length")
    assert outcome.returncode == 1
    told = jsons(outcome.stdout)
    assert {one["host"]: one.get("error") for one in told} == {
        "sw1": None,
        "sw2": None,
        "hosts, line 2": "2 words where one host is expected; "
        "with more fields than one, use CSV or JSON lines",
        "hosts, line 3": "'-oProxyCommand=x' begins with a dash",
        "hosts, line 4": "not UTF-8 (byte 0xe9 at 4)",
        "hosts, line 5": r"'nul\x00' has characters that cannot be printed",
        "hosts, line 6": "longer than 65,536 bytes",
    }
    assert all(one["attempts"] == 1 and one["kind"] == "bad line" for one in told if not one["ok"])
    assert "ungil: hosts: 1 repeated host left out, first line 7: sw1\n" in outcome.stderr
    assert "2 ok, 5 failed (5 bad line)" in outcome.stderr


def test_csv_names_its_fields(ungil: Run, folder: Path) -> None:
    rows = 'name,host\nCore, sw1\n"two\nlines",sw2\nx\n\n"open,sw3\n'
    (folder / "hosts.csv").write_text(rows)
    outcome = ungil("fanout", "--hosts", "hosts.csv", "--json", "--", "echo", "{name} {host}")
    told = {one["host"]: one for one in jsons(outcome.stdout)}
    assert told["sw1"]["value"]["stdout"] == "Core sw1\n"
    assert told["sw2"]["value"]["stdout"] == "two\nlines sw2\n"
    assert told["sw2"]["item"] == {"name": "two\nlines", "host": "sw2"}
    assert told["hosts.csv, line 5"]["error"] == "1 fields, and the first line names 2"
    assert told["hosts.csv, line 7"]["error"].startswith("no CSV (")
    outcome = ungil("fanout", "--hosts", "hosts.csv", "--json", "tasks:fields")
    assert {one["host"]: one for one in jsons(outcome.stdout)}["sw1"]["value"] == [
        ["host", "sw1"],
        ["name", "Core"],
    ]


def test_json_lines_have_a_host_each(ungil: Run) -> None:
    text = '{"host": "sw1", "port": 22, "up": true}\n"sw2"\n[1]\n{"host": 3}\n{"host":\n'
    outcome = ungil("fanout", "--json", "--", "echo", "{host} {port}", input=text)
    told = {one["host"]: one for one in jsons(outcome.stdout)}
    assert told["sw1"]["value"]["stdout"] == "sw1 22\n"
    assert told["sw1"]["item"] == {"host": "sw1", "port": 22, "up": True}
    assert told["sw2"]["error"] == "KeyError: 'port'"
    neither = 'neither a string nor an object with the field "host"'
    for line in (3, 4):
        assert told[f"the standard input, line {line}"]["error"] == neither
    assert told["the standard input, line 5"]["error"].startswith("no JSON (")


def test_the_same_host_with_other_fields_is_another(ungil: Run, folder: Path) -> None:
    (folder / "hosts.csv").write_text("host,port\nsw1,22\nsw1,23\nsw1,22\n")
    outcome = ungil("fanout", "--hosts", "hosts.csv", "--json", "--", "echo", "{port}")
    ports = [one["value"]["stdout"] for one in jsons(outcome.stdout)]
    assert sorted(ports) == ["22\n", "23\n"]
    assert "1 repeated host left out, first line 4: sw1" in outcome.stderr


def test_hosts_are_read_as_they_are_needed(start: Start) -> None:
    process = start("fanout", "--json", "--limit", "1", "--", "echo", "{}", stdin=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    for name in ("sw1", "sw2", "sw3"):
        process.stdin.write(f"{name}\n")
        process.stdin.flush()
    process.stdin.close()
    assert [json.loads(line)["host"] for line in process.stdout] == ["sw1", "sw2", "sw3"]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
def test_a_file_in_another_encoding_is_told_which(ungil: Run, folder: Path, encoding: str) -> None:
    (folder / "hosts").write_text("sw1\nsw2\n", encoding=encoding)
    outcome = ungil("fanout", "--hosts", "hosts", "tasks:length")
    name = encoding.upper()
    assert (outcome.returncode, outcome.stdout, outcome.stderr) == (
        2,
        "",
        f"ungil: hosts is {name}, and hosts are UTF-8: convert it with iconv -f {name} -t UTF-8\n",
    )


def test_an_empty_file_is_told_and_no_failure(ungil: Run, folder: Path) -> None:
    (folder / "hosts").write_text("# nothing\n")
    outcome = ungil("fanout", "--hosts", "hosts", "tasks:length")
    assert (outcome.returncode, outcome.stdout) == (0, "")
    assert outcome.stderr == "ungil: hosts has no hosts\n"
    outcome = ungil("fanout", "tasks:length")
    assert (outcome.returncode, outcome.stderr) == (2, "ungil: the standard input has no hosts\n")


# Journals.


def test_with_a_journal_only_what_is_not_done_runs(ungil: Run, folder: Path) -> None:
    words = ["fanout", "--hosts", "hosts", "--table", "--journal", "done", "--", "sh", "-c"]
    script = "echo $0 >> ran; test $0 != sw2 -o -e fixed"
    assert ungil(*words, script, "{}").returncode == 1
    (folder / "fixed").touch()
    hosts(folder, 4)
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
    before = (folder / "hosts").read_bytes()
    outcome = ungil("fanout", "--hosts", "hosts", "--journal", "hosts", "tasks:length")
    assert (outcome.returncode, outcome.stderr) == (
        2,
        "ungil: 'hosts' is no journal of a fan-out; name another file\n",
    )
    assert (folder / "hosts").read_bytes() == before


# Mistakes.


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "nothing to run; name module:function, or a command after --, for example: ungil fan"),
        (["--"], "no command after --"),
        (
            ["uptime"],
            "'uptime' is no module:function; a command comes after --, for example: ungil",
        ),
        (["ssh", "{host}"], "\"ssh '{host}'\" is no module:function; a command comes after --"),
        (["tasks:length", "--", "ls"], "'tasks:length' and a command after -- cannot both run"),
        (["--", "uptime"], "'uptime' would do the same for each host; write {host} where its name"),
        (["--", "no-such-program", "{}"], "there is no command 'no-such-program'"),
        (
            ["--", "echo", "{port}"],
            "the hosts of hosts have no field 'port', only host; write {{port}} if the braces",
        ),
        (["tasks:nothing"], "the module 'tasks' has no 'nothing'"),
        (["tasks:number"], "tasks:number cannot be called: it is an int"),
        (["nowhere:f"], "there is no module 'nowhere', neither here nor among the installed ones"),
        (
            ["tasks.py:length"],
            "there is no module 'tasks.py', neither here nor among the installed",
        ),
        (["broken:f"], "cannot import 'broken': SyntaxError: "),
        (
            ["failing:f"],
            "cannot import 'failing': ZeroDivisionError: division by zero (failing.py,",
        ),
        (["leaving:f"], "cannot import 'leaving': SystemExit: 3 (leaving.py, line 1)"),
        (
            ["needing:f"],
            "cannot import 'needing': ModuleNotFoundError: No module named 'not_there'",
        ),
        (["tasks:length", "--limit", "0"], "--limit '0' is neither auto nor a number from 1 up"),
        (["tasks:length", "--limit", "many"], "--limit 'many' is neither auto nor a number from"),
        (["tasks:length", "--timeout", "0"], "--timeout 0 is not a number of seconds above 0"),
        (["tasks:length", "--timeout", "soon"], "Invalid value for '--timeout': 'soon' is not a"),
        (["tasks:length", "--retries", "-1"], "--retries -1 is below 0"),
        (["tasks:length", "--backoff", "-1"], "--backoff -1 is not a number of seconds from"),
        (["tasks:length", "--rate", "fast"], "--rate 'fast' is no rate such as 50, 50/s or 100/m"),
        (["tasks:length", "--rate", "1.2.3/s"], "--rate '1.2.3/s' is no rate such as 50, 50/s or"),
        (
            ["tasks:length", "--mode", "asyncio"],
            "tasks:length is no async def and cannot run in --mode asyncio;",
        ),
        (["tasks:hello", "--mode", "threads"], "tasks:hello is an async def and cannot run in --m"),
        (
            ["tasks:length", "--per-group", "2"],
            "--per-group needs --group-by, the field that tells",
        ),
        (
            ["tasks:length", "--group-by", "site"],
            "the hosts of hosts have no field 'site' to group",
        ),
        (["tasks:length", "--outdir", "x"], "--outdir is for the output of commands, and a functi"),
        (["tasks:length", "--json", "--tag"], "--json and --tag are two ways to print the same;"),
        (
            ["tasks:length", "--all", "--json"],
            "--all is for the table, which --json does not print",
        ),
        (
            ["tasks:length", "--hosts", "missing"],
            "cannot read the hosts 'missing': no such file or",
        ),
        (["tasks:length", "--hosts", "."], "cannot read the hosts '.': is a directory"),
        (
            ["tasks:length", "--hosts", "x.csv"],
            "the first line of x.csv names the fields name, ip,",
        ),
        (["tasks:length", "--hosts", "y.csv"], "y.csv is empty, where CSV has the names of its f"),
        (["tasks:length", "--journal", "."], "cannot write the journal '.': is a directory"),
        (["tasks:length", "--journal", "/dev/null"], "the journal '/dev/null' is no regular file"),
    ],
    ids=lambda it: " ".join(it) if isinstance(it, list) else "",  # pyright: ignore[reportUnknownArgumentType, reportUnknownLambdaType]
)
def test_mistakes_are_told_in_one_sentence(
    ungil: Run, folder: Path, words: list[str], sentence: str
) -> None:
    (folder / "broken.py").write_text("def f(:\n")
    (folder / "failing.py").write_text("\n1 / 0\n")
    (folder / "leaving.py").write_text("raise SystemExit(3)\n")
    (folder / "needing.py").write_text("import not_there\n")
    (folder / "x.csv").write_text("name,ip\n")
    (folder / "y.csv").write_text("")
    outcome = ungil("fanout", "--hosts", "hosts", *words)
    assert (outcome.returncode, outcome.stdout) == (2, "")
    assert outcome.stderr.startswith(f"ungil: {sentence}")
    assert outcome.stderr.count("\n") == 1


def test_a_terminal_is_not_read_for_hosts(start: Start) -> None:
    terminal = Terminal([sys.executable, "-m", "ungil", "fanout", "tasks:length"], start)
    assert terminal.end() == 2
    assert terminal.seen == "ungil: no hosts; name a file with --hosts, or pipe them in\r\n"


def test_more_commands_than_files_may_be_open_are_not_started(ungil: Run, folder: Path) -> None:
    hosts(folder, 60)
    words = ["fanout", "--hosts", "hosts", "--limit", "50", "--", "echo", "{}"]
    few = ["sh", "-c", 'ulimit -n 128; exec "$@"', "sh", sys.executable, "-m", "ungil", *words]
    outcome = subprocess.run(few, cwd=folder, capture_output=True, text=True)
    assert outcome.returncode == 0
    first, summary = outcome.stderr.splitlines()
    assert first == "ungil: 16 commands at once is what 128 open files allow (ulimit -Hn)"
    assert summary.endswith(": 60 ok")


def test_help_begins_with_examples(ungil: Run) -> None:
    outcome = ungil("fanout", "--help")
    assert outcome.returncode == 0
    assert outcome.stdout.startswith("  ungil fanout --hosts hosts.txt -- ssh {host} uptime")
