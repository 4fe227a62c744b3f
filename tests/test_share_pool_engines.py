"""`share.Pool` upon clusters of Dask and Ray."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import as_completed
from importlib import import_module
from pathlib import Path
from typing import Any

import dask.config
import distributed
import pytest
import share_pool_tasks as tasks
from suite import PATIENCE_S

from ungil import share
from ungil.errors import EngineError
from ungil.share.joblib import register


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    options: Any = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": ":0"}
    # One death is enough: by default a task dies three times first.
    settings = {
        "distributed.deploy.lost-worker-timeout": "1h",
        "distributed.scheduler.allowed-failures": 0,
    }
    with dask.config.set(settings):
        made: Any = distributed.LocalCluster(**options)
        with made as cluster, distributed.Client(cluster, set_as_default=False) as client:
            yield client


@pytest.fixture(scope="module")
def ray() -> Iterator[Any]:
    module: Any = import_module("ray")
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("PYTHONPATH", str(Path(__file__).parent))
        module.init(num_cpus=1, include_dashboard=False, log_to_driver=False, logging_level="error")
        yield module
        module.shutdown()


@pytest.fixture(params=["dask", "ray"])
def engine(request: pytest.FixtureRequest) -> Any:
    name: str = request.param
    return (
        request.getfixturevalue("client")
        if name == "dask"
        else (request.getfixturevalue("ray") and name)
    )


def test_a_cluster_runs_the_same_calls(engine: Any) -> None:
    with share.Pool(engine=engine) as pool:
        assert pool.submit(tasks.everything, 1, key=[2]).result(PATIENCE_S) == ((1,), {"key": [2]})
        assert [*pool.map(tasks.square, range(5), chunksize=2)] == [0, 1, 4, 9, 16]
        futures = [pool.submit(tasks.square, number) for number in range(4)]
        assert sorted(future.result() for future in as_completed(futures)) == [0, 1, 4, 9]
        assert pool.submit(tasks.pid).result(PATIENCE_S) != os.getpid()
        with pytest.raises(LookupError, match="why"):
            pool.submit(tasks.fail, "why").result(PATIENCE_S)
        with pytest.raises(ValueError, match="task_timeout=3 is for workers on this machine"):
            pool.limited(task_timeout=3).submit(tasks.pid)
        with pytest.raises(EngineError, match="do not go through a heap"):
            _ = pool.heap
    with pytest.raises(RuntimeError, match="after shutdown"):
        pool.submit(tasks.pid)


def test_a_worker_of_a_cluster_that_dies_fails_its_task(engine: Any) -> None:
    with share.Pool(engine=engine) as pool:
        with pytest.raises(share.WorkerDied, match=r"a (dask|ray) worker died"):
            pool.submit(tasks.die).result(PATIENCE_S)
        assert pool.submit(tasks.square, 3).result(PATIENCE_S) == 9


def test_a_cluster_that_does_not_answer_is_one_sentence() -> None:
    with dask.config.set({"distributed.comm.timeouts.connect": "100ms"}):  # noqa: SIM117
        with pytest.raises(EngineError, match=r"no dask scheduler answers at tcp://127\.0\.0\.1:9"):
            share.Pool(engine="tcp://127.0.0.1:9")


joblib: Any = import_module("joblib")


def test_joblib_runs_what_it_is_given_on_a_cluster(client: Any) -> None:
    register()
    with joblib.parallel_config("ungil", n_jobs=2, engine=client):
        delayed: Callable[..., Any] = joblib.delayed(tasks.square)
        assert joblib.Parallel()(map(delayed, range(20))) == [number**2 for number in range(20)]
