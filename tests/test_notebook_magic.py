"""`%gil` and `%%gil`: in IPython's shell, and in a real kernel that a notebook client talks to."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from queue import Empty
from typing import Any

import pytest
from jupyter_client.manager import KernelManager
from suite import PATIENCE_S, run_python

SHELL = """
import sys, threading
from IPython.core.interactiveshell import InteractiveShell

shell = InteractiveShell.instance()
shell.run_cell("%load_ext ungil").raise_error()
for name in sys.argv[1:]:
    result = shell.run_cell(sys.stdin.read() if name == "-" else name)
    if result.error_in_exec is not None:
        print("raised", type(result.error_in_exec).__name__)
"""
# One thread keeps the GIL for 300 ms while the cell's thread wants it back: `PyDLL` lets nobody in.
COMPETING = """
import ctypes, os, threading
keep = ctypes.PyDLL(None)
read, write = os.pipe()

def hog():
    keep.write(write, b"x", 1)
    keep.usleep(300_000)

thread = threading.Thread(target=hog, name="hog")
thread.start()
os.read(read, 1)
thread.join()
# It returns a moment before the thread has ended.
while os.path.exists(f"/proc/self/task/{thread.native_id}"):
    pass
"""


def in_shell(*cells: str) -> str:
    """What IPython prints for these cells, after `%load_ext ungil`."""
    ended = run_python("-c", SHELL, *cells)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_importing_ungil_imports_nothing_for_notebooks() -> None:
    program = (
        "import ungil, sys; print({'IPython', 'ungil.notebook', 'ungil.gil'} & {*sys.modules})"
    )
    assert run_python("-c", program).stdout == "set()\n"


def test_a_line_is_measured_and_its_value_shown() -> None:
    printed = in_shell("%gil 6 * 7")
    assert re.search(
        r"The cell took \S+, held the GIL \S+ and waited 0 for it, in 0 waits\.", printed
    )
    assert re.search(r"^MainThread +0 +0 +\S+ +0$", printed, re.M)
    assert "42" in printed


def test_a_cell_uses_and_leaves_names_of_the_notebook() -> None:
    printed = in_shell("number = 20", "%%gil\ntwice = 2 * number\n", "print('twice is', twice)")
    assert "twice is 40" in printed


def test_a_cell_that_raises_is_measured_and_raises() -> None:
    printed = in_shell("%%gil\n1 / 0")
    assert "The cell took" in printed
    assert "raised ZeroDivisionError" in printed


def test_a_cell_shows_how_long_it_waited_and_who_held_the_gil() -> None:
    printed = in_shell(f"%%gil\n{COMPETING}")
    # The thread that held it has ended with the cell; what it did is told all the same.
    (waited, held) = re.findall(r"^(?:MainThread|threads that have ended) .*$", printed, re.M)
    assert milliseconds(waited.split()[2]) >= 100
    assert milliseconds(held.split()[-2]) >= 100
    assert re.search(r"Others held it for threads that have ended \S+\.", printed)
    assert "`ungil trace` does" in printed


def milliseconds(text: str) -> float:
    """`103ms` or `1.20s`."""
    number, unit = re.fullmatch(r"([\d.]+)(ns|µs|ms|s)", text).groups()  # type: ignore[union-attr]
    return float(number) * {"ns": 1e-6, "µs": 1e-3, "ms": 1, "s": 1e3}[unit]


def test_a_notebook_gets_a_table(tmp_path: Path) -> None:
    manager = KernelManager(kernel_name="python3", connection_file=str(tmp_path / "kernel.json"))
    manager.start_kernel(cwd=str(tmp_path))
    client = manager.blocking_client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=PATIENCE_S)
        displayed = outputs(client, "%load_ext ungil")
        assert displayed == []
        displayed = outputs(client, f"%%gil\n{COMPETING}\n'<done>'")
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    cost, value = displayed
    assert cost["text/plain"].startswith("The cell took ")
    assert cost["text/html"].startswith("<p>The cell took ")
    assert "<th>forced releases</th>" in cost["text/html"]
    waited = re.search(r"<td>MainThread</td><td>\d+</td><td>([^<]+)</td>", cost["text/html"])
    assert waited is not None
    assert milliseconds(waited[1]) >= 100
    assert value == {"text/plain": "'<done>'"}


def outputs(client: Any, cell: str) -> list[dict[str, str]]:
    """What a notebook would show below a cell."""
    asked = client.execute(cell)
    displayed: list[dict[str, str]] = []
    while True:
        try:
            message = client.get_iopub_msg(timeout=PATIENCE_S)
        except Empty:
            pytest.fail("the kernel does not answer")
        if message["parent_header"].get("msg_id") != asked:
            continue
        content = message["content"]
        if message["msg_type"] == "error":
            pytest.fail("\n".join(content["traceback"]))
        if message["msg_type"] in ("display_data", "execute_result"):
            displayed.append(content["data"])
        if message["msg_type"] == "status" and content["execution_state"] == "idle":
            return displayed


def test_where_the_gil_cannot_be_counted_the_cell_is_told_why() -> None:
    program = SHELL.replace(
        "shell =",
        "from ungil import _native\n"
        "def refuse(): raise RuntimeError('this is a free-threaded Python, which has no GIL')\n"
        "_native.gil_install = refuse\nshell =",
    )
    ended = subprocess.run(
        [sys.executable, "-c", program, "%gil 1"], capture_output=True, text=True, check=True
    )
    assert "cannot be recorded: this is a free-threaded Python" in ended.stdout
    assert "raised HookError" in ended.stdout
