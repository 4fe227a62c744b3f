"""SSH servers on loopback for tests: every address of 127.0.0.0/8, one port for each behaviour.

They are real ones (asyncssh) with password and public key authentication, in a process of their
own, so that what a client costs or blocks is the client's. What a command answers depends on
nothing but the command and the address, so that each outcome can be checked.

| command        | answer |
|----------------|--------|
| `hostname`     | the address that the client connected to |
| `pause S`      | the same, S seconds later |
| `meet N`       | the same, as soon as N sessions wait for it: so many there were at once |
| `sessions`     | how many connections are open now, all ports together |
| `exit STATUS`  | nothing, and that status |
| `show version` | some lines |
| `uptime`, `df` | as a host of Linux, where every host answers the same |

| port      | behaviour |
|-----------|-----------|
| `shell`   | runs commands, one for each session |
| `device`  | a network device: a prompt, an echo, commands until `exit` |
| `silent`  | accepts and says nothing |
| `hangs_up`| closes what it accepts |
| `breaks`  | as `shell`, but the connection breaks in the middle of each answer |
| `crowded` | as `shell`, but hangs up while ten clients are not authenticated yet, like sshd |
| `refuses` | nobody listens |
"""

# pyright: basic, reportArgumentType=false, reportAttributeAccessIssue=false
# (others' libraries have no types, and much here is wrong on purpose)

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import asyncssh
import loopback

USER = "admin"
PASSWORD = "correct horse"
# sshd's MaxStartups begins to hang up there.
MOST_UNAUTHENTICATED = 10


@dataclass(frozen=True)
class SshHosts:
    """Where they are, and what lets clients in."""

    ports: dict[str, int]
    key: Path
    known_hosts: Path


@contextmanager
def running(folder: Path) -> Generator[SshHosts]:
    """The hosts, while the block runs; the client's key is in the folder."""
    with loopback.started(__file__, str(folder)) as ports:
        yield SshHosts(ports, folder / "id_ed25519", folder / "known_hosts")


class Hosts:
    """What all servers of the process share: who is connected, and who waits for whom."""

    def __init__(self, client_key: asyncssh.SSHKey) -> None:
        self.client_key = client_key
        self.connected = 0
        self.meetings: dict[int, asyncio.Barrier] = {}

    async def answer(self, command: str, address: str) -> tuple[str, int]:
        """The output and the exit status of a command."""
        match command.split():
            case ["hostname"]:
                return f"{address}\n", 0
            case ["pause", seconds]:
                await asyncio.sleep(float(seconds))
                return f"{address}\n", 0
            case ["meet", number]:
                meeting = self.meetings.setdefault(int(number), asyncio.Barrier(int(number)))
                await meeting.wait()
                return f"{address}\n", 0
            case ["sessions"]:
                return f"{self.connected}\n", 0
            case ["exit", status]:
                return "", int(status)
            case ["show", "version"]:
                return f"Loopback OS, version 1.0\nhostname {address}\nuptime is 5 minutes\n", 0
            case ["uptime", *rest]:
                return "up 3 days\n" if rest == ["-p"] else " 12:03:41 up 3 days\n", 0
            case ["df"]:
                return "Filesystem 1K-blocks Used\ntmpfs 1024 0\n", 0
            # What clients of network devices send before anything else.
            case ["terminal" | "term", *_] | []:
                return "", 0
            case _:
                return f"% Invalid input: {command}\n", 127


class Server(asyncssh.SSHServer):
    """One connection."""

    def __init__(self, hosts: Hosts) -> None:
        self.hosts = hosts

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        """Counts it."""
        self.hosts.connected += 1

    def connection_lost(self, exc: Exception | None) -> None:
        """Counts it no longer."""
        self.hosts.connected -= 1

    def begin_auth(self, username: str) -> bool:
        """Everybody has to authenticate."""
        return True

    def password_auth_supported(self) -> bool:
        """One way."""
        return True

    def validate_password(self, username: str, password: str) -> bool:
        """One user, one password."""
        return (username, password) == (USER, PASSWORD)

    def public_key_auth_supported(self) -> bool:
        """The other way."""
        return True

    def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        """One user, one key."""
        return username == USER and key.public_data == self.hosts.client_key.public_data


class CrowdedServer(Server):
    """A connection to a host that does not let many in at once."""

    entering = 0

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        """Hangs up if there are too many."""
        super().connection_made(conn)
        self.counted = True
        CrowdedServer.entering += 1
        if CrowdedServer.entering > MOST_UNAUTHENTICATED:
            conn.abort()

    def auth_completed(self) -> None:
        """Makes room for the next."""
        self.leave()

    def connection_lost(self, exc: Exception | None) -> None:
        """Makes room as well."""
        super().connection_lost(exc)
        self.leave()

    def leave(self) -> None:
        """Counts each once."""
        if self.counted:
            self.counted = False
            CrowdedServer.entering -= 1


def address_of(process: asyncssh.SSHServerProcess[str]) -> str:
    """The one that the client connected to."""
    return process.get_extra_info("sockname")[0]


async def main(folder: Path) -> None:
    """Makes keys, starts the servers, announces them."""
    loopback.as_many_descriptors_as_allowed()
    host_key = asyncssh.generate_private_key("ssh-ed25519")
    client_key = asyncssh.generate_private_key("ssh-ed25519")
    client_key.write_private_key(folder / "id_ed25519")
    (folder / "id_ed25519").chmod(0o600)
    hosts = Hosts(client_key)

    async def shell(process: asyncssh.SSHServerProcess[str]) -> None:
        output, status = await hosts.answer(process.command or "", address_of(process))
        process.stdout.write(output)
        process.exit(status)

    async def breaks(process: asyncssh.SSHServerProcess[str]) -> None:
        output, _ = await hosts.answer(process.command or "", address_of(process))
        process.stdout.write(output[: len(output) // 2])
        await process.stdout.drain()
        process.get_extra_info("connection").abort()

    async def device(process: asyncssh.SSHServerProcess[str]) -> None:
        prompt, line = "loopback#", ""
        process.stdout.write(prompt)
        # It echoes what it reads, and reads nothing while a command runs; clients rely on both.
        while typed := await process.stdin.read(1000):
            for part in typed.splitlines(keepends=True):
                line += part.strip("\r\n")
                process.stdout.write(part.replace("\n", "\r\n"))
                if not part.endswith("\n"):
                    continue
                if line == "exit":
                    process.exit(0)
                    return
                output, _ = await hosts.answer(line, address_of(process))
                process.stdout.write(output.replace("\n", "\r\n") + prompt)
                line = ""

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async def hangs_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    ports: dict[str, int] = {}
    everybody: list[object] = []

    def socket_of(name: str) -> socket.socket:
        made = loopback.listening()
        ports[name] = made.getsockname()[1]
        return made

    for name, process_factory in (("shell", shell), ("device", device), ("breaks", breaks)):
        everybody.append(
            await asyncssh.listen(
                sock=socket_of(name),
                backlog=loopback.BACKLOG,
                server_factory=lambda: Server(hosts),
                server_host_keys=[host_key],
                process_factory=process_factory,
                line_editor=False,
            )
        )
    everybody.append(
        await asyncssh.listen(
            sock=socket_of("crowded"),
            backlog=loopback.BACKLOG,
            server_factory=lambda: CrowdedServer(hosts),
            server_host_keys=[host_key],
            process_factory=shell,
        )
    )
    for name, handler in (("silent", silent), ("hangs_up", hangs_up)):
        made = socket_of(name)
        everybody.append(await asyncio.start_server(handler, sock=made, backlog=loopback.BACKLOG))
    refusing = loopback.bound()
    ports["refuses"] = refusing.getsockname()[1]

    public = host_key.export_public_key().decode()
    names = ",".join(["127.*", *(f"[127.*]:{port}" for port in ports.values())])
    (folder / "known_hosts").write_text(f"{names} {public}")
    await loopback.announced_until_the_end(ports)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
