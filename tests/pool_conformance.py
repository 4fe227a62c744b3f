"""CPython's own tests of ProcessPoolExecutor, run against `share.Pool`.

    PYTHONPATH=python python3.13 tests/pool_conformance.py [--quick] [METHOD...]

The tests are those of the Python that runs this (`test.test_concurrent_futures`, a package in 3.12
and later). Each METHOD is a way to start processes: fork, spawn or forkserver, by default fork.
`--quick` leaves out those that take seconds by themselves. Prints how many failed, and exits with 1
if one did.
"""

from __future__ import annotations

import importlib
import sys
import unittest
from collections.abc import Iterable, Iterator
from concurrent import futures
from typing import Any

from ungil import share

MODULES = ("as_completed", "deadlock", "init", "process_pool", "shutdown", "wait")

PRIVATE = "it replaces private parts of ProcessPoolExecutor"
ISOLATED = "its program is isolated, and imports ProcessPoolExecutor; tests/test_share_pool_ends.py"
WINDOWS = "it is about Windows"
WHOLE_POOL = "it wants the whole pool broken by one death; here one task fails"
ONE_TASK = "what cannot be unpickled fails its own task with its own error, and breaks nothing"
NEVER_PUT = "it counts the workers for tasks that cannot be pickled, for which none starts here"
NO_CALL_QUEUE = "it wants tasks to run that no worker has begun yet: there they cannot be cancelled"
FORK_REFUSED = "it wants max_tasks_per_child refused with fork, which share.Pool allows"

# Tests that do not apply, by name: why.
OMITTED = {
    "test_interpreter_shutdown": ISOLATED,
    "test_submit_after_interpreter_shutdown": ISOLATED,
    "test_hang_gh83386": ISOLATED,
    "test_max_workers_too_large": WINDOWS,
    "test_python_finalization_error": PRIVATE,
    "test_gh105829_should_not_deadlock_if_wakeup_pipe_full": PRIVATE,
    "test_force_shutdown_workers_invalid_op": PRIVATE,
    "test_terminate_workers": PRIVATE,
    "test_kill_workers": PRIVATE,
    "test_killed_child": WHOLE_POOL,
    "test_error_at_task_unpickle": ONE_TASK,
    "test_exit_at_task_unpickle": ONE_TASK,
    "test_error_during_result_unpickle_in_result_handler": ONE_TASK,
    "test_exit_during_result_unpickle_in_result_handler": ONE_TASK,
    "test_saturation": NEVER_PUT,
    "test_processes_terminate": NEVER_PUT,
}
# Only if processes are forked.
OMITTED_IF_FORKED = {"test_max_tasks_per_child": FORK_REFUSED}
# Only if they are not.
OMITTED_IF_SPAWNED = {"test_cancel_futures": NO_CALL_QUEUE}
# They wait for seconds.
SLOW = {"test_duplicate_futures", "test_map_timeout", "test_hang_issue12364", "test_timeout"}
SLOW_MODULES = {"as_completed", "wait"}


class _Queue:
    def join_thread(self) -> None:
        """There is no such thread."""


class Executor(share.Pool):
    """What the tests look at, under its private names."""

    _call_queue = _Queue()

    @property
    def _max_workers(self) -> int:
        return self._core.staff.size

    @property
    def _processes(self) -> Any:
        return self._core.staff.processes

    @property
    def _mp_context(self) -> Any:
        return self._core.staff.context

    @property
    def _broken(self) -> Any:
        return self._core.broken

    @property
    def _executor_manager_thread(self) -> Any:
        return self._core.staff.warden


def cases(methods: list[str], modules: Iterable[str]) -> Iterator[Any]:
    """The classes of tests of pools of processes that are started so."""
    for name in modules:
        module: Any = importlib.import_module(f"test.test_concurrent_futures.test_{name}")
        members: dict[str, Any] = {**vars(module)}
        for case in members.values():
            if getattr(case, "ctx", None) in methods and issubclass(case, unittest.TestCase):
                case.executor_type = Executor  # type: ignore[attr-defined]  # pyright: ignore
                yield case


def suite(methods: list[str], is_quick: bool) -> unittest.TestSuite:
    """The tests that apply."""
    chosen = unittest.TestSuite()
    modules = [name for name in MODULES if not (is_quick and name in SLOW_MODULES)]
    for case in cases(methods, modules):
        omitted = {*OMITTED, *(OMITTED_IF_FORKED if case.ctx == "fork" else OMITTED_IF_SPAWNED)}
        omitted |= SLOW if is_quick else set()
        for name in unittest.defaultTestLoader.getTestCaseNames(case):
            if name not in omitted:
                chosen.addTest(case(name))
    return chosen


def main() -> None:
    """Runs them."""
    futures.ProcessPoolExecutor = Executor  # type: ignore[misc,assignment]  # pyright: ignore
    # What takes long by the clock, and little of anything else, is left out.
    support: Any = importlib.import_module("test.support")
    support.use_resources = {}
    methods = [word for word in sys.argv[1:] if word != "--quick"] or ["fork"]
    chosen = suite(methods, "--quick" in sys.argv)
    done = unittest.TextTestRunner(stream=sys.stderr).run(chosen)
    version = ".".join(map(str, sys.version_info[:3]))
    print(
        f"{done.testsRun} tests of CPython {version} ({', '.join(methods)}): "
        f"{len(done.failures) + len(done.errors)} failed, {len(done.skipped)} skipped by themselves"
    )
    sys.exit(not (done.testsRun and done.wasSuccessful()))


if __name__ == "__main__":
    main()
