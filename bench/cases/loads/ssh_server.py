"""An SSH server that asks its clients whether they are there, as sshd does (ClientAliveInterval).

    ssh_server.py --sessions N --seconds S --rate R

Prints its port, waits for N clients, and then asks one after the other. A client that does not
answer in time is disconnected by a real server.
"""

import argparse
import itertools
import socket

import pacing
import paramiko
from paramiko.common import AUTH_SUCCESSFUL
from says import say

PATIENCE_S = 60.0


class Everybody(paramiko.ServerInterface):
    """Lets everybody in."""

    def get_allowed_auths(self, username: str) -> str:
        """By a password."""
        return "password"

    def check_auth_password(self, username: str, password: str) -> int:
        """By any."""
        return AUTH_SUCCESSFUL


def accept(listening: socket.socket, key: paramiko.PKey) -> paramiko.Transport:
    """A client that has logged in."""
    channel, _address = listening.accept()
    transport = paramiko.Transport(channel)
    transport.add_server_key(key)
    transport.start_server(server=Everybody())
    return transport


def main() -> None:
    """Measures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--rate", type=float, required=True)
    options = parser.parse_args()
    key = paramiko.ECDSAKey.generate()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(PATIENCE_S)
        say({"port": listening.getsockname()[1]})
        sessions = [accept(listening, key) for _ in range(options.sessions)]
    turns = itertools.cycle(sessions)

    def ask() -> None:
        session = next(turns)
        session.global_request("keepalive@openssh.com", wait=True)
        if not session.is_active():
            raise SystemExit("a client has hung up")

    pacing.measure_blocking(ask, options.rate, options.seconds)


if __name__ == "__main__":
    main()
