"""A command on many network devices with netmiko: functions that block, in green threads.

Netmiko knows nothing of it: gevent puts its own sockets in the place of Python's, before anything
else is imported, and so a session is a coroutine and not two threads.

    pip install ungil netmiko gevent
    python examples/fanout_netmiko.py --user admin --command "show version" devices.txt
"""

import sys

try:
    # First of all: what is imported before keeps the sockets that block.
    from gevent import monkey

    monkey.patch_all()
    from netmiko import ConnectHandler, NetmikoAuthenticationException
except ModuleNotFoundError as missing:
    sys.exit(f"{missing.name} is not installed: pip install netmiko gevent")

import argparse
import getpass
import os
from pathlib import Path

from ungil.fanout import fanout


def worth_another(error: Exception) -> bool:
    """Whether it may go better next time. Three wrong passwords lock the account of many."""
    return not isinstance(error, NetmikoAuthenticationException)


def main() -> int:
    """Reads the command line; 1 if the command failed anywhere."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("devices", type=Path, help="file with a device on each line: host[:port]")
    parser.add_argument("--command", default="show version", help="[show version]")
    parser.add_argument("--device-type", default="cisco_ios", help="as netmiko calls it")
    parser.add_argument("--user", required=True)
    parser.add_argument("--key", type=Path, help="private key [ask for a password]")
    parser.add_argument("--limit", type=int, help="sessions at once [found out]")
    parser.add_argument("--timeout", type=float, default=120, help="seconds for each device [120]")
    options = parser.parse_args()

    if options.key:
        login = {"use_keys": True, "key_file": str(options.key)}
    else:
        login = {"password": os.environ.get("DEVICE_PASSWORD") or getpass.getpass()}

    def run(device: str) -> str:
        host, _, port = device.partition(":")
        # Netmiko's own timeouts are meant for one device at a time.
        patience = dict.fromkeys(
            ("conn_timeout", "auth_timeout", "banner_timeout"), options.timeout
        )
        with ConnectHandler(
            device_type=options.device_type,
            host=host,
            port=int(port or 22),
            username=options.user,
            **login,
            **patience,
        ) as connection:
            return str(connection.send_command(options.command, read_timeout=options.timeout))

    devices = options.devices.read_text().split()
    outcomes = fanout(
        run,
        devices,
        limit=options.limit or "auto",
        timeout=options.timeout,
        retries=2,
        retry_if=worth_another,
    )
    failed = 0
    for outcome in outcomes:
        if outcome.ok:
            print(f"{outcome.item}: {outcome.value}")
        else:
            failed += 1
            reason = str(outcome.exception).strip() or repr(outcome.exception)
            print(f"{outcome.item}: {reason.splitlines()[0]}", file=sys.stderr)
    print(f"{len(devices)} devices, {failed} failed; mode {outcomes.mode}: {outcomes.reason}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
