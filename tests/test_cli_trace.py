"""`ungil trace`: the program cannot tell that it is traced, and nothing is overwritten."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from terminals import Terminal

from ungil.cli.trace.command import command as trace

Run = Callable[..., subprocess.CompletedProcess[str]]
Start = Callable[..., subprocess.Popen[str]]

PRINT_ARGUMENTS = "import sys; print(sys.argv[1:])"


def traces(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


# How the program ends.


@pytest.mark.parametrize("status", [0, 1, 2, 7, 255])
def test_the_exit_status_is_passed_on(ungil: Run, status: int) -> None:
    assert ungil("trace", "-c", f"raise SystemExit({status})").returncode == status


@pytest.mark.parametrize("name", ["SIGTERM", "SIGKILL", "SIGSEGV", "SIGUSR1", "SIGPIPE"])
def test_a_death_by_signal_is_a_death_by_the_same_signal(
    ungil: Run, tmp_path: Path, name: str
) -> None:
    die = f"import os, signal as s; s.signal(s.{name}, s.SIG_DFL); os.kill(os.getpid(), s.{name})"
    if name == "SIGKILL":
        die = "import os; os.kill(os.getpid(), 9)"
    outcome = ungil("trace", "-c", die)
    assert outcome.returncode == -signal.Signals[name]
    assert "lost events: 0" in outcome.stderr
    assert traces(tmp_path) == ["ungil-command.pftrace"]


def test_a_program_that_fails_still_has_a_trace_and_a_report(ungil: Run, tmp_path: Path) -> None:
    outcome = ungil("trace", "-c", "raise ValueError('ouch')")
    assert outcome.returncode == 1
    assert "ValueError: ouch" in outcome.stderr
    assert "lost events: 0" in outcome.stderr
    assert (tmp_path / "ungil-command.pftrace").stat().st_size > 0


# What the program sees.


def test_standard_streams_are_the_programs_own(ungil: Run) -> None:
    program = "import sys; d = sys.stdin.read(); sys.stdout.write(d[::-1]); sys.stderr.write('E')"
    outcome = ungil("trace", "--quiet", "-c", program, input="abc")
    assert (outcome.stdout, outcome.stderr) == ("cba", "E")


def test_the_report_goes_to_stderr_alone(ungil: Run) -> None:
    outcome = ungil("trace", "-c", "pass")
    assert outcome.stdout == ""
    assert "ungil report ungil-command.pftrace" in outcome.stderr
    assert "\x1b" not in outcome.stderr


def test_the_working_directory_and_the_script_path_are_unchanged(
    ungil: Run, tmp_path: Path
) -> None:
    script = tmp_path / "where.py"
    script.write_text("import os, sys; print(os.getcwd(), sys.argv)")
    assert ungil("trace", "where.py", "x").stdout == f"{tmp_path} ['where.py', 'x']\n"


def test_descriptors_that_the_shell_opened_are_inherited(ungil: Run) -> None:
    reader, writer = os.pipe()
    try:
        ungil("trace", "-c", f"import os; os.write({writer}, b'x')", pass_fds=(writer,))
        os.close(writer)
        assert os.read(reader, 10) == b"x"
    finally:
        os.close(reader)


def test_bytes_that_are_no_text_pass_in_environment_and_arguments(
    ungil: Run, environment: dict[str, str]
) -> None:
    program = "import os, sys; print(ascii(sys.argv[1]), ascii(os.environ['ODD']))"
    outcome = ungil("trace", "-c", program, "\udcff", env=environment | {"ODD": "\udcfe"})
    assert outcome.stdout == r"'\udcff' '\udcfe'" + "\n"


def test_the_program_starts_with_default_signals_and_an_empty_mask(ungil: Run) -> None:
    program = (
        "import signal as s\n"
        "names = 'SIGQUIT SIGTERM SIGHUP SIGUSR1 SIGUSR2 SIGTSTP'.split()\n"
        "print({s.getsignal(s.Signals[n]) for n in names} == {s.SIG_DFL},\n"
        "      s.getsignal(s.SIGINT) is s.default_int_handler, s.pthread_sigmask(s.SIG_BLOCK, []))"
    )
    assert ungil("trace", "-c", program).stdout == "True True set()\n"


@pytest.mark.parametrize("name", ["INT", "QUIT", "HUP", "TERM"])
def test_a_signal_that_was_ignored_stays_ignored(start: Start, name: str) -> None:
    program = f"import signal as s; print(s.getsignal(s.SIG{name}) is s.SIG_IGN)"
    shell = f'trap "" {name}; exec "$@"'
    command = ["sh", "-c", shell, "sh", sys.executable, "-m", "ungil", "trace", "-c", program]
    assert start(args=command).communicate()[0] == "True\n"


# Signals while it runs.

# Many short sleeps: a long one might begin just after the signal.
CATCHES_CTRL_C = """\
import time
try:
    print("ready", flush=True)
    while True:
        time.sleep(0.01)
except KeyboardInterrupt:
    print("interrupted", flush=True)
    raise SystemExit(3)
"""


def test_ctrl_c_is_the_programs_to_handle(start: Start, tmp_path: Path) -> None:
    process = start("trace", "-c", CATCHES_CTRL_C)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate()
    assert (out, process.returncode) == ("interrupted\n", 3)
    assert "lost events: 0" in err
    assert traces(tmp_path) == ["ungil-command.pftrace"]


def test_a_program_killed_by_ctrl_c_leaves_its_trace(start: Start, tmp_path: Path) -> None:
    program = "import time\nprint('ready', flush=True)\nwhile True: time.sleep(0.01)"
    process = start("trace", "-c", program)
    assert process.stdout is not None
    process.stdout.readline()
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate()
    assert process.returncode == -signal.SIGINT
    assert "KeyboardInterrupt" in err
    assert "lost events: 0" in err
    assert traces(tmp_path) == ["ungil-command.pftrace"]


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2"])
def test_a_signal_to_ungil_reaches_the_program(start: Start, name: str) -> None:
    program = (
        "import signal as s, sys, time\n"
        f"s.signal(s.{name}, lambda n, _: sys.exit(print('got', n)))\n"
        "print('ready', flush=True)\n"
        "while True: time.sleep(0.01)\n"
    )
    process = start("trace", "-c", program)
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.Signals[name])
    assert process.communicate()[0] == f"got {int(signal.Signals[name])}\n"
    assert process.returncode == 0


def test_ctrl_z_stops_the_job_and_fg_continues_it(start: Start) -> None:
    program = "print('ready', flush=True); print('line', input(), flush=True)"
    shell = '"$@"; echo stopped with $?; fg >/dev/null; echo ended with $?'
    traced = [sys.executable, "-m", "ungil", "trace", "-q", "-c", program]
    terminal = Terminal(["bash", "-m", "-c", shell, "bash", *traced], start)
    terminal.read_until("ready")
    terminal.type(b"\x1a")
    terminal.read_until(f"stopped with {128 + signal.SIGTSTP}")
    terminal.type(b"hello\n")
    assert "line hello" in terminal.read_until("ended with 0")
    assert terminal.end() == 0


def test_a_terminal_gets_colour_unless_no_color_is_set(
    start: Start, environment: dict[str, str]
) -> None:
    command = [sys.executable, "-m", "ungil", "trace", "-c", "pass"]
    for extra, coloured in (({}, True), ({"NO_COLOR": "1"}, False)):
        variables = environment | {"TERM": "xterm-256color"} | extra
        setting = [f"{name}={value}" for name, value in variables.items() if name != "_"]
        terminal = Terminal(["env", "-i", *setting, *command], start)
        assert terminal.end() == 0
        colours = re.findall(r"\x1b\[[\d;]*3\dm", terminal.seen)
        assert bool(colours) is coloured


# What PROGRAM means.


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["-m", "mod", "-o", "x"], ["--", "-m", "mod", "-o", "x"]),
        (["-mmod"], ["--", "-mmod"]),
        (["-o", "f", "-c", "code"], ["-o", "f", "--", "-c", "code"]),
        (["-o", "-m", "-m", "mod"], ["-o", "-m", "--", "-m", "mod"]),
        (["--json", "f", "--quiet", "-m", "mod"], ["--json", "f", "--quiet", "--", "-m", "mod"]),
        (["--json=f", "-c", "x"], ["--json=f", "--", "-c", "x"]),
        (["-of", "-c", "x"], ["-of", "--", "-c", "x"]),
        (["-fo", "f", "-c", "x"], ["-fo", "f", "--", "-c", "x"]),
        (["--", "-m", "mod"], ["--", "-m", "mod"]),
        (["app.py", "-m", "x"], ["app.py", "-m", "x"]),
        (["-q", "cmd", "-c", "x"], ["-q", "cmd", "-c", "x"]),
        ([], []),
    ],
)
def test_options_end_where_the_program_begins(words: list[str], expected: list[str]) -> None:
    assert trace.separated(words) == expected


@pytest.mark.parametrize(
    "before", [["-c", PRINT_ARGUMENTS], [f"-c{PRINT_ARGUMENTS}"], ["--", "-c", PRINT_ARGUMENTS]]
)
def test_what_follows_the_program_belongs_to_it(ungil: Run, before: list[str]) -> None:
    arguments = ["--help", "-o", "x", "--", "-m", "--quiet"]
    assert ungil("trace", *before, *arguments).stdout == f"{arguments}\n"


def test_what_follows_a_script_or_a_command_belongs_to_it(ungil: Run, tmp_path: Path) -> None:
    arguments = ["--port", "8000", "-w", "4", "-o", "x", "--help", "--", "-m"]
    (tmp_path / "app.py").write_text(PRINT_ARGUMENTS)
    assert ungil("trace", "app.py", *arguments).stdout == f"{arguments}\n"
    assert ungil("trace", "-fo", "t.pftrace", "app.py", *arguments).stdout == f"{arguments}\n"
    assert ungil("trace", "--quiet", "sh", "-c", "exit 3").returncode == 3


def test_a_program_is_a_script_module_folder_zip_or_command(ungil: Run, tmp_path: Path) -> None:
    hello = "print('hello')"
    (tmp_path / "script.py").write_text(hello)
    (tmp_path / "plain").write_text(f"#!/usr/bin/env python\n{hello}")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "__main__.py").write_text(hello)
    command = tmp_path / "command.sh"
    command.write_text("#!/bin/sh\necho hello\n")
    command.chmod(0o755)
    zipped = ["zipapp", "folder", "--output", "zipped"]
    subprocess.run([sys.executable, "-m", *zipped], cwd=tmp_path, check=True)
    for name in ("script.py", "plain", "folder", "zipped", "./command.sh"):
        outcome = ungil("trace", "--quiet", name)
        assert (outcome.stdout, outcome.stderr) == ("hello\n", ""), name
    assert ungil("trace", "-m", "script").stdout == "hello\n"
    assert ungil("trace", "echo", "hello").stdout == "hello\n"
    assert traces(tmp_path)[-8:] == [
        "ungil-command.sh.pftrace",
        "ungil-echo.pftrace",
        "ungil-folder.pftrace",
        "ungil-plain.pftrace",
        "ungil-script-2.pftrace",
        "ungil-script.pftrace",
        "ungil-zipped.pftrace",
        "zipped",
    ]


def test_a_file_in_the_current_folder_does_not_hide_a_command(ungil: Run, tmp_path: Path) -> None:
    (tmp_path / "echo").write_text("print('the file')")
    assert ungil("trace", "echo", "the command").stdout == "the command\n"


# Where the results go.


def test_a_trace_is_never_overwritten_unasked(ungil: Run, tmp_path: Path) -> None:
    for _ in range(3):
        ungil("trace", "--force", "-c", "pass")
    assert traces(tmp_path) == [
        "ungil-command-2.pftrace",
        "ungil-command-3.pftrace",
        "ungil-command.pftrace",
    ]
    (tmp_path / "mine").write_text("precious")
    outcome = ungil("trace", "-o", "mine", "-c", "print('ran')")
    assert (outcome.returncode, outcome.stdout) == (2, "")
    assert outcome.stderr == (
        "ungil: 'mine' exists; replace it with --force or name another file with -o\n"
    )
    assert (tmp_path / "mine").read_text() == "precious"
    assert ungil("trace", "--force", "-o", "mine", "-c", "print('ran')").stdout == "ran\n"
    assert (tmp_path / "mine").read_bytes() != b"precious"


def test_the_report_is_also_written_as_json(ungil: Run, tmp_path: Path) -> None:
    (tmp_path / "report.json").write_text("old")
    outcome = ungil("trace", "--quiet", "--json", "report.json", "-c", "pass")
    assert (outcome.returncode, outcome.stderr) == (0, "")
    assert json.loads((tmp_path / "report.json").read_text())["schema"] == 1
    assert traces(tmp_path) == ["report.json", "ungil-command.pftrace"]


@pytest.mark.parametrize("target", ["-", "/dev/stdout"])
def test_json_can_go_to_standard_output(ungil: Run, target: str) -> None:
    outcome = ungil("trace", "--json", target, "-c", "pass")
    assert json.loads(outcome.stdout)["schema"] == 1


def test_json_behind_a_link_replaces_the_file_and_not_the_link(ungil: Run, tmp_path: Path) -> None:
    (tmp_path / "real.json").write_text("old")
    (tmp_path / "link.json").symlink_to("real.json")
    ungil("trace", "--json", "link.json", "-c", "pass")
    assert (tmp_path / "link.json").is_symlink()
    assert json.loads((tmp_path / "real.json").read_text())["schema"] == 1


# Mistakes: one sentence, exit code 2, nothing left behind, nothing run.


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "no program to trace; name a script, -m MODULE, -c CODE or a command"),
        (["--"], "no program to trace"),
        (["-m"], "-m needs a module"),
        (["-c"], "-c needs code"),
        ([""], "the name of the program to trace is empty"),
        (["missing.py"], "there is no file 'missing.py'"),
        (["missing-command"], "there is no command or file 'missing-command'"),
        (["./missing"], "there is no file './missing'"),
        (["text"], "'text' is neither executable nor a Python program"),
        (["./text"], "'./text' is neither executable nor a Python program"),
        (["empty-folder"], "'empty-folder' is a folder without a __main__.py"),
        (["runnable"], "there is no command 'runnable' on PATH; to run the file, write ./runnable"),
        (["./runnable"], "cannot start './runnable': exec format error"),
        (["./lost"], "cannot start './lost': no such file or directory"),
        (["-o", "missing/x.pftrace", "touch", "ran"], "cannot write 'missing/x.pftrace': "),
        (["-o", "empty-folder", "touch", "ran"], "cannot write 'empty-folder': "),
        (["-o", "-", "touch", "ran"], "a trace cannot be written to standard output"),
        (["-o", "-", "--last", "1s", "touch", "ran"], "a trace cannot be written to standard"),
        (["-fo", "/dev/null", "touch", "ran"], "cannot write '/dev/null': it is not a regular"),
        (["--json", "missing/x", "touch", "ran"], "cannot write 'missing/x': no such file"),
        (["--json", "empty-folder", "touch", "ran"], "cannot write 'empty-folder': is a dir"),
        (["-o", "x", "--json", "x", "touch", "ran"], "the trace and the JSON cannot both be"),
        (["--blame-after", "0", "touch", "ran"], "Invalid value for '--blame-after': '0' is not"),
        (["--blame-after", "nan", "touch", "ran"], "Invalid value for '--blame-after': 'nan'"),
        (["--blame-after", "soon", "touch", "ran"], "Invalid value for '--blame-after': 'soon'"),
        (["--unknown", "touch", "ran"], "No such option"),
        (["-o"], "Option '-o' requires an argument"),
    ],
)
def test_a_mistake_is_one_sentence(
    ungil: Run, tmp_path: Path, arguments: list[str], sentence: str
) -> None:
    (tmp_path / "text").write_text("this is no program\n")
    (tmp_path / "empty-folder").mkdir()
    (tmp_path / "runnable").write_bytes(b"\x00\x01\x02 nothing that runs")
    (tmp_path / "runnable").chmod(0o755)
    (tmp_path / "lost").write_text("#!/missing/interpreter\n")
    (tmp_path / "lost").chmod(0o755)
    before = traces(tmp_path)
    outcome = ungil("trace", *arguments)
    assert (outcome.returncode, outcome.stdout) == (2, "")
    assert outcome.stderr.startswith(f"ungil: {sentence}")
    assert outcome.stderr.count("\n") == 1
    assert traces(tmp_path) == before


def test_a_script_of_unreadable_text_is_a_sentence_too(ungil: Run, tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\x00\xfe")
    outcome = ungil("trace", "binary")
    assert outcome.stderr == "ungil: 'binary' is neither executable nor a Python program\n"


# What a start costs.


def test_the_program_does_not_wait_for_rich() -> None:
    code = "import sys, ungil.cli.trace.command; sys.exit('rich' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_help_begins_with_what_to_type(ungil: Run) -> None:
    for command in ([], ["trace"], ["report"], ["run"], ["policy"], ["doctor"]):
        for option in ("-h", "--help"):
            outcome = ungil(*command, option)
            assert outcome.returncode == 0
            assert outcome.stdout.startswith(" ".join(["  ungil", *command]))
    assert ungil("--version").stdout.startswith("ungil ")
    assert ungil().returncode == 2


def test_a_word_that_is_no_command_leads_to_the_one_that_was_meant(ungil: Run) -> None:
    for word, hint in {
        "repotr": "did you mean ungil report?",
        "attach": "ungil trace --pid PID records a running process",
        "app.py": "ungil trace app.py records that program",
        "unknown": "ungil --help lists all",
    }.items():
        outcome = ungil(word, "4711")
        assert outcome.returncode == 2
        assert outcome.stderr == f"ungil: there is no command {word!r}: {hint}\n"
