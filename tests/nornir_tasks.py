"""Hosts, tasks and a processor to compare nornir's runners with."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from nornir.core import Nornir
from nornir.core.exceptions import NornirSubTaskError
from nornir.core.inventory import Defaults, Group, Groups, Host, Hosts, Inventory, ParentGroups
from nornir.core.task import AggregatedResult, MultiResult, Result, Task

from ungil.fanout.nornir import HostTask

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


def nornir_of(count: int, runner: Any) -> Nornir:
    """A nornir with so many hosts, of which nothing is known but their names."""
    hosts = Hosts({name: Host(name) for name in (f"host{number}" for number in range(count))})
    return Nornir(inventory=Inventory(hosts=hosts), runner=runner)


def nornir(runner: Any) -> Nornir:
    """A nornir with them."""
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


def told(result: object) -> Any:
    """What is in a result, comparable: an exception by its type, a traceback by its last line."""
    if isinstance(result, AggregatedResult):
        return result.name, [(name, told(results)) for name, results in result.items()]
    if isinstance(result, MultiResult):
        return result.name, result.failed, result.changed, [told(one) for one in result]
    assert isinstance(result, Result)
    attributes: dict[str, Any] = {
        **vars(result),
        "host": str(result.host),
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
    return told(result), pages, failed_hosts(nr)


def failed_hosts(nr: Nornir) -> set[str]:
    """Those that a nornir leaves out."""
    return nr.data.failed_hosts  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
