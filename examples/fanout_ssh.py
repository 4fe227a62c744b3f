"""A command on many hosts over SSH: asyncssh on an event loop.

Each line of the file is a host, perhaps with a port: `10.0.0.1`, `router.example:2222`. How many
sessions are open at once is found out, unless --limit says it; a handshake costs some milliseconds
of processor time, which is what limits most of all.

    pip install ungil asyncssh uvloop
    python examples/fanout_ssh.py --user admin --command uptime hosts.txt
"""

import argparse
import sys
from pathlib import Path

try:
    import asyncssh
except ModuleNotFoundError as missing:
    sys.exit(f"{missing.name} is not installed: pip install asyncssh uvloop")

from ungil.fanout import Backoff, fanout


class Unfinished(ConnectionError):
    """The connection broke before the command ended: asyncssh does not raise then."""


def worth_another(error: Exception) -> bool:
    """Whether it may go better next time: a wrong password or an unknown host key will not."""
    return isinstance(error, (ConnectionError, asyncssh.ConnectionLost))


def main() -> int:
    """Reads the command line; 1 if the command failed anywhere."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("hosts", type=Path, help="file with a host on each line")
    parser.add_argument("--command", default="uptime", help="[uptime]")
    parser.add_argument("--user", required=True)
    parser.add_argument("--key", type=Path, help="private key [those in ~/.ssh, and the agent's]")
    parser.add_argument("--known-hosts", type=Path, help="[~/.ssh/known_hosts]")
    parser.add_argument("--limit", type=int, help="sessions at once [found out]")
    parser.add_argument("--timeout", type=float, default=60, help="seconds for each attempt [60]")
    parser.add_argument("--retries", type=int, default=3, help="further attempts [3]")
    options = parser.parse_args()

    # Read once and not for each of the hosts.
    key = [asyncssh.read_private_key(options.key)] if options.key else ()
    known = options.known_hosts
    login = {
        "username": options.user,
        "client_keys": key,
        "known_hosts": asyncssh.read_known_hosts(str(known)) if known else (),
    }

    async def run(host: str) -> str:
        name, _, port = host.partition(":")
        async with asyncssh.connect(name, int(port or 22), **login) as connection:
            ended = await connection.run(options.command)
        if ended.exit_status is None:
            raise Unfinished("the connection broke before the command ended")
        if ended.exit_status != 0:
            raise RuntimeError(f"exit status {ended.exit_status}: {str(ended.stderr).strip()}")
        return str(ended.stdout).strip()

    hosts = options.hosts.read_text().split()
    outcomes = fanout(
        run,
        hosts,
        limit=options.limit or "auto",
        timeout=options.timeout,
        retries=options.retries,
        retry_if=worth_another,
        backoff=Backoff(0.5),
    )
    failed = 0
    for outcome in outcomes:
        if outcome.ok:
            print(f"{outcome.item}: {outcome.value}")
        else:
            failed += 1
            reason = str(outcome.exception) or repr(outcome.exception)
            print(f"{outcome.item}: {reason}", file=sys.stderr)
    print(f"{len(hosts)} hosts, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
