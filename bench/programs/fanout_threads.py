"""ThreadPoolExecutor of LIMIT threads, as its documentation shows it: see fanout_work.py."""

import socket
import time
from concurrent.futures import ThreadPoolExecutor

from fanout_work import Work, ask, host, main


def pool(work: Work) -> int:
    """One call of `map`."""

    def sleep(item: int) -> int:
        time.sleep(work.rtt_s)
        return item

    def talk(item: int) -> bytes:
        return ask(socket, host(item), work.port)

    with ThreadPoolExecutor(work.limit) as executor:
        return sum(1 for _ in executor.map(talk if work.port else sleep, range(work.items)))


if __name__ == "__main__":
    main({"pool": pool})
