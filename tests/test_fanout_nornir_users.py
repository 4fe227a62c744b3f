"""The nornir runner with what nornir's users have besides: files, plugins, gevent."""

from __future__ import annotations

import socketserver
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Generator
from importlib import metadata
from pathlib import Path
from typing import Any, ClassVar

import pytest
from nornir import InitNornir
from nornir.core.inventory import ConnectionOptions
from nornir.core.plugins.connections import ConnectionPluginRegister
from nornir.core.task import Task
from nornir.plugins.runners import SerialRunner
from nornir_rich.progress_bar import RichProgressBar  # pyright: ignore[reportMissingTypeStubs]
from nornir_tasks import (
    NAMES,
    TWINS,
    nests,
    nests_async,
    nornir,
    observed,
    plain,
    raises_on_leaf1,
    raises_on_leaf1_async,
)
from nornir_utils.plugins.functions import (  # pyright: ignore[reportMissingTypeStubs]
    print_result,
)
from suite import PROGRAMS, run_python

from ungil.fanout import Mode
from ungil.fanout.nornir import HostTask, UngilRunner

# Being configured.


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_workers": 0}, 'num_workers=0 is neither "auto" nor a positive whole number'),
        ({"num_workers": "all"}, "num_workers='all' is neither"),
        ({"mode": "fast"}, "mode='fast' is not one of auto, lean, asyncio, threads, green"),
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
    mode: Mode, monkeypatch: pytest.MonkeyPatch
) -> None:
    def connect(task: Task) -> str:
        return task.host.get_connection("counted", task.nornir.config)

    def uses(task: Task) -> str:
        task.run(connect)
        return connect(task)

    async def uses_async(task: HostTask) -> str:
        return connect(task)

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


# In green threads: nornir is unmodified.


@pytest.mark.patched
def test_green_threads_have_the_results_of_nornirs_own_runners() -> None:
    for task, _, options in TWINS:
        own = observed(SerialRunner(), task, options)
        for runner in (UngilRunner(), UngilRunner(mode="green", num_workers=2)):
            assert observed(runner, task, options) == own, task


@pytest.mark.patched
def test_a_green_thread_whose_time_is_over_ends_and_what_it_had_is_kept() -> None:
    ended: list[str] = []

    def hangs(task: Task) -> None:
        task.run(plain)
        if task.host.name == "spine1":
            try:
                threading.Event().wait()
            except Exception:
                ended.append("by an exception that tasks catch")
            finally:
                ended.append(task.host.name)

    result = nornir(UngilRunner(timeout=1, retries=1, backoff={"first": 0})).run(hangs)
    assert list(result.failed_hosts) == ["spine1"]
    assert ended == ["spine1", "spine1"]
    overall, first = result["spine1"]
    assert type(overall.exception) is TimeoutError
    assert first.result == "spine1"


def test_the_run_for_green_threads_tells_an_unpatched_program() -> None:
    with pytest.raises(RuntimeError, match="needs a program that gevent has patched"):
        nornir(UngilRunner(mode="green")).run(plain)


# With what nornir's users have besides.


@pytest.mark.parametrize("task", [nests, nests_async])
def test_nornir_utils_prints_the_same(
    task: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    def printed(runner: Any, task: Callable[..., Any]) -> list[str]:
        result = nornir(runner).run(task, name="nests", level=1)
        result.pop("leaf1")  # whose traceback tells of the runner
        print_result(result)
        return capsys.readouterr().out.splitlines()

    lines = printed(SerialRunner(), nests)
    assert len(lines) > 4 * len(NAMES)
    assert printed(UngilRunner(), task) == lines


def test_nornir_richs_progress_bar_counts_every_host() -> None:
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


class Network(socketserver.ThreadingTCPServer):
    """Devices at every address of the loopback network."""

    daemon_threads = False  # so that closing waits until everybody has hung up
    request_queue_size = 100

    def __init__(self) -> None:
        super().__init__(("0.0.0.0", 0), Device)
        self.sessions: list[str] = []
        self.ended: list[str] = []


class Device(socketserver.BaseRequestHandler):
    """A router's terminal by Telnet: it echoes what is typed, and answers each line."""

    server: Network  # pyright: ignore[reportIncompatibleVariableOverride]

    def handle(self) -> None:
        name = self.request.getsockname()[0]
        self.server.sessions.append(name)
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
        self.server.ended.append(name)


@pytest.fixture
def devices() -> Generator[Network]:
    with Network() as network:
        thread = threading.Thread(target=network.serve_forever, args=(0.01,))
        thread.start()
        yield network
        network.shutdown()
        thread.join()


@pytest.mark.parametrize("mode", ["threads", "green"])
def test_connections_of_plugins_live_as_long_as_nornir_lets_them(
    mode: str, devices: Network
) -> None:
    ended = run_python(PROGRAMS / "asking_devices.py", mode, str(devices.server_address[1]))
    assert (ended.stdout, ended.stderr) == ("done\n", "")
    addresses = sorted(f"127.0.7.{number}" for number in range(1, 21))
    devices.shutdown()
    devices.server_close()  # which waits for all sessions
    assert sorted(devices.sessions) == addresses
    assert sorted(devices.ended) == addresses
