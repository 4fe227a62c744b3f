"""ipykernel: a notebook's kernel in which a cell has started threads that compute.

ZeroMQ answers the heartbeat in C++, without the GIL, so it is never late for that: the notebook
shows a kernel that lives, and its cells wait. It is here as a control.
"""

import tempfile
from pathlib import Path

from gallery_runs import Case, Measured, Place, load, observed, program
from jupyter_client.connect import write_connection_file

RATE = 20


def _measure(place: Place, setting: str) -> Measured:
    asks = "cell" if "cell" in setting else "heartbeat"
    with tempfile.TemporaryDirectory() as folder:
        connection = str(Path(folder) / "kernel.json")
        write_connection_file(connection)
        with (
            program(place, "-m", "ipykernel_launcher", "-f", connection) as kernel,
            load(
                place,
                "kernel",
                *(connection, "--asks", asks, "--threads", 2),
                *("--seconds", place.seconds, "--rate", RATE),
            ) as notebook,
        ):
            return observed(place, kernel, notebook)


CASE = Case(
    name="ipykernel",
    title="ipykernel: a notebook whose cells started threads",
    packages=("ipykernel",),
    measured=f"the time until an empty cell has run, or a heartbeat is answered, {RATE} a second",
    settings=("an empty cell, 2 computing threads", "the heartbeat, 2 computing threads"),
    measure=_measure,
    beyond=("the heartbeat, 2 computing threads",),
    note="ZeroMQ answers the heartbeat in C++: its thread takes the GIL once, when it starts "
    "(`ungil trace`).",
)
