"""A process is watched until it ends, also by a Python that lacks `os.pidfd_open`."""

from __future__ import annotations

import os
import select
import subprocess

import pytest
from suite import PATIENCE_S

from ungil.cli import proc


@pytest.mark.parametrize("lacks", [False, True], ids=["with pidfd_open", "without"])
def test_the_end_of_a_process_is_seen(monkeypatch: pytest.MonkeyPatch, lacks: bool) -> None:
    if lacks:
        monkeypatch.delattr(os, "pidfd_open")
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as process:
        life = proc.life_of(process.pid)
        try:
            assert not os.get_inheritable(life)
            assert select.select([life], [], [], 0)[0] == []
            assert process.stdin is not None
            process.stdin.close()
            assert select.select([life], [], [], PATIENCE_S)[0] == [life]
        finally:
            os.close(life)
    with pytest.raises(ProcessLookupError):
        proc.life_of(process.pid)
