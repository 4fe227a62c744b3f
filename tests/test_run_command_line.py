"""Plain command lines of `ungil run` are read without click, and mean what click says they mean."""

from __future__ import annotations

import subprocess
import sys

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ungil.cli.run.command import command
from ungil.cli.run.launch import Launch as Run
from ungil.cli.run.launch import plain

OPTIONS = ["--policy", "--policy=fair", "--policy=x=y", "--quantum", "--quantum=", "--priority"]
FLAGS = [
    "--no-children",
    "--no-children=1",
    "--green",
    "--green=1",
    "--env",
    "--other",
    "-h",
    "-x",
    "-",
    "--",
    "-m",
    "-c",
]
VALUES = ["fair", "5", "a=b=low", "app.py", "-mapp", ""]
WORDS = st.sampled_from([*OPTIONS, *FLAGS, *VALUES])


@given(st.lists(WORDS, max_size=8))
def test_a_plain_command_line_means_what_click_says(words: list[str]) -> None:
    run = plain(words)
    if run is None:
        return
    params = command.make_context("run", list(words)).params
    assert said(run) == (
        params["policy"],
        params["quantum"],
        params["priorities"],
        not params["no_children"],
        params["green"],
        list(params["words"]),
    )
    assert not params["as_environment"]


def said(run: Run) -> tuple[object, ...]:
    """All that `run` asks for."""
    asked = run.scheduling
    return asked.policy, asked.quantum, asked.priorities, run.children, run.green, run.words


@pytest.mark.parametrize("words", [["-h"], ["--env"], ["--policy"], ["--polcy", "x"], ["-x"]])
def test_what_is_not_plain_is_left_to_click(words: list[str]) -> None:
    assert plain(words) is None


@pytest.mark.parametrize(
    "words",
    [["a.py"], ["-m", "x", "-h"], ["--policy", "fair", "--no-children", "--priority=a=low", "a"]],
)
def test_what_people_write_is_plain(words: list[str]) -> None:
    assert plain(words) is not None


def test_a_start_imports_nothing_slow() -> None:
    program = (
        "import sys; before = set(sys.modules); import ungil.cli.run.launch\n"
        "slow = {'click', 'typing', 're', 'pathlib', 'inspect', 'enum', 'shutil', 'signal'}\n"
        "print(sorted(slow & (set(sys.modules) - before)))"
    )
    outcome = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (outcome.stdout, outcome.stderr) == ("[]\n", "")


def test_click_knows_every_option_that_is_read_without_it() -> None:
    options = {name for it in command.params if isinstance(it, click.Option) for name in it.opts}
    read = {"--policy", "--quantum", "--priority", "--no-children", "--green"}
    # These need no quick start: one runs nothing, the other is typed once into a unit file.
    assert options == read | {"--env", "--standby"}
