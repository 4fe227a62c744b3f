"""A command of `ungil fanout` and whom its signals reach, from inside."""

from __future__ import annotations

import asyncio
import os
import subprocess
from typing import Any

import pytest

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
