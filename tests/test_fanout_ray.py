"""Fan-outs over a real ray cluster on this machine."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import fanout_functions as functions
import pytest

from ungil.errors import WorkerDied
from ungil.fanout import fanout

ray: Any = import_module("ray")


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("PYTHONPATH", str(Path(__file__).parent))
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error")
        yield
        ray.shutdown()


def test_outcomes_come_in_the_order_of_the_items_from_all_workers() -> None:
    outcomes = list(fanout(functions.double, range(3000), engine="ray", limit=100))
    assert [(o.index, o.item, o.value) for o in outcomes] == [(n, n, 2 * n) for n in range(3000)]


def test_any_function_and_value_can_cross_and_what_cannot_says_so(tmp_path: Path) -> None:
    items: list[Any] = ["met", "raises", "unloadable", "stubborn", functions.Stubborn()]

    def peculiar(item: Any) -> Any:
        return (
            (lambda: functions.meet((tmp_path, 1))) if item == "met" else functions.peculiar(item)
        )

    met, *failed = fanout(peculiar, items, engine=ray)
    assert met.unwrap()() == os.getpid()
    kinds = [type(outcome.exception).__name__ for outcome in failed]
    assert kinds == ["KeyError", "NotCarried", "NotCarried", "NotCarried"]


def test_a_worker_that_is_killed_loses_no_item_and_one_that_kills_is_found(tmp_path: Path) -> None:
    processes, go = tmp_path / "processes", tmp_path / "go"
    processes.mkdir()
    go.mkdir()

    def kill_one() -> None:
        functions.wait_for(processes, 2)
        os.kill(int(next(processes.iterdir()).name), signal.SIGKILL)
        (go / "now").touch()

    def run(number: int) -> int:
        functions.die((number, "exit" if number == 23 else ""))
        return functions.mark_and_wait((processes, go, number))

    killer = threading.Thread(target=kill_one)
    killer.start()
    outcomes = list(fanout(run, range(60), engine="ray", limit=10))
    killer.join()
    assert [outcome.index for outcome in outcomes if not outcome.ok] == [23]
    assert isinstance(outcomes[23].exception, WorkerDied)
    assert [outcome.value for outcome in outcomes if outcome.ok] == [
        number for number in range(60) if number != 23
    ]


def test_a_loop_that_is_left_cancels_what_runs(tmp_path: Path) -> None:
    for outcome in fanout(functions.hang, [None, None, tmp_path], engine="ray", limit=4):
        assert outcome.ok
        break
    names = [path.name.partition("-")[0] for path in tmp_path.iterdir()]
    assert names.count("begun") == names.count("cancelled")
    assert ray.is_initialized()
