"""The nornir runner, beside nornir's own."""

from __future__ import annotations

import asyncio
import functools
import logging
import socketserver
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Generator
from importlib import metadata
from pathlib import Path
from typing import Any, ClassVar

import pytest
from nornir import InitNornir
from nornir.core import Nornir
from nornir.core.exceptions import NornirExecutionError, NornirSubTaskError
from nornir.core.inventory import (
    ConnectionOptions,
    Defaults,
    Group,
    Groups,
    Host,
    Hosts,
    Inventory,
    ParentGroups,
)
from nornir.core.plugins.connections import ConnectionPluginRegister
from nornir.core.task import AggregatedResult, MultiResult, Result, Task
from nornir.plugins.runners import SerialRunner, ThreadedRunner

from ungil.fanout.nornir import (
    AsyncTaskOnSyncRunnerError,
    HostTask,
    SyncTaskOnAsyncRunnerError,
    UngilRunner,
)

PATIENCE_S = 60
NAMES = ["leaf2", "leaf1", "spine2", "spine1", "border"]


def inventory() -> Inventory:
    """Some hosts of two groups and two sites, and one without either."""
    defaults = Defaults(data={"domain": "example"})
    groups = Groups({name: Group(name, data={"role": name}) for name in ("leaf", "spine")})
    hosts = Hosts()
    for name in NAMES:
        parents = ParentGroups([groups[name[:-1]]] if name[:-1] in groups else [])
        data = {} if name == "border" else {"site": "ams" if name.endswith("1") else "fra"}
        hosts[name] = Host(name, groups=parents, data=data, defaults=defaults)
    return Inventory(hosts=hosts, groups=groups, defaults=defaults)


def nornir(runner: Any) -> Nornir:
    return Nornir(inventory=inventory(), runner=runner)


# The same tasks, once as nornir has them and once as coroutines.


def plain(task: Task) -> str:
    return task.host.name


async def plain_async(task: HostTask) -> str:
    await asyncio.sleep(0)
    return task.host.name


def makes_a_result(task: Task, **attributes: Any) -> Result:
    return Result(task.host, result=task.host["domain"], **attributes)


async def makes_a_result_async(task: HostTask, **attributes: Any) -> Result:
    return makes_a_result(task, **attributes)


def raises_on_leaf1(task: Task) -> None:
    if task.host.name == "leaf1":
        raise LookupError("of the host")


async def raises_on_leaf1_async(task: HostTask) -> None:
    await asyncio.sleep(0)
    raises_on_leaf1(task)


def nests(task: Task, level: int = 2) -> str:
    task.run(plain, name="first")
    if level:
        task.run(nests, level=level - 1, severity_level=logging.WARNING)
    task.run(raises_on_leaf1)
    return f"level {level}"


async def nests_async(task: HostTask, level: int = 2) -> str:
    await task.arun(plain_async, name="first")
    if level:
        await task.arun(nests_async, level=level - 1, severity_level=logging.WARNING, name="nests")
    await task.arun(raises_on_leaf1_async, name="raises_on_leaf1")
    return f"level {level}"


def captures(task: Task) -> str:
    try:
        task.run(raises_on_leaf1)
    except NornirSubTaskError as error:
        return f"captured {error}"
    return "nothing to capture"


async def captures_async(task: HostTask) -> str:
    try:
        await task.arun(raises_on_leaf1_async, name="raises_on_leaf1")
    except NornirSubTaskError as error:
        return f"captured {error}"
    return "nothing to capture"


def dry(task: Task) -> tuple[bool, bool]:
    return task.is_dry_run(), task.is_dry_run(False)


async def dry_async(task: HostTask) -> tuple[bool, bool]:
    return dry(task)


TWINS: list[tuple[Callable[..., Any], Callable[..., Any], dict[str, Any]]] = [
    (plain, plain_async, {}),
    (plain, plain_async, {"severity_level": logging.WARNING}),
    (makes_a_result, makes_a_result_async, {"changed": True, "diff": "+ a line"}),
    (makes_a_result, makes_a_result_async, {"failed": True}),
    (makes_a_result, makes_a_result_async, {"failed": True, "severity_level": logging.CRITICAL}),
    (makes_a_result, makes_a_result_async, {"stdout": "said", "anything": ["else"]}),
    (raises_on_leaf1, raises_on_leaf1_async, {}),
    (nests, nests_async, {}),
    (captures, captures_async, {}),
    (dry, dry_async, {}),
]


class Diary:
    """A processor that writes down for each host what it is told, and by which it was told."""

    def __init__(self, name: str, pages: dict[str, list[tuple[Any, ...]]]) -> None:
        self.name = name
        self.pages = pages

    def _write(self, page: str, *words: Any) -> None:
        self.pages.setdefault(page, []).append((self.name, *words))

    def task_started(self, task: Task) -> None:
        self._write("run", "started", task.name)

    def task_completed(self, task: Task, result: AggregatedResult) -> None:
        self._write("run", "completed", task.name, list(result), sorted(result.failed_hosts))

    def task_instance_started(self, task: Task, host: Host) -> None:
        self._write(host.name, "started", task.name, task.host.name)

    def task_instance_completed(self, task: Task, host: Host, result: MultiResult) -> None:
        self._write(host.name, "completed", task.name, told(result))

    def subtask_instance_started(self, task: Task, host: Host) -> None:
        assert task.parent_task is not None
        self._write(host.name, "began", task.name, task.parent_task.name)

    def subtask_instance_completed(self, task: Task, host: Host, result: MultiResult) -> None:
        self._write(host.name, "ended", task.name, told(result))


def told(result: Any) -> Any:
    """What is in a result, comparable: an exception by its type, a traceback by its last line."""
    if isinstance(result, AggregatedResult):
        return result.name, [(name, told(results)) for name, results in result.items()]
    if isinstance(result, MultiResult):
        return result.name, result.failed, result.changed, [told(one) for one in result]
    attributes = vars(result) | {
        "host": result.host.name,
        "exception": (type(result.exception), str(result.exception)),
    }
    if isinstance(result.result, str):
        attributes["result"] = result.result.splitlines()[-1:]
    return attributes


def observed(runner: Any, task: Callable[..., Any], options: dict[str, Any]) -> tuple[Any, ...]:
    """Everything that can be seen of a run."""
    pages: dict[str, list[tuple[Any, ...]]] = {}
    nr = nornir(runner).with_processors([Diary("first", pages), Diary("second", pages)])
    nr.data.dry_run = True
    result = nr.run(task, **options)
    assert type(result) is AggregatedResult
    assert all(type(results) is MultiResult for results in result.values())
    return told(result), pages, nr.data.failed_hosts


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

    def keeps(task: Task, number: int) -> None:
        task.params["number"] = number + 1
        tasks.append(task)

    assert not nornir(UngilRunner()).run(keeps, number=1).failed
    assert len({id(task) for task in tasks}) == len(NAMES)
    assert all(task.params == {"number": 2} for task in tasks)
    assert all(isinstance(task, HostTask) for task in tasks)


def test_raise_on_error_raises_and_marks_nobody() -> None:
    nr = nornir(UngilRunner())
    with pytest.raises(NornirExecutionError) as raised:
        nr.run(raises_on_leaf1, raise_on_error=True)
    assert list(raised.value.failed_hosts) == ["leaf1"]
    assert nr.data.failed_hosts == set()


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

    nr = nornir(UngilRunner(num_workers=2)).filter(filter_func=lambda host: host.name != "border")
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

    nr = nornir(UngilRunner(timeout=0.05)).with_processors([Diary("only", pages)])
    result = nr.run(hangs)
    assert list(result) == NAMES
    assert nr.data.failed_hosts == {"spine1"}
    assert ended == ["spine1"]
    overall, first = result["spine1"]
    assert type(overall.exception) is TimeoutError
    assert overall.result == "TimeoutError: not done within 0.05 s"
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

    nr = nornir(UngilRunner(timeout=0.2)).with_processors([Diary("only", pages)])
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

    def comes_round(task: Task) -> int:
        runs.append(task.host.name)
        task.run(plain, name="first")
        if task.host.name == "leaf1" and runs.count("leaf1") < 3:
            raise OSError("not yet")
        if task.host.name == "spine1":
            return Result(task.host, failed=True)  # type: ignore[return-value]
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

    runner = UngilRunner(timeout=0.05, retries=1, backoff={"first": 0.001})
    result = nornir(runner).with_processors([Diary("only", pages)]).run(hangs_once)
    assert {name: results[0].result for name, results in result.items()} == {
        **dict.fromkeys(NAMES, 1),
        "border": 2,
    }
    assert [entry[1] for entry in pages["border"]] == ["started", "completed"]


@pytest.mark.parametrize(
    ("options", "together"),
    [
        ({"per_group": 1}, [{"leaf1", "leaf2"}, {"spine1", "spine2"}]),
        ({"per_group": 1, "group": "groups"}, [{"leaf1", "leaf2"}, {"spine1", "spine2"}]),
        ({"per_group": {"leaf": 1}}, [{"leaf1", "leaf2"}]),
        ({"per_group": 1, "group": "site"}, [{"leaf1", "spine1"}, {"leaf2", "spine2"}]),
        ({"per_group": {"leaf": 1}, "group": "role"}, [{"leaf1", "leaf2"}]),
        ({"per_group": {"le": 1}, "group": lambda host: host.name[:2]}, [{"leaf1", "leaf2"}]),
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

    assert not nornir(UngilRunner(**options)).run(looks_around).failed
    for group in together:
        assert max(len(group & at_once) for at_once in seen) == 1
    assert max(len(at_once) for at_once in seen) >= len(NAMES) - len(together)


def test_a_rate_spreads_the_hosts() -> None:
    starts: list[float] = []

    def begins(task: Task) -> None:
        starts.append(time.monotonic())

    assert not nornir(UngilRunner(rate=100)).run(begins).failed
    assert starts[-1] - starts[0] >= 0.039


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
def test_an_async_def_is_refused_by_modes_that_would_not_await_it(mode: str) -> None:
    nr = nornir(UngilRunner(mode=mode))
    with pytest.raises(AsyncTaskOnSyncRunnerError, match=f"plain_async is an async def.*{mode}"):
        nr.run(plain_async)


@pytest.mark.parametrize("mode", ["lean", "asyncio"])
def test_a_task_that_would_block_the_loop_is_refused(mode: str) -> None:
    nr = nornir(UngilRunner(mode=mode))
    with pytest.raises(SyncTaskOnAsyncRunnerError, match=f"plain is no async def.*{mode}"):
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

    async def awaits(task: HostTask) -> None:
        await task.arun(plain)

    for mistaken in (runs, awaits):
        for results in nornir(UngilRunner()).run(mistaken).values():
            assert isinstance(results[0].exception, SyncTaskOnAsyncRunnerError)
            assert "`await asyncio.to_thread(task.run, plain)`" in str(results[0].exception)


def test_a_sync_subtask_of_an_async_task_can_be_sent_to_a_thread() -> None:
    async def sends(task: HostTask) -> str:
        await asyncio.to_thread(task.run, nests, level=0, name="in a thread")
        return "never here"

    def just_runs(task: Task) -> str:
        task.run(nests, level=0, name="in a thread")
        return "never here"

    own = observed(SerialRunner(), just_runs, {"name": "twin"})
    assert observed(UngilRunner(), sends, {"name": "twin"}) == own


def test_a_task_that_returns_a_coroutine_is_an_error_and_no_success() -> None:
    with pytest.raises(AsyncTaskOnSyncRunnerError, match="has returned a coroutine"):
        nornir(UngilRunner()).run(lambda task: plain_async(task), name="disguised")


def test_a_task_may_be_a_partial_or_an_object() -> None:
    class Backup:
        async def __call__(self, task: HostTask, suffix: str) -> str:
            return task.host.name + suffix

    for task in (Backup(), functools.partial(Backup(), suffix="!")):
        suffix = {} if isinstance(task, functools.partial) else {"suffix": "!"}
        result = nornir(UngilRunner()).run(task, name="backup", **suffix)
        assert [results[0].result for results in result.values()] == [f"{n}!" for n in NAMES]


# Being configured.


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_workers": 0}, 'num_workers=0 is neither "auto" nor a number from 1 up'),
        ({"num_workers": "all"}, "num_workers='all' is neither"),
        ({"mode": "fast"}, "mode='fast' is none of auto, lean, asyncio, threads, green"),
        ({"timeout": 0}, "timeout=0 is not a number of seconds above 0"),
        ({"per_group": 0}, "per_group=0 is below 1"),
        ({"backoff": {"first": -1}}, "backoff's first=-1 is below 0"),
    ],
)
def test_options_without_sense_are_refused_in_one_sentence(
    options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message) as refused:
        UngilRunner(**options)
    assert "\n" not in str(refused.value)


def test_options_are_refused_that_it_does_not_have() -> None:
    with pytest.raises(TypeError, match="num_worker"):
        UngilRunner(num_worker=3)  # type: ignore[call-arg]


def test_it_says_how_many_workers_it_has_as_a_number() -> None:
    assert UngilRunner(num_workers=7).num_workers == 7
    assert UngilRunner().num_workers >= 1_000_000


def test_it_is_registered_under_its_name() -> None:
    [entry_point] = metadata.entry_points(group="nornir.plugins.runners", name="ungil")
    assert entry_point.load() is UngilRunner


def test_a_configuration_file_chooses_it_with_all_its_options(tmp_path: Path) -> None:
    (tmp_path / "hosts.yaml").write_text("a: {data: {site: ams}}\nb: {}\n")
    (tmp_path / "config.yaml").write_text(
        textwrap.dedent(f"""
            inventory:
              plugin: SimpleInventory
              options: {{host_file: {tmp_path}/hosts.yaml}}
            logging: {{enabled: false}}
            runner:
              plugin: ungil
              options:
                num_workers: 50
                mode: threads
                timeout: 30
                retries: 1
                backoff: {{first: 0.5, most: 10}}
                rate: 1000
                per_group: {{ams: 1}}
                group: site
        """)
    )
    nr = InitNornir(config_file=str(tmp_path / "config.yaml"))
    assert isinstance(nr.runner, UngilRunner)
    assert nr.runner.num_workers == 50
    assert [results[0].result for results in nr.run(plain).values()] == ["a", "b"]


def test_loading_it_imports_nothing_that_nornir_has_not_imported() -> None:
    program = """
        import sys
        import nornir.core
        before = set(sys.modules)
        import ungil.fanout.nornir
        print(*sorted(set(sys.modules) - before))
    """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    ours = {"ungil", "ungil.errors", "ungil.fanout"}
    ours |= {f"ungil.fanout.{name}" for name in ("_mode", "_nornir_task", "nornir")}
    assert set(ended.stdout.split()) - set(sys.builtin_module_names) == ours


# Connections.


class Counted:
    """A connection plugin that counts."""

    opened: ClassVar[list[str]] = []
    closed: ClassVar[list[str]] = []

    def open(self, hostname: str | None, *_: Any, **__: Any) -> None:
        assert hostname is not None
        self.opened.append(hostname)
        self.connection = hostname

    def close(self) -> None:
        self.closed.append(self.connection)


@pytest.mark.parametrize("mode", ["auto", "threads", "asyncio"])
def test_connections_are_opened_once_for_each_host_and_closed(
    mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def uses(task: Task) -> str:
        task.run(lambda task: task.host.get_connection("counted", task.nornir.config), name="sub")
        return task.host.get_connection("counted", task.nornir.config)

    async def uses_async(task: HostTask) -> str:
        return task.host.get_connection("counted", task.nornir.config)

    monkeypatch.setattr(Counted, "opened", [])
    monkeypatch.setattr(Counted, "closed", [])
    ConnectionPluginRegister.register("counted", Counted)  # type: ignore[arg-type]
    try:
        with nornir(UngilRunner(mode=mode)) as nr:
            for name, host in nr.inventory.hosts.items():
                host.connection_options["counted"] = ConnectionOptions(hostname=f"{name}.example")
            for _ in range(2):
                result = nr.run(uses_async if mode == "asyncio" else uses)
                assert result["leaf1"][0].result == "leaf1.example"
            assert Counted.closed == []
    finally:
        ConnectionPluginRegister.deregister("counted")
    assert sorted(Counted.opened) == sorted(Counted.closed) == sorted(f"{n}.example" for n in NAMES)


# In green threads: nornir is unmodified, but this process must not be patched.


def run_patched(program: str, *arguments: str) -> str:
    """What a program prints that gevent has patched."""
    return run("from gevent import monkey; monkey.patch_all()", program, *arguments)


def run(first: str, program: str, *arguments: str) -> str:
    """What a program prints."""
    source = f"{first}\nimport logging; logging.disable()\n{textwrap.dedent(program)}"
    command = [sys.executable, "-c", source, *arguments]
    ended = subprocess.run(
        command, cwd=Path(__file__).parent, capture_output=True, text=True, timeout=120
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    return ended.stdout


def test_green_threads_have_the_results_of_nornirs_own_runners() -> None:
    run_patched("""
        from test_fanout_nornir import *
        for task, _, options in TWINS:
            own = observed(SerialRunner(), task, options)
            for runner in UngilRunner(), UngilRunner(mode="green", num_workers=2):
                assert observed(runner, task, options) == own, task
    """)


def test_a_green_thread_whose_time_is_over_ends_and_what_it_had_is_kept() -> None:
    run_patched("""
        from test_fanout_nornir import *
        ended = []
        def hangs(task):
            task.run(plain)
            if task.host.name == "spine1":
                try:
                    threading.Event().wait()
                except Exception:
                    ended.append("by an exception that tasks catch")
                finally:
                    ended.append(task.host.name)
        result = nornir(UngilRunner(timeout=0.05, retries=1, backoff={"first": 0})).run(hangs)
        assert list(result.failed_hosts) == ["spine1"]
        assert ended == ["spine1", "spine1"]
        overall, first = result["spine1"]
        assert type(overall.exception) is TimeoutError
        assert first.result == "spine1"
    """)


def test_an_unpatched_program_is_told_so_by_the_run() -> None:
    with pytest.raises(RuntimeError, match="needs a program that gevent has patched"):
        nornir(UngilRunner(mode="green")).run(plain)


# With what nornir's users have besides.


@pytest.mark.parametrize("task", [nests, nests_async])
def test_nornir_utils_prints_the_same(
    task: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    from nornir_utils.plugins.functions import print_result

    def printed(runner: Any, task: Callable[..., Any]) -> list[str]:
        result = nornir(runner).run(task, name="nests", level=1)
        result.pop("leaf1")  # whose traceback tells of the runner
        print_result(result)
        return capsys.readouterr().out.splitlines()

    lines = printed(SerialRunner(), nests)
    assert len(lines) > 4 * len(NAMES)
    assert printed(UngilRunner(), task) == lines


def test_nornir_richs_progress_bar_counts_every_host() -> None:
    from nornir_rich.progress_bar import RichProgressBar

    for runner, task in [
        (UngilRunner(), raises_on_leaf1),
        (UngilRunner(num_workers=2, retries=1, backoff={"first": 0.001}), raises_on_leaf1_async),
    ]:
        bar = RichProgressBar()
        result = nornir(runner).with_processors([bar]).run(task)
        assert bar.concurrent_count == min(runner.num_workers, len(NAMES))
        (total,) = bar.progress_total.tasks
        assert (total.total, total.completed) == (len(NAMES), len(NAMES))
        done = {str(task.description): task.completed for task in bar.progress_status.tasks}
        assert done == {
            "[green]Successful:": len(NAMES) - 1,
            "[orange3]Changed:": 0,
            "[red]Failed:": 1,
        }
        assert list(result.failed_hosts) == ["leaf1"]


class Device(socketserver.BaseRequestHandler):
    """A router's terminal by Telnet: it echoes what is typed, and answers each line."""

    def handle(self) -> None:
        name = self.request.getsockname()[0]
        self.server.sessions.append(name)  # type: ignore[attr-defined]
        self.request.sendall(b"router#")
        line = b""
        while typed := self.request.recv(4096):
            line += typed
            if not line.endswith(b"\n"):
                self.request.sendall(typed)
            elif line.startswith(b"exit"):
                break
            else:
                answer = f"answer of {name}\r\n" if line.strip() else ""
                self.request.sendall(typed + answer.encode() + b"router#")
                line = b""
        self.server.ended.append(name)  # type: ignore[attr-defined]


@pytest.fixture
def devices() -> Generator[socketserver.ThreadingTCPServer]:
    """At every address of the loopback network."""
    with socketserver.ThreadingTCPServer(("0.0.0.0", 0), Device) as server:
        server.daemon_threads = False  # so that leaving waits until all have hung up
        server.request_queue_size = 100
        server.sessions, server.ended = [], []  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("mode", ["threads", "green"])
@pytest.mark.parametrize("library", ["netmiko", "scrapli"])
def test_connections_of_plugins_live_as_long_as_nornir_lets_them(
    mode: str, library: str, devices: socketserver.ThreadingTCPServer
) -> None:
    program = """
        import sys, warnings
        warnings.simplefilter("ignore")
        from nornir.core import Nornir
        from nornir.core.inventory import *
        from nornir.core.plugins.connections import ConnectionPluginRegister
        from ungil.fanout.nornir import UngilRunner

        mode, library, port = sys.argv[1:]
        ConnectionPluginRegister.auto_register()
        if library == "netmiko":
            from nornir_netmiko.tasks import netmiko_send_command
            platform, extras = "generic_telnet", {"auth_timeout": 60}
            def ask(task, command):
                return task.run(
                    netmiko_send_command, command_string=command, expect_string="router#"
                ).result
        else:
            from nornir_scrapli.tasks import send_command
            platform = "generic"
            extras = {"transport": "telnet", "auth_bypass": True, "comms_prompt_pattern": "router#"}
            def ask(task, command):
                return task.run(send_command, command=command).result

        defaults = Defaults(username="me", password="secret", port=int(port), platform=platform)
        defaults.connection_options[library] = ConnectionOptions(extras=extras)
        addresses = [f"127.0.7.{number}" for number in range(1, 21)]
        hosts = Hosts({a: Host(a, hostname=a, defaults=defaults) for a in addresses})
        inventory = Inventory(hosts=hosts, groups=Groups(), defaults=defaults)
        with Nornir(inventory, runner=UngilRunner(mode=mode, timeout=60)) as nr:
            for command in "show version", "show clock":
                result = nr.run(ask, command=command)
                assert not result.failed, result[addresses[0]][0].result
                for address, results in result.items():
                    assert f"answer of {address}" in results[0].result, results[0].result
        print("done")
    """
    run_in = run_patched if mode == "green" else functools.partial(run, "")
    assert run_in(program, mode, library, str(devices.server_address[1])) == "done\n"
    addresses = sorted(f"127.0.7.{number}" for number in range(1, 21))
    devices.shutdown()
    devices.server_close()  # which waits for all sessions
    assert sorted(devices.sessions) == addresses  # type: ignore[attr-defined]
    assert sorted(devices.ended) == addresses  # type: ignore[attr-defined]
