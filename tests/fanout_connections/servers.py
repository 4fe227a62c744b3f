"""Servers for connections: each talks with its peers as a function says."""

import socket
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

from ungil.fanout import Outcome

Run = Callable[..., list[Outcome]]


class Server:
    """Calls `serve` with each connection, in a thread of its own."""

    def __init__(self, listener: socket.socket, serve: Callable[[socket.socket], object]) -> None:
        self.listener = listener
        self.serve = serve
        self.threads: list[threading.Thread] = []
        self.address: Any = listener.getsockname()
        self.acceptor = threading.Thread(target=self.accept)
        self.acceptor.start()

    def accept(self) -> None:
        while True:
            try:
                peer, _ = self.listener.accept()
            except OSError:
                return
            thread = threading.Thread(target=self.talk, args=(peer,))
            self.threads.append(thread)
            thread.start()

    def talk(self, peer: socket.socket) -> None:
        with peer:
            self.serve(peer)

    def close(self) -> None:
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for thread in (self.acceptor, *self.threads):
            thread.join()


@contextmanager
def servers() -> Generator[Callable[..., Any]]:
    """Gives what starts a server, and gives the address of that."""
    started: list[Server] = []

    def start(
        serve: Callable[[socket.socket], object], host: str = "127.0.0.1", backlog: int = 128
    ) -> Any:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.create_server((host, 0), family=family, backlog=backlog)
        started.append(Server(listener, serve))
        return started[-1].address[:2]

    yield start
    for server in started:
        server.close()


def echo(peer: socket.socket) -> None:
    """Sends lines back until there is none."""
    with peer.makefile("rwb") as file:
        for line in file:
            file.write(line.upper())
            file.flush()


def says(*parts: bytes) -> Callable[[socket.socket], None]:
    """Sends this, and closes."""

    def say(peer: socket.socket) -> None:
        for part in parts:
            peer.sendall(part)

    return say


def value(outcomes: list[Outcome]) -> Any:
    (outcome,) = outcomes
    return outcome.unwrap()
