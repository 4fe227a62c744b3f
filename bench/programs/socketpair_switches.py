"""One thread releases and retakes the GIL around each call on a pair of Unix sockets.

The argument is the number of exchanges; each is two calls that release the GIL.
"""

import socket

import work
from tcp_switches import exchange

EXCHANGES = 250_000

if __name__ == "__main__":
    exchanges = work.count(EXCHANGES)
    work.pin()
    writer, reader = socket.socketpair()
    with writer, reader:
        work.measure(lambda: exchange(writer, reader, exchanges), releases=2 * exchanges)
