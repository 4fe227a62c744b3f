"""Sockets."""

import socket
import threading

listening = socket.create_server(("127.0.0.1", 0))


def serve():
    while True:
        peer, _ = listening.accept()
        threading.Thread(target=answer, args=(peer,), daemon=True).start()


def answer(peer):
    with peer:
        while said := peer.recv(100):
            peer.sendall(said.upper())


threading.Thread(target=serve, daemon=True).start()
for word in (b"one", b"two"):
    with socket.create_connection(listening.getsockname()) as asking:
        asking.sendall(word)
        print(asking.recv(100))
with socket.create_connection(listening.getsockname(), timeout=0.01) as asking:
    try:
        asking.recv(1)
    except TimeoutError:
        print("timeout")
