"""A nornir task for many devices: as it is, in (green) threads, and as a coroutine.

    python examples/fanout_nornir.py [--hosts N] [--how nornir|threads|green|coroutines]

The devices are addresses of this machine, in a process of their own. Each takes 50 ms to answer;
but nobody answers at the last one. nornir and, for green threads, gevent have to be installed:
pip install "ungil[nornir,green]"
"""

import sys

if "green" in sys.argv:
    # Before all other imports: they take what they find.
    try:
        from gevent import monkey
    except ModuleNotFoundError:
        sys.exit("gevent is not installed: pip install 'ungil[nornir,green]'")

    monkey.patch_all()

import argparse
import logging
import socket
import subprocess
import time
from typing import Any

try:
    from nornir import InitNornir
    from nornir.core.inventory import Defaults, Groups, Host, Hosts, Inventory
    from nornir.core.plugins.inventory import InventoryPluginRegister
    from nornir.core.task import Result, Task
except ModuleNotFoundError as missing:
    sys.exit(f"{missing.name} is not installed: pip install 'ungil[nornir,green]'")

from ungil.fanout.nornir import HostTask


def show(task: Task, what: str) -> str:
    """An ordinary task, with a blocking library: here it is `socket`, there netmiko or scrapli."""
    with socket.create_connection((task.host.hostname, task.host.port)) as device:
        device.sendall(f"{what}\n".encode())
        return device.makefile().readline().strip()


def inspect(task: Task) -> Result:
    version = task.run(show, what="version").result
    clock = task.run(show, what="clock").result
    return Result(task.host, result=f"{version}, {clock}")


async def show_async(task: HostTask, what: str) -> str:
    """The same, with an asynchronous library."""
    import asyncio

    reader, writer = await asyncio.open_connection(task.host.hostname, task.host.port)
    try:
        writer.write(f"{what}\n".encode())
        return (await reader.readline()).decode().strip()
    finally:
        writer.close()
        await writer.wait_closed()


async def inspect_async(task: HostTask) -> Result:
    version = (await task.arun(show_async, what="version")).result
    clock = (await task.arun(show_async, what="clock")).result
    return Result(task.host, result=f"{version}, {clock}")


class Devices:
    """An inventory plugin: so many hosts, and one more where nobody listens."""

    def __init__(self, count: int, port: int) -> None:
        self.count, self.port = count, port

    def load(self) -> Inventory:
        defaults = Defaults(port=self.port)
        hosts = Hosts()
        for number in range(self.count):
            name = f"router{number}"
            address = f"127.2.{number // 250}.{number % 250 + 1}"
            hosts[name] = Host(name, hostname=address, defaults=defaults)
        hosts["nobody"] = Host("nobody", hostname="127.3.0.1", port=1, defaults=defaults)
        return Inventory(hosts=hosts, groups=Groups(), defaults=defaults)


def be_devices() -> None:
    """The devices: each answers a line with a line. They end with their standard input."""
    import asyncio

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        question = (await reader.readline()).decode().strip()
        await asyncio.sleep(0.05)
        writer.write(f"{question} of {writer.get_extra_info('sockname')[0]}\n".encode())
        writer.close()

    async def serve() -> None:
        server = await asyncio.start_server(answer, "0.0.0.0", 0, backlog=4096)
        print(server.sockets[0].getsockname()[1], flush=True)
        await asyncio.to_thread(sys.stdin.read)

    asyncio.run(serve())


WAYS = ["nornir", "threads", "green", "coroutines"]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--hosts", type=int, default=200)
    parser.add_argument("--how", choices=WAYS, default="threads")
    parser.add_argument("--devices", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.devices:
        be_devices()
        return
    # What fails is in the results; nornir would log it, too.
    logging.getLogger("nornir").addHandler(logging.NullHandler())
    InventoryPluginRegister.register("devices", Devices)
    runner: dict[str, Any] = {"plugin": "ungil", "options": {"timeout": 30, "retries": 1}}
    if options.how == "nornir":
        runner = {"plugin": "threaded"}  # nornir's own, with its 20 threads.
    command = [sys.executable, __file__, "--devices"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as devices:
        assert devices.stdin
        assert devices.stdout
        port = int(devices.stdout.readline())
        nr = InitNornir(
            inventory={
                "plugin": "devices",
                "options": {"count": options.hosts, "port": port},
            },
            runner=runner,
            logging={"enabled": False},
        )
        began = time.monotonic()
        result = nr.run(inspect_async if options.how == "coroutines" else inspect)
        took = time.monotonic() - began
        devices.stdin.close()
    answered = len(result) - len(result.failed_hosts)
    print(f"{answered} of {len(result)} hosts answered two questions in {took:.2f} s")
    print(f"router0: {result['router0'][0]}")
    for name, results in result.failed_hosts.items():
        print(f"{name}: {type(results[-1].exception).__name__}")


if __name__ == "__main__":
    main()
