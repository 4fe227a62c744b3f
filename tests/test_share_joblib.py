"""`share.Pool` under joblib.

Workers are forked here, so no cluster runs in this process: a child has none of its threads, and a
lock that one of them had is never let go of there.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

import pytest
import share_pool_tasks as tasks
from suite import PATIENCE_S

from ungil import share
from ungil.share.joblib import UngilBackend, register

joblib: Any = import_module("joblib")


def squares(numbers: range) -> list[int]:
    delayed: Callable[..., Any] = joblib.delayed(tasks.square)
    parallel = joblib.Parallel()
    return parallel(delayed(number) for number in numbers)


def test_joblib_runs_what_it_is_given_in_a_pool() -> None:
    register()
    with joblib.parallel_config("ungil", n_jobs=2, mp_context="fork"):
        assert squares(range(200)) == [number**2 for number in range(200)]
    with joblib.parallel_config("ungil", n_jobs=2, mp_context="fork"):
        parallel = joblib.Parallel()
        with pytest.raises(LookupError, match="in a worker"):
            parallel(joblib.delayed(tasks.fail)("in a worker") for _ in range(4))
        # Another one: what else failed of that call may still be on its way to it.
        with joblib.Parallel() as parallel:
            pids = {*parallel(joblib.delayed(tasks.pid)() for _ in range(4))}
            assert os.getpid() not in pids
            with pytest.raises(share.WorkerDied):
                parallel(joblib.delayed(tasks.die)() for _ in range(1))
            assert parallel(joblib.delayed(tasks.square)(n) for n in range(3)) == [0, 1, 4]


def test_a_joblib_before_1_5_keeps_no_options_of_a_backend() -> None:
    backend = UngilBackend()
    # As its constructor leaves it.
    vars(backend).pop("backend_kwargs", None)
    assert backend.configure(2, mp_context="fork") == 2
    assert backend.submit(partial(tasks.square, 3)).result(PATIENCE_S) == 9
    backend.abort_everything()
    assert backend.submit(partial(tasks.square, 4)).result(PATIENCE_S) == 16
    backend.terminate()
