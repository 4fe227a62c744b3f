"""nornir with LIMIT workers: see fanout_work.py.

The inventory is in memory, a host for each item, and InitNornir is called as its documentation
does. A way is a runner and a task: `threaded` and `serial` are nornir's own runners with a sync
task, `threaded-monkey` after gevent's monkey patching; `ungil`, which leaves everything to it,
`ungil-threads` and `ungil-green` are the same task with ungil's runner, `ungil-lean` and
`ungil-asyncio` a coroutine function.
"""

import sys

if sys.argv[1] in ("threaded-monkey", "ungil-green"):
    from gevent import monkey

    monkey.patch_all()

import socket
import time

from fanout_work import QUESTION, Work, ask, host, main
from nornir import InitNornir
from nornir.core import Nornir
from nornir.core.inventory import Defaults, Groups, Host, Hosts, Inventory
from nornir.core.plugins.inventory import InventoryPluginRegister
from nornir.core.task import Result, Task

RUNNERS = {
    "serial": ("serial", {}),
    "threaded": ("threaded", {}),
    "threaded-monkey": ("threaded", {}),
    "ungil": ("ungil", {}),
    "ungil-threads": ("ungil", {"mode": "threads"}),
    "ungil-green": ("ungil", {"mode": "green"}),
    "ungil-lean": ("ungil", {"mode": "lean"}),
    "ungil-asyncio": ("ungil", {"mode": "asyncio"}),
}


class InMemory:
    """An inventory plugin."""

    def __init__(self, count: int, port: int) -> None:
        """`count` fake devices."""
        self._count, self._port = count, port

    def load(self) -> Inventory:
        """A host for each."""
        defaults = Defaults()
        hosts = Hosts(
            {
                f"host{number}": Host(
                    name=f"host{number}",
                    hostname=host(number),
                    port=self._port,
                    defaults=defaults,
                )
                for number in range(self._count)
            }
        )
        return Inventory(hosts=hosts, groups=Groups(), defaults=defaults)


def sleep(task: Task, rtt_s: float) -> Result:
    """Asleep."""
    time.sleep(rtt_s)
    return Result(host=task.host)


def talk(task: Task, rtt_s: float) -> Result:
    """The answer of a device that takes `rtt_s`."""
    assert task.host.hostname is not None
    assert task.host.port is not None
    return Result(host=task.host, result=ask(socket, task.host.hostname, task.host.port))


async def sleep_lean(task: Task, rtt_s: float) -> Result:
    """Asleep in ungil's own event loop."""
    from ungil.fanout import sleep

    await sleep(rtt_s)
    return Result(host=task.host)


async def sleep_asyncio(task: Task, rtt_s: float) -> Result:
    """Asleep in asyncio's."""
    import asyncio

    await asyncio.sleep(rtt_s)
    return Result(host=task.host)


async def talk_asyncio(task: Task, rtt_s: float) -> Result:
    """The answer of a device, by asyncio's streams."""
    import asyncio

    reader, writer = await asyncio.open_connection(task.host.hostname, task.host.port)
    try:
        writer.write(QUESTION)
        return Result(host=task.host, result=await reader.readuntil(b"\n"))
    finally:
        writer.close()


TASKS = {"ungil-lean": (sleep_lean, None), "ungil-asyncio": (sleep_asyncio, talk_asyncio)}
made: list[Nornir] = []


def initialise(work: Work) -> None:
    """Once, however often tasks are run."""
    plugin, options = RUNNERS[sys.argv[1]]
    workers = {"num_workers": work.limit} if work.limit else {}
    InventoryPluginRegister.register("in-memory", InMemory)
    nornir = InitNornir(
        runner={"plugin": plugin, "options": {**workers, **options}},
        inventory={"plugin": "in-memory", "options": {"count": work.items, "port": work.port}},
        logging={"enabled": False},
    )
    made.append(nornir)


def run(work: Work) -> int:
    """A task over all hosts."""
    [nornir] = made
    asleep, talking = TASKS.get(sys.argv[1], (sleep, talk))
    results = nornir.run(task=talking if work.port else asleep, rtt_s=work.rtt_s)
    return sum(1 for one in results.values() if not one.failed)


if __name__ == "__main__":
    main(dict.fromkeys(RUNNERS, run), initialise)
