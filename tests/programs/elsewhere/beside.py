"""A slow server in a process of its own, which is no Python that is recorded."""

import contextlib
import os
import socket
import subprocess
import sys
from pathlib import Path


@contextlib.contextmanager
def slow_server():
    """Its port."""
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    command = [sys.executable, str(Path(__file__).with_name("slow_server.py"))]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as server:
        try:
            yield int(server.stdout.readline())
        finally:
            server.kill()


def ask(port):
    """Ask it once."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(b"hello\n")
        return connection.recv(100)
