"""paramiko: how soon its sessions answer a server that asks whether they are there."""

from gallery_runs import PROGRAMS, Case, Measured, Place, load, observed, program

SESSIONS = 4
RATE = 20


def _measure(place: Place, setting: str) -> Measured:
    words = ("--sessions", SESSIONS, "--seconds", place.seconds, "--rate", RATE)
    with load(place, "ssh_server", *words) as server:
        port, threads = server.says()["port"], setting.split()[0]
        with program(place, PROGRAMS / "paramiko_sessions.py", port, SESSIONS, threads) as client:
            return observed(place, client, server)


CASE = Case(
    name="paramiko",
    title=f"SSH by paramiko: {SESSIONS} sessions of a program that computes",
    packages=("paramiko",),
    measured=f"the time from a server's keepalive request to its answer, {RATE} a second",
    settings=("4 computing threads",),
    measure=_measure,
)
