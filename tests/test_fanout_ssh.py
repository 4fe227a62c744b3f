"""Real SSH to several hundred hosts at once: from coroutines and from functions that block."""

# pyright: basic, reportArgumentType=false, reportAttributeAccessIssue=false
# (others' libraries have no types, and much here is wrong on purpose)

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import asyncssh
import loopback
import pytest
import ssh_hosts
from netmiko import ConnectHandler, NetmikoAuthenticationException
from scrapli import AuthOptions, Cli, SessionOptions, TransportSsh2Options
from ssh_hosts import PASSWORD, USER, SshHosts
from suite import PATIENCE_S

from ungil.fanout import Backoff, Fanout, Outcome, fanout

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Generator[SshHosts]:
    """Hosts at all loopback addresses."""
    with ssh_hosts.running(tmp_path_factory.mktemp("ssh")) as running:
        yield running


class Client:
    """Runs one command on a host with asyncssh; half of the hosts ask for the password."""

    def __init__(self, hosts: SshHosts, command: str, port: str = "shell", **login: Any) -> None:
        key = asyncssh.read_private_key(hosts.key)
        # None: no keys of whoever runs the tests.
        common: dict[str, Any] = {"username": USER, "agent_path": None, "config": None}
        common["known_hosts"] = asyncssh.read_known_hosts(str(hosts.known_hosts))
        self.ways = [
            common | {"client_keys": [key]} | login,
            common | {"client_keys": None, "password": PASSWORD} | login,
        ]
        self.port = hosts.ports[port]
        self.command = command

    async def __call__(self, host: str) -> str:
        way = self.ways[int(host[-1]) % 2]
        async with asyncssh.connect(host, self.port, **way) as connection:
            ended = await connection.run(self.command)
        if ended.exit_status is None:
            raise ConnectionError("the connection broke")
        return str(ended.stdout).strip()


def test_three_hundred_sessions_of_asyncssh_are_open_at_once(hosts: SshHosts) -> None:
    addresses = loopback.addresses(300)
    # Each answers when there are three hundred.
    outcomes = list(fanout(Client(hosts, "meet 300"), addresses, limit=300, timeout=PATIENCE_S))
    assert {outcome.exception for outcome in outcomes} == {None}
    assert [outcome.value for outcome in outcomes] == addresses


def test_a_limit_that_nobody_gave_serves_all_hosts_too(hosts: SshHosts) -> None:
    addresses = loopback.addresses(200)
    outcomes = fanout(Client(hosts, "pause 0.02"), addresses, timeout=PATIENCE_S)
    assert outcomes.raise_for_failures() == addresses


def test_a_program_with_a_loop_of_its_own_gets_sessions_as_they_end(hosts: SshHosts) -> None:
    addresses = loopback.addresses(40)

    async def program() -> dict[str, str]:
        async with Fanout(limit=20, timeout=PATIENCE_S) as f:
            stream = f.stream(Client(hosts, "hostname"), addresses)
            return {outcome.item: outcome.unwrap() async for outcome in stream}

    assert asyncio.run(program()) == dict(zip(addresses, addresses, strict=True))


def test_hosts_that_fail_in_their_own_ways_do_not_touch_the_others(hosts: SshHosts) -> None:
    ways: dict[str, Client] = {
        port: Client(hosts, "hostname", port)
        for port in ("shell", "refuses", "hangs_up", "breaks", "silent")
    }
    ways["wrong password"] = Client(hosts, "hostname", client_keys=None, password="wrong")
    ways["unknown host"] = Client(hosts, "hostname", known_hosts=([], [], []))
    expected: dict[str, type[BaseException]] = {
        "refuses": ConnectionRefusedError,
        # Depending on who is quicker.
        "hangs_up": (ConnectionResetError, asyncssh.ConnectionLost),  # pyright: ignore
        "breaks": ConnectionError,
        "silent": TimeoutError,
        "wrong password": asyncssh.PermissionDenied,
        "unknown host": asyncssh.HostKeyNotVerifiable,
    }

    async def visit(item: tuple[str, str]) -> str:
        way, address = item
        async with asyncio.timeout(0.5 if way == "silent" else None):
            return await ways[way](address)

    items = [(way, address) for address in loopback.addresses(8) for way in ways]
    for outcome in fanout(visit, items, limit=100):
        way, address = outcome.item
        if way == "shell":
            assert outcome.value == address
        else:
            assert isinstance(outcome.exception, expected[way]), outcome


def test_hosts_that_say_nothing_are_given_up_and_their_sockets_closed(hosts: SshHosts) -> None:
    def visit(count: int) -> list[Outcome]:
        client = Client(hosts, "hostname", "silent")
        return list(fanout(client, loopback.addresses(count), limit=100, timeout=0.5))

    visit(1)  # opens what a process opens once
    before = len(list(Path("/proc/self/fd").iterdir()))
    outcomes = visit(100)
    assert {type(outcome.exception) for outcome in outcomes} == {TimeoutError}
    assert not any(outcome.abandoned for outcome in outcomes)
    assert len(list(Path("/proc/self/fd").iterdir())) <= before


def test_hosts_that_let_few_in_at_once_are_reached_by_trying_again(hosts: SshHosts) -> None:
    visit = Client(hosts, "hostname", "crowded")
    addresses = loopback.addresses(60)
    lost = (ConnectionError, asyncssh.ConnectionLost)
    outcomes = list(
        fanout(
            visit,
            addresses,
            limit=30,
            retries=1000,
            retry_if=lambda error: isinstance(error, lost),
            backoff=Backoff(0.01, most=0.1),
        )
    )
    assert [outcome.value for outcome in outcomes] == addresses
    assert sum(outcome.attempts for outcome in outcomes) > len(addresses)


def test_hosts_that_let_few_in_at_once_need_no_other_attempt_under_a_limit(hosts: SshHosts) -> None:
    visit = Client(hosts, "hostname", "crowded")
    addresses = loopback.addresses(60)
    for options in (
        {"limit": ssh_hosts.MOST_UNAUTHENTICATED},
        {"limit": 50, "per_group": ssh_hosts.MOST_UNAUTHENTICATED, "group": lambda _: "sshd"},  # pyright: ignore
    ):
        assert fanout(visit, addresses, **options).raise_for_failures() == addresses


def test_scrapli_talks_to_devices_from_coroutines(hosts: SshHosts) -> None:
    # Each of its sessions polls, so that many of them at once keep the processor busy.
    addresses = loopback.addresses(20)

    async def ask(address: str) -> str:
        async with Cli(
            address,
            port=hosts.ports["device"],
            definition_file_or_name="cisco_iosxe",
            auth_options=AuthOptions(username=USER, password=PASSWORD),
            transport_options=TransportSsh2Options(),
            session_options=SessionOptions(operation_timeout_s=PATIENCE_S),
        ) as device:
            return (await device.send_input_async(input_="meet 20")).result

    assert fanout(ask, addresses, limit=20).raise_for_failures() == addresses


def test_netmiko_talks_to_devices_from_threads(hosts: SshHosts) -> None:
    addresses = loopback.addresses(30)

    def ask(address: str) -> str:
        with ConnectHandler(
            device_type="cisco_ios",
            host=address,
            port=hosts.ports["device"],
            username=USER,
            password=PASSWORD if address != addresses[3] else "wrong",
        ) as device:
            return str(device.send_command("meet 29", read_timeout=PATIENCE_S))

    outcomes = list(fanout(ask, addresses, limit=30))
    assert isinstance(outcomes[3].exception, NetmikoAuthenticationException)
    assert [outcome.value for outcome in outcomes if outcome.ok] == addresses[:3] + addresses[4:]


def example(name: str, hosts: SshHosts, folder: Path, lines: list[str], *arguments: str) -> Any:
    """What an example prints, and its status."""
    names = folder / "hosts.txt"
    names.write_text("\n".join(lines))
    script = EXAMPLES / f"{name}.py"
    login = ["--user", USER, "--key", str(hosts.key), *arguments]
    return subprocess.run(
        [sys.executable, "-W", "error", str(script), str(names), *login],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


def test_three_hundred_sessions_of_netmiko_are_open_at_once_in_green_threads(
    hosts: SshHosts, tmp_path: Path
) -> None:
    addresses = loopback.addresses(300)
    lines = [f"{address}:{hosts.ports['device']}" for address in addresses]
    words = ["--command", "meet 300", "--limit", "300"]
    ended = example("fanout_netmiko", hosts, tmp_path, lines, *words)
    assert (ended.returncode, ended.stderr) == (0, "")
    *answers, last = ended.stdout.splitlines()
    expected = [f"{line}: {address}" for line, address in zip(lines, addresses, strict=True)]
    assert answers == expected
    assert last.startswith("300 devices, 0 failed; mode green")


def test_the_example_of_asyncssh_says_what_each_host_answered(
    hosts: SshHosts, tmp_path: Path
) -> None:
    shell, refuses, breaks = (hosts.ports[name] for name in ("shell", "refuses", "breaks"))
    lines = [f"127.1.0.1:{shell}", f"127.1.0.2:{refuses}", f"127.1.0.3:{shell}"]
    lines.append(f"127.1.0.4:{breaks}")
    words = ["--command", "hostname", "--known-hosts", str(hosts.known_hosts), "--retries", "0"]
    ended = example("fanout_ssh", hosts, tmp_path, lines, *words)
    assert ended.returncode == 1
    first, third, last = ended.stdout.splitlines()
    assert first == f"127.1.0.1:{shell}: 127.1.0.1"
    assert third == f"127.1.0.3:{shell}: 127.1.0.3"
    assert last == "4 hosts, 2 failed"
    second, fourth = ended.stderr.splitlines()
    assert re.search(r"Connect call failed|[Rr]efused", second)
    assert fourth == f"127.1.0.4:{breaks}: the connection broke before the command ended"
