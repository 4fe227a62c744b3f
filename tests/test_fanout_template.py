"""A command of `ungil fanout` and whom its signals reach, from inside."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ungil.cli.fanout import template
from ungil.cli.fanout.template import CommandTemplate, Unfinished


def test_a_group_is_signalled_while_its_number_cannot_be_anothers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The number of a process that was waited for is free for the next one."""
    started: list[int] = []
    was_free: list[bool] = []

    class Noted(subprocess.Popen[bytes]):
        def __init__(self, *words: Any, **options: Any) -> None:
            super().__init__(*words, **options)
            started.append(self.pid)

    def killpg(group: int, number: int, kill: Any = os.killpg) -> None:
        look = os.WEXITED | os.WNOWAIT | os.WNOHANG
        try:
            os.waitid(os.P_PID, group, look)
        except ChildProcessError:
            was_free.append(True)
        else:
            was_free.append(False)
        kill(group, number)

    monkeypatch.setattr(subprocess, "Popen", Noted)
    monkeypatch.setattr(os, "killpg", killpg)

    async def cancel_after_the_leaders_end() -> None:
        # Who is left keeps the output open, so that the command is not over with its leader.
        command = asyncio.create_task(CommandTemplate(["sh", "-c", "sleep 1000 &"])({}))
        while not started:
            await asyncio.sleep(0)
        [pid] = started
        ended = asyncio.Event()
        life = os.pidfd_open(pid)
        asyncio.get_running_loop().add_reader(life, ended.set)
        await ended.wait()
        asyncio.get_running_loop().remove_reader(life)
        os.close(life)
        command.cancel()
        with pytest.raises(Unfinished):
            await command

    asyncio.run(cancel_after_the_leaders_end())
    assert was_free
    assert not any(was_free)


def test_a_command_that_is_told_to_end_may_clean_up_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What comes after half a second is for those that do not end."""
    monkeypatch.setattr(template, "_TERM_SECONDS", 30.0)
    cleaner = """
import signal, sys, time
def clean_up(*_):
    print("cleaning", flush=True)
    time.sleep(0.05)  # it would be killed here
    open("cleaned", "w").close()
    sys.exit()
signal.signal(signal.SIGTERM, clean_up)
open("ready", "w").close()
while True: time.sleep(1000)
"""
    monkeypatch.chdir(tmp_path)
    words = [sys.executable, "-c", cleaner]
    assert asyncio.run(_cancel_when(tmp_path / "ready", words)) == "cleaning\n"
    assert (tmp_path / "cleaned").exists()


def test_a_command_that_does_not_end_when_it_is_told_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(template, "_TERM_SECONDS", 0.01)
    monkeypatch.setattr(template, "_KILL_SECONDS", 30.0)
    monkeypatch.chdir(tmp_path)
    script = 'trap "" TERM; echo $$; touch ready; while :; do sleep 1000; done'
    printed = asyncio.run(_cancel_when(tmp_path / "ready", ["sh", "-c", script]))
    with pytest.raises(ProcessLookupError):
        os.kill(int(printed), 0)


async def _cancel_when(ready: Path, words: list[str]) -> str:
    """What a command has printed that is cancelled as soon as a file is there."""
    command = asyncio.create_task(CommandTemplate(words)({}))
    while not ready.exists():
        assert not command.done()
        await asyncio.sleep(0.01)
    command.cancel()
    with pytest.raises(Unfinished) as unfinished:
        await command
    return unfinished.value.stdout
