"""A process that multiprocessing started is called after its program."""

from __future__ import annotations

from reports import convoy, drawn

SPAWN = ["/opt/python3", "-B", "-c", "from multiprocessing.spawn import spawn_main; …"]
FORK_SERVER = ["/opt/python3", "-c", "from multiprocessing.forkserver import main; …"]
SERVER = ["/venv/bin/python3", "/venv/bin/uvicorn", "app:app"]


def title_of(*parents: list[str]) -> str:
    """That of the first of processes, each of which the next one has started."""
    report = convoy()
    first = report["processes"][0]
    report["processes"] = [
        dict(first, pid=10 + depth, parent_pid=11 + depth, argv=argv)
        for depth, argv in enumerate(parents)
    ]
    return drawn(report, 200).split("  pid 10")[0].strip()


def test_a_spawned_process_is_called_after_its_program() -> None:
    assert title_of(SPAWN, SERVER) == "worker of uvicorn app:app"
    assert title_of(FORK_SERVER, SERVER) == "fork server of uvicorn app:app"


def test_what_a_fork_server_forked_is_a_worker() -> None:
    worker = title_of(FORK_SERVER, FORK_SERVER, SERVER)
    assert worker == "worker of uvicorn app:app"


def test_without_its_program_a_spawned_process_has_its_own_command() -> None:
    assert title_of(SPAWN).startswith("python3 -B -c 'from multiprocessing.spawn")
