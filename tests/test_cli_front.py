"""`ungil` alone, its help, what a shell completes, and the manual page."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ungil.cli.commands import COMMANDS, PROBLEMS

ROOT = Path(__file__).parent.parent
Run = Callable[..., subprocess.CompletedProcess[str]]


def completed(ungil: Run, environment: dict[str, str], *words: str) -> list[list[str]]:
    """What bash is told when Tab is pressed after the last of `words`: kinds and values."""
    asked = {
        "_UNGIL_COMPLETE": "bash_complete",
        "COMP_WORDS": " ".join(words),
        "COMP_CWORD": str(len(words) - 1),
    }
    done = ungil(env=environment | asked)
    assert done.stderr == ""
    return [line.split(",") for line in done.stdout.splitlines()]


def test_ungil_alone_says_in_five_lines_what_to_do_first(ungil: Run) -> None:
    done = ungil()
    assert (done.returncode, done.stdout) == (2, "")
    lines = done.stderr.splitlines()
    assert len(lines) == 5
    assert all(line.startswith("  ungil ") for line in lines)


def test_the_help_has_each_command_once_under_the_problem_that_it_is_for(ungil: Run) -> None:
    told = ungil("--help").stdout
    for problem, group in PROBLEMS.items():
        _, _, below = told.partition(f"\n{problem}:\n")
        for line, (name, (_, does)) in zip(below.splitlines(), group.items(), strict=False):
            assert line.split() == [name, *does.split()]
    assert len(COMMANDS) == sum(map(len, PROBLEMS.values()))


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_of_the_table_is_one(name: str, ungil: Run) -> None:
    done = ungil(name, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"Usage: ungil {name} " in done.stdout


def test_a_shell_completes_commands_options_policies_and_processes(
    ungil: Run, environment: dict[str, str]
) -> None:
    assert completed(ungil, environment, "ungil", "sn") == [["plain", "snapshot"]]
    assert ["plain", "--blame-after"] in completed(ungil, environment, "ungil", "trace", "--bl")
    assert completed(ungil, environment, "ungil", "run", "--policy", "b") == [["plain", "batch"]]
    assert completed(ungil, environment, "ungil", "report", "x") == [["file", "x"]]
    own = str(os.getpid())
    assert completed(ungil, environment, "ungil", "policy", own) == [["plain", own]]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_each_shell_is_printed(shell: str, ungil: Run) -> None:
    done = ungil("completion", shell)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"_UNGIL_COMPLETE={shell}_complete" in done.stdout


def test_bash_itself_completes_a_command(tmp_path: Path, ungil: Run) -> None:
    (tmp_path / "ungil").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m ungil "$@"\n')
    (tmp_path / "ungil").chmod(0o755)
    asked = (
        f"{ungil('completion', 'bash').stdout}\n"
        "COMP_WORDS=(ungil adv); COMP_CWORD=1; _ungil_completion ungil; echo ${COMPREPLY[@]}"
    )
    path = f"{tmp_path}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", asked],
        env=os.environ | {"PATH": path},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("advise\n", "")


def test_the_users_own_shell_is_the_default_and_an_unknown_one_is_refused(
    ungil: Run, environment: dict[str, str]
) -> None:
    zsh = ungil("completion", env=environment | {"SHELL": "/usr/bin/zsh"})
    assert zsh.stdout == ungil("completion", "zsh").stdout
    done = ungil("completion", env=environment | {"SHELL": "/bin/csh"})
    assert done.returncode == 2
    assert done.stderr == "ungil: SHELL is csh; name the shell: bash, zsh or fish\n"


@pytest.mark.parametrize("script", ["man.py", "cli.py"])
def test_manual_page_and_installed_completions_are_those_of_the_commands(script: str) -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "docs" / script, "--check"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
