"""paramiko: sessions with a server, each with paramiko's own thread, beside threads that compute.

    paramiko_sessions.py PORT SESSIONS THREADS

The sessions are idle, as those of a pool are between two commands.
"""

import sys
import threading

import computing
import paramiko

USER, PASSWORD = "admin", "secret"


def main() -> None:
    """Keeps the sessions open."""
    port, sessions, threads = map(int, sys.argv[1:])
    clients: list[paramiko.SSHClient] = []
    for _ in range(sessions):
        client = paramiko.SSHClient()
        client.set_missing_host_key_policy(paramiko.AutoAddPolicy())
        client.connect("127.0.0.1", port, USER, PASSWORD, allow_agent=False, look_for_keys=False)
        clients.append(client)
    computing.start(threads)
    threading.Event().wait()


if __name__ == "__main__":
    main()
