"""The nornir runner, beside nornir's own."""

from __future__ import annotations

import asyncio
import functools
import logging
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from nornir.core.exceptions import NornirExecutionError
from nornir.core.inventory import Host
from nornir.core.task import AggregatedResult, MultiResult, Result, Task
from nornir.plugins.runners import SerialRunner, ThreadedRunner
from nornir_tasks import (
    NAMES,
    TWINS,
    Diary,
    failed_hosts,
    nests,
    nornir,
    nornir_of,
    observed,
    plain,
    plain_async,
    raises_on_leaf1,
    told,
)
from suite import PATIENCE_S

from ungil.fanout import Mode
from ungil.fanout.nornir import (
    AsyncTaskOnSyncRunnerError,
    HostTask,
    SyncTaskOnAsyncRunnerError,
    UngilRunner,
)


@pytest.mark.parametrize(("task", "twin", "options"), TWINS)
def test_results_and_what_processors_see_are_those_of_nornirs_own_runners(
    task: Callable[..., Any], twin: Callable[..., Any], options: dict[str, Any]
) -> None:
    own = observed(SerialRunner(), task, options)
    assert own[0][1] == [(name, told_of) for name, told_of in own[0][1]]
    assert [name for name, _ in own[0][1]] == NAMES
    assert observed(ThreadedRunner(), task, options) == own
    assert observed(UngilRunner(), task, options) == own
    assert observed(UngilRunner(num_workers=1), task, options) == own
    named = {**options, "name": task.__name__}
    assert observed(UngilRunner(mode="asyncio"), twin, named) == own
    assert observed(UngilRunner(mode="asyncio", num_workers=1), twin, named) == own


def test_each_host_has_a_task_of_its_own_with_parameters_of_its_own() -> None:
    tasks: list[Task] = []

    def keeps(task: Task, word: str) -> None:
        task.params["word"] = word * 2
        tasks.append(task)

    assert not nornir(UngilRunner()).run(keeps, word="a").failed
    assert len({id(task) for task in tasks}) == len(NAMES)
    assert all(task.params == {"word": "aa"} for task in tasks)
    assert all(isinstance(task, HostTask) for task in tasks)


def test_raise_on_error_raises_and_marks_nobody() -> None:
    nr = nornir(UngilRunner())
    with pytest.raises(NornirExecutionError) as raised:
        nr.run(raises_on_leaf1, raise_on_error=True)
    assert "# leaf1 (failed)" in str(raised.value)
    assert "# leaf2 (succeeded)" in str(raised.value)
    assert failed_hosts(nr) == set()


def test_hosts_that_have_failed_are_left_out_until_they_are_asked_for() -> None:
    nr = nornir(UngilRunner())
    assert nr.run(raises_on_leaf1).failed
    assert "leaf1" not in nr.run(plain)
    assert list(nr.run(plain, on_good=False, on_failed=True)) == ["leaf1"]
    assert list(nr.run(plain, on_failed=True)) == [*(n for n in NAMES if n != "leaf1"), "leaf1"]


def test_it_runs_for_the_hosts_of_a_filter_and_for_none() -> None:
    nr = nornir(UngilRunner())
    assert list(nr.filter(site="ams").run(plain)) == ["leaf1", "spine1"]
    assert nr.filter(site="nowhere").run(plain) == {}
    assert nr.filter(site="nowhere").with_runner(UngilRunner(mode="asyncio")).run(plain_async) == {}


def test_so_many_workers_are_used_and_no_more() -> None:
    two_are_there = threading.Barrier(2, timeout=PATIENCE_S)
    running = 0

    def meets(task: Task) -> int:
        nonlocal running
        running += 1
        two_are_there.wait()
        most = running
        two_are_there.wait()
        running -= 1
        return most

    def has_a_site(host: Host) -> bool:
        return "site" in host

    nr = nornir(UngilRunner(num_workers=2)).filter(filter_func=has_a_site)
    assert {results[0].result for results in nr.run(meets).values()} == {2}


# What only this runner has.


def test_a_coroutine_whose_time_is_over_ends_and_what_it_had_is_kept() -> None:
    pages: dict[str, list[tuple[Any, ...]]] = {}
    ended: list[str] = []

    async def hangs(task: HostTask) -> None:
        await task.arun(plain_async)
        if task.host.name == "spine1":
            try:
                await asyncio.Event().wait()
            finally:
                ended.append(task.host.name)

    nr = nornir(UngilRunner(timeout=0.9)).with_processors([Diary("only", pages)])
    result = nr.run(hangs)
    assert list(result) == NAMES
    assert failed_hosts(nr) == {"spine1"}
    assert ended == ["spine1"]
    overall, first = result["spine1"]
    assert type(overall.exception) is TimeoutError
    assert overall.result == "TimeoutError: not done within 0.9 s"
    assert (overall.name, overall.host) == ("hangs", nr.inventory.hosts["spine1"])
    assert (overall.failed, overall.severity_level) == (True, logging.ERROR)
    assert first.result == "spine1"
    assert [entry[1:3] for entry in pages["spine1"]] == [
        ("started", "hangs"),
        ("began", "plain_async"),
        ("ended", "plain_async"),
        ("completed", "hangs"),
    ]


def test_a_thread_whose_time_is_over_goes_on_and_changes_nothing_any_more() -> None:
    pages: dict[str, list[tuple[Any, ...]]] = {}
    release = threading.Event()

    def hangs(task: Task) -> str:
        task.run(plain, name="first")
        if task.host.name == "leaf1":
            assert release.wait(PATIENCE_S)
            task.run(plain, name="second")
        return "done"

    nr = nornir(UngilRunner(timeout=0.9)).with_processors([Diary("only", pages)])
    result = nr.run(hangs)
    before = told(result), [entry[1:3] for entry in pages["leaf1"]]
    assert type(result["leaf1"].exception) is TimeoutError
    assert before[1] == [
        ("started", "hangs"),
        ("began", "first"),
        ("ended", "first"),
        ("completed", "hangs"),
    ]
    waiting = [t for t in threading.enumerate() if t.name.startswith("fanout-")]
    release.set()
    for thread in waiting:
        thread.join(PATIENCE_S)
    assert (told(result), [entry[1:3] for entry in pages["leaf1"]]) == before


def test_a_task_that_fails_is_run_again_and_processors_see_one_begin_and_one_end() -> None:
    pages: dict[str, list[tuple[Any, ...]]] = {}
    runs: list[str] = []

    def comes_round(task: Task) -> int | Result:
        runs.append(task.host.name)
        task.run(plain, name="first")
        if task.host.name == "leaf1" and runs.count("leaf1") < 3:
            raise OSError("not yet")
        if task.host.name == "spine1":
            return Result(task.host, failed=True)
        return runs.count(task.host.name)

    runner = UngilRunner(retries=2, backoff={"first": 0.001, "jitter": 0})
    nr = nornir(runner).with_processors([Diary("only", pages)])
    result = nr.run(comes_round)
    assert {name: runs.count(name) for name in NAMES} == {
        "leaf2": 1,
        "leaf1": 3,
        "spine2": 1,
        "spine1": 3,
        "border": 1,
    }
    assert result["leaf1"][0].result == 3
    assert [one.name for one in result["leaf1"]] == ["comes_round", "first"]
    assert list(result.failed_hosts) == ["spine1"]
    for host in ("leaf1", "spine1"):
        words = [entry[1] for entry in pages[host]]
        assert words == ["started", *["began", "ended"] * 3, "completed"]
    assert pages["spine1"][-1][3][1] is True


def test_a_coroutine_that_hangs_once_is_run_again() -> None:
    runs: list[str] = []
    pages: dict[str, list[tuple[Any, ...]]] = {}

    async def hangs_once(task: HostTask) -> int:
        runs.append(task.host.name)
        if task.host.name == "border" and runs.count("border") == 1:
            await asyncio.Event().wait()
        return runs.count(task.host.name)

    runner = UngilRunner(timeout=1, retries=1, backoff={"first": 0.001})
    result = nornir(runner).with_processors([Diary("only", pages)]).run(hangs_once)
    assert {name: results[0].result for name, results in result.items()} == {
        **dict.fromkeys(NAMES, 1),
        "border": 2,
    }
    assert [entry[1] for entry in pages["border"]] == ["started", "completed"]


def first_letters(host: Host) -> str:
    return host.name[:2]


@pytest.mark.parametrize(
    ("options", "together"),
    [
        ({"per_group": 1}, [{"leaf1", "leaf2"}, {"spine1", "spine2"}]),
        ({"per_group": 1, "group": "groups"}, [{"leaf1", "leaf2"}, {"spine1", "spine2"}]),
        ({"per_group": {"leaf": 1}}, [{"leaf1", "leaf2"}]),
        ({"per_group": 1, "group": "site"}, [{"leaf1", "spine1"}, {"leaf2", "spine2"}]),
        ({"per_group": {"leaf": 1}, "group": "role"}, [{"leaf1", "leaf2"}]),
        ({"per_group": {"le": 1}, "group": first_letters}, [{"leaf1", "leaf2"}]),
    ],
)
def test_of_one_group_only_so_many_run_at_once(
    options: dict[str, Any], together: list[set[str]]
) -> None:
    running: set[str] = set()
    seen: list[set[str]] = []

    async def looks_around(task: HostTask) -> None:
        running.add(task.host.name)
        seen.append(set(running))
        await asyncio.sleep(0)
        seen.append(set(running))
        running.remove(task.host.name)

    # A limit that is found out lets those of one group begin one after the other.
    assert not nornir(UngilRunner(num_workers=5, **options)).run(looks_around).failed
    for group in together:
        assert max(len(group & at_once) for at_once in seen) == 1
    assert max(len(at_once) for at_once in seen) >= len(NAMES) - len(together)


def test_a_rate_spreads_the_hosts() -> None:
    starts: list[float] = []

    async def begins(task: HostTask) -> None:
        starts.append(time.monotonic())

    assert not nornir(UngilRunner(rate=20)).run(begins).failed
    # Four times 50 ms; what comes late itself is not asked for more.
    assert starts[-1] - starts[0] >= 0.15


def test_what_would_end_the_program_is_the_failure_of_its_host() -> None:
    pages: dict[str, list[tuple[Any, ...]]] = {}

    def leaves(task: Task) -> None:
        if task.host.name == NAMES[0]:
            raise SystemExit("enough")

    nr = nornir(UngilRunner(num_workers=1)).with_processors([Diary("only", pages)])
    result = nr.run(leaves)
    assert list(result.failed_hosts) == NAMES[:1]
    assert isinstance(result[NAMES[0]].exception, SystemExit)
    for name in NAMES:
        assert [entry[1] for entry in pages[name]] == ["started", "completed"]


@pytest.mark.parametrize("timeout", [None, 60.0])
def test_the_subtasks_before_a_system_exit_have_their_results(timeout: float | None) -> None:
    def leaves(task: Task) -> None:
        task.run(plain)
        raise SystemExit("enough")

    async def leaves_async(task: HostTask) -> None:
        await task.arun(plain_async)
        raise SystemExit("enough")

    for task, subtask in ((leaves, "plain"), (leaves_async, "plain_async")):
        result = nornir(UngilRunner(timeout=timeout)).run(task)
        for name in NAMES:
            assert [one.name for one in result[name]] == [task.__name__, subtask]
            assert isinstance(result[name].exception, SystemExit)


def test_what_a_processor_raises_is_raised_after_everything_has_run() -> None:
    class Broken(Diary):
        def task_instance_completed(self, task: Task, host: Host, result: MultiResult) -> None:
            super().task_instance_completed(task, host, result)
            if host.name.startswith("leaf"):
                raise LookupError(host.name)

    for runner, task in [
        (ThreadedRunner(), plain),
        (UngilRunner(num_workers=1), plain),
        (UngilRunner(num_workers=1, retries=1), plain),
        (UngilRunner(num_workers=1), plain_async),
    ]:
        pages: dict[str, list[tuple[Any, ...]]] = {}
        nr = nornir(runner).with_processors([Broken("only", pages)])
        with pytest.raises(LookupError, match="leaf2"):
            nr.run(task)
        assert {name: len(pages[name]) for name in NAMES} == dict.fromkeys(NAMES, 2)


def test_it_can_be_used_where_an_event_loop_runs() -> None:
    async def notebook(task: Callable[..., Any]) -> AggregatedResult:
        return nornir(UngilRunner()).run(task)

    for task in (plain, plain_async):
        result = asyncio.run(notebook(task))
        assert [results[0].result for results in result.values()] == NAMES


# Coroutines and others, where they do not belong.


@pytest.mark.parametrize("mode", ["threads", "green"])
def test_an_async_def_is_refused_by_modes_that_would_not_await_it(mode: Mode) -> None:
    nr = nornir(UngilRunner(mode=mode))
    with pytest.raises(AsyncTaskOnSyncRunnerError, match=f"plain_async is an async def.*{mode}"):
        nr.run(plain_async)


@pytest.mark.parametrize("mode", ["lean", "asyncio"])
def test_a_task_that_would_block_the_loop_is_refused(mode: Mode) -> None:
    nr = nornir(UngilRunner(mode=mode))
    with pytest.raises(SyncTaskOnAsyncRunnerError, match=f"plain is not an async def.*{mode}"):
        nr.run(plain)


def test_an_async_subtask_of_a_sync_task_fails_instead_of_never_running() -> None:
    def mistaken(task: Task) -> None:
        task.run(plain_async)

    result = nornir(UngilRunner()).run(mistaken)
    for results in result.values():
        assert isinstance(results[0].exception, AsyncTaskOnSyncRunnerError)
        assert "`await task.arun(plain_async)`" in str(results[0].exception)


def test_a_sync_subtask_of_an_async_task_fails_instead_of_blocking_all_hosts() -> None:
    async def runs(task: HostTask) -> None:
        task.run(plain)

    for results in nornir(UngilRunner()).run(runs).values():
        assert isinstance(results[0].exception, SyncTaskOnAsyncRunnerError)
        assert "`await task.arun(plain)`" in str(results[0].exception)


def test_a_sync_subtask_of_an_async_task_fails_where_there_are_no_threads() -> None:
    async def awaits(task: HostTask) -> None:
        await task.arun(plain)

    for results in nornir(UngilRunner(mode="lean")).run(awaits).values():
        assert isinstance(results[0].exception, SyncTaskOnAsyncRunnerError)
        assert "plain is not an async def" in str(results[0].exception)


def test_a_sync_subtask_of_an_async_task_runs_in_a_thread() -> None:
    async def sends(task: HostTask) -> str:
        await task.arun(nests, level=0, name="in a thread")
        return "never here"

    def just_runs(task: Task) -> str:
        task.run(nests, level=0, name="in a thread")
        return "never here"

    own = observed(SerialRunner(), just_runs, {"name": "twin"})
    assert observed(UngilRunner(), sends, {"name": "twin"}) == own


def test_sync_subtasks_of_as_many_hosts_run_at_once_as_hosts_do() -> None:
    # More than asyncio's own executor has threads on any machine.
    count = 50
    all_there = threading.Barrier(count)

    def meet(task: Task) -> None:
        all_there.wait(PATIENCE_S)

    async def send(task: HostTask) -> None:
        await task.arun(meet)

    result = nornir_of(count, UngilRunner(count)).run(send)
    assert len(result) == count
    assert not result.failed


def test_a_task_that_returns_a_coroutine_is_an_error_and_no_success() -> None:
    def disguised(task: HostTask) -> object:
        return plain_async(task)

    with pytest.raises(AsyncTaskOnSyncRunnerError, match="returned a coroutine"):
        nornir(UngilRunner()).run(disguised)


def test_a_task_may_be_a_partial_or_an_object() -> None:
    class Backup:
        async def __call__(self, task: HostTask, suffix: str) -> str:
            return task.host.name + suffix

    nr = nornir(UngilRunner())
    for result in (
        nr.run(Backup(), name="backup", suffix="!"),
        nr.run(functools.partial(Backup(), suffix="!"), name="backup"),
    ):
        assert [results[0].result for results in result.values()] == [f"{n}!" for n in NAMES]
