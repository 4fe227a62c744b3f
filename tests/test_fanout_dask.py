"""Fan-outs over a real dask cluster: a scheduler, and workers that are processes."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask.config
import distributed
import fanout_functions as functions
import pytest

from ungil.errors import EngineError, WorkerDied
from ungil.fanout import Fanout, _shards, fanout


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    options: Any = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    # On a slow machine the cluster would give up workers while they start again.
    with dask.config.set({"distributed.deploy.lost-worker-timeout": "1h"}):
        made: Any = distributed.LocalCluster(**options)
        with made as cluster:
            yield cluster


@pytest.fixture
def client(cluster: Any) -> Iterator[Any]:
    with distributed.Client(cluster, set_as_default=False) as client:
        client.wait_for_workers(2)
        yield client


def folder(path: Path, name: str) -> Path:
    made = path / name
    made.mkdir()
    return made


def test_outcomes_come_in_the_order_of_the_items(client: Any) -> None:
    outcomes = list(fanout(functions.double, range(3000), engine=client, limit=100))
    assert [(o.index, o.item, o.value) for o in outcomes] == [(n, n, 2 * n) for n in range(3000)]


def test_all_workers_work(client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_shards, "_PATIENCE_SECONDS", functions.PATIENCE_S)
    outcomes = fanout(functions.meet, [(tmp_path, 4)] * 4, engine=client, limit=4)
    assert len({outcome.unwrap() for outcome in outcomes}) == 2


def test_an_address_will_do(cluster: Any) -> None:
    outcomes = fanout(functions.process, range(4), engine=cluster.scheduler_address)
    assert os.getpid() not in {outcome.unwrap() for outcome in outcomes}
    with pytest.raises(ValueError, match="No clients found"):
        distributed.default_client()  # pyright: ignore[reportUnknownMemberType]


def test_the_default_client_is_taken_and_left_as_it_was(cluster: Any) -> None:
    made: Any = distributed.Client(cluster)
    with made as client:
        assert [outcome.unwrap() for outcome in fanout(functions.double, [4], engine="dask")] == [8]
        assert client.submit(functions.double_in_a_thread, 5).result() == 10


def test_any_function_and_value_can_cross(client: Any) -> None:
    offset = 7
    outcomes = fanout(lambda item: lambda: item() + offset, [lambda: 1], engine=client)
    [outcome] = outcomes
    assert outcome.unwrap()() == 8


def test_what_cannot_cross_is_the_outcome_of_its_item_alone(client: Any) -> None:
    items: list[Any] = [1, "raises", "unloadable", "stubborn", functions.Stubborn(), 2]
    outcomes = list(fanout(functions.peculiar, items, engine=client))
    assert [outcome.value for outcome in outcomes if outcome.ok] == [1, 2]
    kinds = [type(outcome.exception).__name__ for outcome in outcomes if not outcome.ok]
    assert kinds == ["KeyError", "NotCarried", "NotCarried", "NotCarried"]


def test_a_worker_that_is_killed_loses_no_item(client: Any, tmp_path: Path) -> None:
    processes, go = folder(tmp_path, "processes"), folder(tmp_path, "go")

    def kill_one() -> None:
        functions.wait_for(processes, 2)
        os.kill(int(next(processes.iterdir()).name), signal.SIGKILL)
        (go / "now").touch()

    items = [(processes, go, number) for number in range(100)]
    killer = threading.Thread(target=kill_one)
    killer.start()
    outcomes = list(fanout(functions.mark_and_wait, items, engine=client, limit=10))
    killer.join()
    assert [outcome.unwrap() for outcome in outcomes] == list(range(100))


def test_an_item_that_kills_its_worker_is_found_among_many(client: Any) -> None:
    items = [(number, "exit" if number == 11 else "") for number in range(16)]
    outcomes = list(fanout(functions.die, items, engine=client, limit=16, retries=2))
    assert [outcome.index for outcome in outcomes if not outcome.ok] == [11]
    assert isinstance(outcomes[11].exception, WorkerDied)
    assert str(outcomes[11].exception).startswith("the worker died while it ran this item: it was")


def test_a_loop_that_is_left_cancels_what_runs(client: Any, tmp_path: Path) -> None:
    for outcome in fanout(functions.hang, [None, None, tmp_path], engine=client, limit=4):
        assert outcome.ok
        break
    names = [path.name.partition("-")[0] for path in tmp_path.iterdir()]
    assert names.count("begun") == names.count("cancelled")


PROGRAM = """
import sys
sys.path[:0] = {path!r}
import fanout_functions as functions
from pathlib import Path
from ungil.fanout import fanout

list(fanout(functions.hang, [Path({folder!r})] * 2, engine={address!r}, limit=2))
"""


def test_what_runs_is_cancelled_when_its_caller_is_killed(cluster: Any, tmp_path: Path) -> None:
    program = PROGRAM.format(
        path=[str(Path(__file__).parent)], folder=str(tmp_path), address=cluster.scheduler_address
    )
    with subprocess.Popen([sys.executable, "-c", program]) as caller:
        functions.wait_for(tmp_path, 2)
        caller.kill()
    functions.wait_for(tmp_path, 4)
    names = [path.name.partition("-")[0] for path in tmp_path.iterdir()]
    assert sorted(names) == ["begun", "begun", "cancelled", "cancelled"]


def test_nothing_is_left_in_the_cluster(client: Any) -> None:
    list(fanout(functions.double, range(10), engine=client))

    def shards() -> int:
        return sum(thread.name == "fanout" for thread in threading.enumerate())

    def tasks(dask_scheduler: Any) -> int:
        return len(dask_scheduler.tasks)

    deadline = time.monotonic() + functions.PATIENCE_S
    while any(client.run(shards).values()) or client.run_on_scheduler(tasks):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_an_asynchronous_client_will_do_in_its_own_loop(cluster: Any) -> None:
    async def values() -> list[int]:
        async with (
            distributed.Client(cluster.scheduler_address, asynchronous=True) as client,
            Fanout(engine=client, limit=20) as fan,
        ):
            return [outcome.unwrap() async for outcome in fan.stream(functions.double, range(200))]

    assert sorted(asyncio.run(values())) == [2 * number for number in range(200)]


def test_a_function_that_workers_cannot_load_is_named(client: Any) -> None:
    with pytest.raises(EngineError, match=r"a worker cannot load the function: .*only here"):
        list(fanout(functions.OnlyHere(), [1], engine=client))


def test_a_scheduler_that_is_not_there_is_named() -> None:
    with (
        dask.config.set({"distributed.comm.timeouts.connect": "100ms"}),
        pytest.raises(EngineError, match=r"no dask scheduler answers at tcp://127\.0\.0\.1:1: "),
    ):
        list(fanout(functions.double, [1], engine="tcp://127.0.0.1:1"))
