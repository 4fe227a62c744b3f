"""Four threads of a pool that wait for a slow server, and much more to do."""

from concurrent.futures import ThreadPoolExecutor

from beside import ask, slow_server


def fetch(port):
    """One piece of work."""
    return ask(port)


with slow_server() as port, ThreadPoolExecutor(4, thread_name_prefix="fetcher") as pool:
    for answer in [pool.submit(fetch, port) for _ in range(40)]:
        assert answer.result() == b"hello\n"
