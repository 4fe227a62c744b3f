"""A workload on green threads, as `ungil run --green` starts a program."""

from __future__ import annotations

import subprocess
from functools import cache

from ungil.environment import GREEN, STARTUP
from ungil.interpreters import PATIENCE_S, Interpreter
from ungil.lab.conditions import STOCK
from ungil.lab.experiment import Missing


def why_not(interpreter: Interpreter) -> str | None:
    """Why `interpreter` has no green threads, in a sentence; None if it has."""
    if _has_gevent(interpreter.path):
        return None
    return f"it has no gevent: {interpreter.path} -m pip install gevent"


def variables(interpreter: Interpreter) -> dict[str, str]:
    """What a workload needs in its environment; Missing where gevent is not installed."""
    if (why := why_not(interpreter)) is not None:
        raise Missing(why)
    return {GREEN: "1", "PYTHONPATH": STARTUP}


@cache
def _has_gevent(python: str) -> bool:
    asked = subprocess.run(
        [python, "-c", "import gevent.monkey"],
        env=STOCK.environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=PATIENCE_S,
        check=False,
    )
    return asked.returncode == 0
