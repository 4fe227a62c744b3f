"""ungil, this one, in an interpreter that it is not installed in.

Its native part is for every CPython since 3.11 (abi3), so it is enough to find it: by a folder in
which there is nothing else, so that no other package of this installation comes with it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from sysconfig import get_config_var

import ungil
from ungil.interpreters import Interpreter
from ungil.lab.experiment import Missing

SINCE = (3, 11)


def why_not(interpreter: Interpreter) -> str | None:
    """Why `interpreter` cannot have it, in a sentence; None if it can."""
    if interpreter.implementation != "CPython" or interpreter.number < SINCE:
        return "it has no ungil, which needs CPython 3.11"
    if interpreter.musl is not str(get_config_var("HOST_GNU_TYPE")).endswith("musl"):
        return "it has no ungil, and ours is for another C library"
    if interpreter.free_threaded:
        return "it has no ungil, and ours is built for a Python with a GIL"
    return None


@contextmanager
def variables(interpreter: Interpreter) -> Generator[dict[str, str]]:
    """What a workload that imports ungil needs in its environment; Missing if it cannot have it."""
    if (why := why_not(interpreter)) is not None:
        raise Missing(why)
    with tempfile.TemporaryDirectory(prefix="ungil-lab-") as folder:
        (Path(folder) / "ungil").symlink_to(Path(ungil.__file__).parent)
        yield {"PYTHONPATH": folder}
