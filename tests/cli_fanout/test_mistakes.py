"""`ungil fanout`: mistakes are one sentence, and help begins with what to type."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from cli_fanout.hosts import Run
from terminals import Start, Terminal

TASKS = "tasks_to_run.py"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "nothing to run; name module:function, or a command after --, for example: ungil fan"),
        (["--"], "no command after --"),
        (
            ["uptime"],
            "'uptime' is not a module:function; to run a command, put it after --, for example: "
            "ungil",
        ),
        (["ssh", "{host}"], "\"ssh '{host}'\" is not a module:function; to run a"),
        (["tasks:length", "--", "ls"], "'tasks:length' and a command after -- cannot both run"),
        (["--", "uptime"], "'uptime' would do the same for each host; write {host} where its name"),
        (["--", "no-such-program", "{}"], "there is no command 'no-such-program'"),
        (["--", "./broken.py", "{}"], "'./broken.py' is not executable; make it so with chmod +x"),
        (["--", "/tmp", "{}"], "'/tmp' is a folder, and no command"),
        (["--", "./missing", "{}"], "there is no command './missing'"),
        (
            ["--", "echo", "{port}"],
            "the hosts of hosts have no field 'port', only host; write {{port}} to get the braces",
        ),
        (["tasks:nothing"], "the module 'tasks' has no 'nothing'"),
        (["tasks:number"], "tasks:number cannot be called: it is an int"),
        (
            ["tasks:yields"],
            "tasks:yields has a yield, so calling it only makes a generator and run",
        ),
        (
            ["nowhere:f"],
            "there is no module 'nowhere', neither in this folder nor among the installed ones",
        ),
        (
            ["tasks.py:length"],
            "there is no module 'tasks.py', neither in this folder nor among the",
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
        (
            ["tasks:length", "--limit", "0"],
            "--limit '0' is neither auto nor a positive whole number",
        ),
        (["tasks:length", "--limit", "many"], "--limit 'many' is neither auto nor a positive"),
        (
            ["tasks:length", "--limit", "9" * 20],
            f"--limit {'9' * 20} is too large: the largest is {sys.maxsize}",
        ),
        (
            ["--limit", "9" * 20, "--", "echo", "{}"],
            f"--limit {'9' * 20} is too large: the largest is {sys.maxsize}",
        ),
        (
            ["tasks:length", "--retries", "4294967296"],
            "--retries 4294967296 is too large: the largest is 4294967295",
        ),
        (
            ["tasks:length", "--group-by", "host", "--per-group", "9" * 20],
            f"--per-group {'9' * 20} is too large: the largest is {sys.maxsize}",
        ),
        (["tasks:length", "--timeout", "0"], "--timeout 0 is not a number of seconds above 0"),
        (["tasks:length", "--timeout", "soon"], "Invalid value for '--timeout': 'soon' is not a"),
        (["tasks:length", "--retries", "-1"], "--retries -1 is below 0"),
        (["tasks:length", "--backoff", "-1"], "--backoff -1 is not a number of seconds, 0 or"),
        (
            ["tasks:length", "--rate", "fast"],
            "--rate 'fast' is not a rate such as 50, 50/s or 100/m",
        ),
        (
            ["tasks:length", "--rate", "1.2.3/s"],
            "--rate '1.2.3/s' is not a rate such as 50, 50/s or",
        ),
        (
            ["tasks:length", "--mode", "lean"],
            "tasks:length is not an async def and cannot run in --mode lean; use --mode asyncio if",
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
        (["tasks:length", "--outdir", "x"], "--outdir saves the output of commands, and a functi"),
        (
            ["tasks:length", "--json", "--tag"],
            "--json and --tag print the same outcomes in two ways;",
        ),
        (
            ["tasks:length", "--all", "--json"],
            "--all needs the table, which --json does not print",
        ),
        (
            ["tasks:length", "--hosts", "missing"],
            "cannot read the hosts 'missing': no such file or",
        ),
        (
            ["tasks:length", "--hosts", "a", "--hosts", "b c"],
            "--hosts a and --hosts 'b c' are two files, and one is read; pipe both in: cat a 'b c'",
        ),
        (["tasks:length", "--hosts", ""], "--hosts '' names no file; leave it out to read hosts"),
        (["tasks:length", "--hosts", "."], "cannot read the hosts '.': is a directory"),
        (
            ["tasks:length", "--hosts", "x.csv"],
            "the first line of x.csv names the fields name, ip,",
        ),
        (["tasks:length", "--hosts", "y.csv"], "y.csv is empty, but the first line of CSV names"),
        (["tasks:length", "--journal", "."], "cannot write the journal '.': is a directory"),
        (
            ["tasks:length", "--journal", "/dev/null"],
            "the journal '/dev/null' is not a regular file",
        ),
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
    hosts = [] if "--hosts" in words else ["--hosts", "hosts"]
    outcome = ungil("fanout", *hosts, *words)
    assert (outcome.returncode, outcome.stdout) == (2, "")
    assert outcome.stderr.startswith(f"ungil: {sentence}")
    assert outcome.stderr.count("\n") == 1


def test_a_terminal_is_not_read_for_hosts(start: Start) -> None:
    terminal = Terminal([sys.executable, "-m", "ungil", "fanout", "tasks:length"], start)
    assert terminal.end() == 2
    assert terminal.seen == "ungil: no hosts; name a file with --hosts, or pipe them in\r\n"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "no hosts; name a file with --hosts, or pipe them in"),
        (["--hosts", "-"], "there is no standard input to read hosts from"),
    ],
)
def test_a_closed_standard_input_has_no_hosts(
    folder: Path, environment: dict[str, str], words: list[str], sentence: str
) -> None:
    command = [sys.executable, "-m", "ungil", "fanout", *words, "tasks:length"]
    outcome = subprocess.run(
        ["sh", "-c", 'exec "$@" <&-', "sh", *command],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert (outcome.returncode, outcome.stderr) == (2, f"ungil: {sentence}\n")


def test_help_begins_with_examples(ungil: Run) -> None:
    outcome = ungil("fanout", "--help")
    assert outcome.returncode == 0
    assert outcome.stdout.startswith("  ungil fanout --hosts hosts.txt -- ssh {host} uptime")
