"""`ungil.fanout` in the cells of a notebook: in a real kernel, whose thread has a running loop."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager
from suite import PATIENCE_S


class Notebook:
    """Cells that a kernel executes one after the other."""

    def __init__(self, client: BlockingKernelClient) -> None:
        self._client = client

    def run(self, cell: str, asked: str = "None") -> Any:
        """Executes a cell; the text of the expression `asked` for when it has ended."""
        reply = self.reply(cell, asked)
        assert reply["status"] == "ok", "\n".join(reply["traceback"])
        return eval(reply["user_expressions"]["asked"]["data"]["text/plain"])

    def error(self, cell: str) -> tuple[str, str]:
        """Executes a cell that raises: the name of the exception, and what it says."""
        reply = self.reply(cell)
        assert reply["status"] == "error", reply
        return reply["ename"], reply["evalue"]

    def reply(self, cell: str, asked: str = "None") -> dict[str, Any]:
        """What the kernel answers."""
        execute: Any = self._client.execute  # its decorator keeps `reply` from the type checker
        message = execute(cell, user_expressions={"asked": asked}, reply=True, timeout=PATIENCE_S)
        return message["content"]


@pytest.fixture(scope="module")
def notebook(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Notebook]:
    folder: Path = tmp_path_factory.mktemp("notebook")
    manager = KernelManager(kernel_name="python3", connection_file=str(folder / "kernel.json"))
    manager.start_kernel(cwd=str(folder))
    client = manager.blocking_client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=PATIENCE_S)
        yield Notebook(client)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def test_a_cell_has_a_running_loop(notebook: Notebook) -> None:
    cell = "import asyncio\nloop = asyncio.get_running_loop()"
    assert notebook.run(cell, "loop.is_running()") is True


def test_functions_run_in_threads(notebook: Notebook) -> None:
    cell = """
import threading
from ungil.fanout import fanout

def double(item):
    return 2 * item, threading.get_ident()

outcomes = fanout(double, range(5), limit=2)
values = [outcome.unwrap() for outcome in outcomes]
"""
    notebook.run(cell)
    assert notebook.run("", "[value for value, _ in values]") == [0, 2, 4, 6, 8]
    assert notebook.run("", "threading.get_ident() in {ident for _, ident in values}") is False
    assert notebook.run("", "(outcomes.mode, outcomes.reason)") == (
        "threads",
        "not an async def, and a notebook's loop runs in this thread",
    )


def test_functions_in_threads_may_wait_for_each_other_and_fail(notebook: Notebook) -> None:
    cell = """
import threading
from ungil.fanout import fanout

together = threading.Barrier(3)

def meet(item):
    together.wait()
    return 1 / item

outcomes = list(fanout(meet, range(3), limit=3))
"""
    assert notebook.run(cell, "[o.value for o in outcomes]") == [None, 1.0, 0.5]
    assert notebook.run("", "type(outcomes[0].exception).__name__") == "ZeroDivisionError"


def test_the_loop_of_the_notebook_goes_on_afterwards(notebook: Notebook) -> None:
    cell = """
import asyncio
from ungil.fanout import fanout

told = []
asyncio.get_running_loop().call_soon(told.append, 1)
list(fanout(abs, [-1]))
before = list(told)
await asyncio.sleep(0)
"""
    # While the cell waited for outcomes, its loop did as well.
    assert notebook.run(cell, "(before, told)") == ([], [1])


def test_an_async_def_is_told_the_way_that_works(notebook: Notebook) -> None:
    cell = """
from ungil.fanout import fanout

async def later(item):
    return item

fanout(later, range(3))
"""
    assert notebook.error(cell) == (
        "RuntimeError",
        "fanout() cannot run later in mode asyncio where an event loop runs: "
        "use `async with Fanout() as f: async for outcome in f.stream(fn, items)`",
    )


def test_a_coroutine_of_a_cell_may_do_what_the_cell_may(notebook: Notebook) -> None:
    cell = """
from ungil.fanout import fanout

async def later():
    return list(fanout(abs, [-1]))

values = await later()
"""
    # The loop is the notebook's, so that it is no worse than the same in a cell.
    assert notebook.run(cell, "[value.unwrap() for value in values]") == [1]


def test_that_way_works(notebook: Notebook) -> None:
    cell = """
import asyncio
from ungil.fanout import Fanout

async def later(item):
    await asyncio.sleep(0)
    return item, asyncio.get_running_loop() is loop

loop = asyncio.get_running_loop()
async with Fanout(limit=2) as f:
    values = sorted([outcome.unwrap() async for outcome in f.stream(later, range(4))])
"""
    assert notebook.run(cell, "values") == [(item, True) for item in range(4)]
