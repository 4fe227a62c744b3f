"""Every command of README, the how-to pages and the reference is typed, as printed, by a reader.

What she has is in `readers_folder.py`. The tutorials have tests of their own, and
`tests/stranger.py` types README and the tutorials on a machine that has nothing but the wheel.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import re
import shlex
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Generator
from functools import partial
from pathlib import Path

import click
import pytest
import reader
import readers_folder
import ssh_hosts
from documented import Command, Shell, everything_typed, missing
from looking import running
from reader import beginning
from readers_folder import (
    AHEAD,
    ENDS,
    IN_ANOTHER_SHELL,
    LACKING,
    ON_A_TERMINAL,
    SERVED,
    SERVICE,
    SERVICES,
)
from ssh_hosts import SshHosts
from terminals import Terminal

from ungil import share
from ungil.cli.commands import command as ungil_command

ROOT = Path(__file__).parent.parent
FILES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/*.md")]
PAGES = {path.stem: path.read_text(encoding="utf-8") for path in FILES}
WITH_COMMANDS = sorted(name for name, text in PAGES.items() if everything_typed(text))
IN_A_SENTENCE = re.compile(r"`(ungil [a-z][^`\n]*)`")
TARGET = re.compile(r"^([a-z-]+):", re.MULTILINE)

Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Generator[SshHosts]:
    """Her hosts."""
    with ssh_hosts.running(tmp_path_factory.mktemp("ssh")) as started:
        yield started


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, str]:
    """Her folder, and the clock before and after her traces were recorded."""
    folder = tmp_path_factory.mktemp("hers")
    return folder, *readers_folder.record(folder)


@pytest.fixture
def processes(page: str, start: Start) -> Generator[dict[str, str]]:
    """What pages call her processes and heaps, and what these are."""
    name = f"cache-{os.getpid()}"
    with share.Heap(name) as named:
        named.root["page"] = "found"
    with share.Heap() as unnamed:
        _, (_, place) = unnamed.__reduce__()
        last = ("trace", "-q", "--last", "30s", "--")
        yield {
            "snapshot 4711": f"snapshot {running(start, 'computing', sys.executable, *last)}",
            "4711/5": f"{os.getpid()}/{str(place).rpartition('/')[2]}",
            "4711": str(running(start, *SERVICES.get(page, SERVICE))),
            **{f"{word} cache": f"{word} {name}" for word in ("stat", "gc", "rm")},
        }
    # One that the page has not removed.
    with contextlib.suppress(FileNotFoundError):
        share.Heap.open(name).unlink()


@pytest.mark.parametrize("page", WITH_COMMANDS)
def test_a_pages_commands_do_what_it_says(
    page: str,
    tmp_path: Path,
    start: Start,
    hosts: SshHosts,
    recorded: tuple[Path, str, str],
    request: pytest.FixtureRequest,
) -> None:
    folder, began, ended = recorded
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    environment = readers_folder.environment(tmp_path, hosts)
    stands_for = {"12:03:41": began, "12:03:51": ended, "/opt/py/bin/python": sys.executable}
    if "4711" in PAGES[page]:
        stands_for |= request.getfixturevalue("processes")
    placed = re.compile("|".join(map(re.escape, stands_for)))
    done: set[str] = set()
    with Shell(tmp_path, environment) as shell:
        for command in everything_typed(PAGES[page]):
            if beginning(command.typed, LACKING) or command.typed in done:
                continue
            done.add(command.typed)
            assert shell.run(beginning(command.typed, AHEAD) or "true") == (0, "")
            shape = beginning(command.typed, IN_ANOTHER_SHELL) or "{}"
            typed = shape.format(placed.sub(lambda found: stands_for[found[0]], command.typed))
            if screen := beginning(command.typed, ON_A_TERMINAL):
                terminal = Terminal(
                    ["bash", "-c", typed],
                    start,
                    columns=92,
                    cwd=tmp_path,
                    env=environment | {"TERM": "xterm"},
                )
                status, printed = looked_at(terminal, *screen)
            else:
                status, printed = visited(shell, typed, tmp_path / SERVED)
            expected = command.status or beginning(command.typed, ENDS) or 0
            assert (status, missing(command, printed)) == (expected, []), (
                f"{page}.md, line {command.line}: $ {typed}\n{printed}"
            )
            assert "Traceback (most recent call last)" not in printed


def looked_at(terminal: Terminal, until: str, keys: bytes) -> tuple[int, str]:
    """Press keys when something is on the screen; the status, and what is on it at the end."""
    terminal.read_until(until)
    terminal.type(keys)
    return terminal.end(), "\n".join(terminal.lines())


def visited(shell: Shell, typed: str, served: Path) -> tuple[int, str]:
    """Run a command, and visit and stop the server that it runs, if it does."""
    if "gunicorn" not in typed:
        return shell.run(typed)
    over = threading.Event()
    visit = (shell.pid, over, partial(readers_folder.ask, served), b"gunicorn")
    visitor = threading.Thread(target=reader.visit_and_stop, args=visit)
    visitor.start()
    try:
        return shell.run(typed)
    finally:
        over.set()
        visitor.join()


def every_command() -> list[Command]:
    """Of all pages."""
    return [command for page in WITH_COMMANDS for command in everything_typed(PAGES[page])]


@pytest.mark.parametrize("table", [AHEAD, ENDS, IN_ANOTHER_SHELL, LACKING, ON_A_TERMINAL])
def test_what_is_said_about_commands_is_about_some_that_a_page_has(
    table: dict[str, object],
) -> None:
    typed = [command.typed for command in every_command()]
    assert [begin for begin in table if not any(it.startswith(begin) for it in typed)] == []


def test_what_pip_installs_is_ungil_with_extras_that_it_has() -> None:
    offered = set(importlib.metadata.metadata("ungil").get_all("Provides-Extra") or [])
    for command in every_command():
        if command.typed.startswith("pip install "):
            package = shlex.split(command.typed, comments=True)[-1]
            name, _, extras = package.rstrip("]").partition("[")
            assert name in ("ungil", "waitress"), command
            assert set(filter(None, extras.split(","))) <= offered, command


# The page about style quotes a sentence that begins with the name.
@pytest.mark.parametrize("page", sorted(PAGES.keys() - {"style"}))
def test_commands_in_a_sentence_have_the_options_that_it_names(page: str) -> None:
    wrong = [it for it in IN_A_SENTENCE.findall(PAGES[page]) if unknown(it)]
    assert wrong == []


def test_an_unknown_command_or_option_is_found() -> None:
    assert unknown("ungil trace --html OUT.html app.py --port 8000") == []
    assert unknown("ungil heap ls | stat NAME") == []
    assert unknown("ungil trcae app.py") == ["trcae"]
    assert unknown("ungil report --htlm x") == ["--htlm"]


def unknown(typed: str) -> list[str]:
    """The words of a command that ungil does not know: its name, or options before a program."""
    _, name, *words = shlex.split(typed)
    command = ungil_command.get_command(click.Context(ungil_command), name)
    if command is None:
        return [name]
    known = {it: option for option in command.params for it in option.opts}
    found: list[str] = []
    waiting = iter(words)
    for word in waiting:
        option = known.get(word.partition("=")[0])
        if word == "--" or (not word.startswith("-") and command.allow_interspersed_args is False):
            break
        if option is None and word.startswith("-"):
            found.append(word)
        if isinstance(option, click.Option) and not option.is_flag and "=" not in word:
            next(waiting, None)
    return found


def test_make_has_the_targets_that_pages_name() -> None:
    there = set(TARGET.findall((ROOT / "Makefile").read_text()))
    named = {
        word
        for text in PAGES.values()
        for said in re.findall(r"(?:`|^\$ |^)make ([a-z][a-z -]*)", text, re.MULTILINE)
        for word in said.split()
    }
    assert named
    assert named <= there
