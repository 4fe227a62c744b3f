"""Output that cannot be written is one sentence, and the command has failed."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]

SPIN = "import threading as t; it = t.Thread(target=int); it.start(); it.join()"
REFUSED = {">&-": "the stream is closed", ">/dev/full": "no space left on device"}
HOSTS = "fanout --quiet --hosts hosts"
COMMANDS = (
    "report trace.pftrace",
    "report trace.pftrace --json",
    "report trace.pftrace --sql 'SELECT 1'",
    "advise trace.pftrace",
    "simulate trace.pftrace",
    "diff trace.pftrace trace.pftrace",
    "export trace.pftrace --format speedscope -o -",
    "heap ls",
    "run --env",
    "--version",
    "--help",
    *(f"{HOSTS} {form} -- echo {{host}}" for form in ("--tag", "--json", "--gather", "--table")),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a trace and a file of hosts."""
    made = tmp_path_factory.mktemp("output")
    words = ["trace", "--quiet", "-o", "trace.pftrace", "-c", SPIN]
    subprocess.run([sys.executable, "-m", "ungil", *words], cwd=made, check=True)
    (made / "hosts").write_text("one\ntwo\n")
    return made


def redirected(
    folder: Path, environment: dict[str, str], words: str, where: str
) -> subprocess.CompletedProcess[str]:
    """What `ungil WORDS` comes to with its stdout elsewhere."""
    # What Python keeps in its buffers it tries to write once more at its end.
    buffered = {name: text for name, text in environment.items() if name != "PYTHONUNBUFFERED"}
    return subprocess.run(
        ["bash", "-c", f'exec "$0" -m ungil {words} {where}', sys.executable],
        cwd=folder,
        env=buffered,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("where", REFUSED)
@pytest.mark.parametrize("words", COMMANDS)
def test_a_command_that_could_not_print_has_failed_and_says_so_once(
    folder: Path, environment: dict[str, str], words: str, where: str
) -> None:
    outcome = redirected(folder, environment, words, where)
    assert outcome.returncode == 1, outcome.stderr
    told = [line for line in outcome.stderr.splitlines() if REFUSED[where] in line]
    assert len(told) == 1, outcome.stderr
    assert told[0].startswith("ungil: ")
    assert "Traceback" not in outcome.stderr


def test_a_command_that_prints_nothing_needs_no_output(
    folder: Path, environment: dict[str, str]
) -> None:
    outcome = redirected(folder, environment, f"{HOSTS} -- true {{host}}", ">&-")
    assert outcome.returncode == 0, outcome.stderr
    assert "closed" not in outcome.stderr


@pytest.mark.parametrize("words", COMMANDS)
def test_a_command_that_can_say_nothing_at_all_has_failed(
    folder: Path, environment: dict[str, str], words: str
) -> None:
    outcome = redirected(folder, environment, words, ">&- 2>&-")
    assert (outcome.returncode, outcome.stdout, outcome.stderr) == (1, "", "")


@pytest.fixture(scope="module")
def named(folder: Path) -> Path:
    """A trace with names that ASCII does not have."""
    code = SPIN.replace("target=int", "target=int, name='wörk'")
    words = ["trace", "--quiet", "-o", "wörk.pftrace", "-c", code]
    subprocess.run([sys.executable, "-m", "ungil", *words], cwd=folder, check=True)
    return folder


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
@pytest.mark.parametrize(
    "words", ["report wörk.pftrace", "report wörk.pftrace --json", "lab list", "examples nö"]
)
def test_what_a_stream_cannot_encode_is_printed_otherwise(
    named: Path, environment: dict[str, str], words: str, encoding: str
) -> None:
    variables = environment | {"PYTHONIOENCODING": encoding}
    outcome = subprocess.run(
        [sys.executable, "-m", "ungil", *words.split()],
        cwd=named,
        env=variables,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    assert b"Traceback" not in outcome.stderr
    assert outcome.returncode == 0 or words.startswith("examples")
    if words.endswith("--json"):
        assert "wörk" in str(json.loads(outcome.stdout))


def test_a_terminal_without_columns_is_as_wide_as_any(
    folder: Path, environment: dict[str, str]
) -> None:
    shown = redirected(folder, environment | {"COLUMNS": "0"}, "report trace.pftrace", "")
    assert shown.stdout == redirected(folder, environment, "report trace.pftrace", "").stdout != ""


def test_a_folder_that_was_removed_is_said_to_be(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    said = "ungil: the current folder was removed; change to another one\n"
    for words in ("check --max-hold 1s -o k -c 1", "trace --last 5s -c 1"):
        (tmp_path / "gone").mkdir()
        line = f'cd gone && rmdir ../gone && exec "$0" -m ungil {words}'
        ended = subprocess.run(
            ["bash", "-c", line, sys.executable],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert (ended.returncode, ended.stdout, ended.stderr) == (2, "", said)
