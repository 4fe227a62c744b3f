"""gevent's Pool of LIMIT greenlets, with gevent's own sleep and sockets: see fanout_work.py."""

import gevent
from fanout_work import Work, ask, host, main
from gevent import socket
from gevent.pool import Pool


def pool(work: Work) -> int:
    """`map`, where everything fits in: it is the faster one."""
    return len(Pool(work.limit).map(_task(work), range(work.items)))


def stream(work: Work) -> int:
    """`imap_unordered`, which takes from an iterator what there is room for."""
    results = Pool(work.limit).imap_unordered(_task(work), range(work.items), maxsize=work.limit)
    return sum(1 for _ in results)


def _task(work: Work):
    """Of one item."""

    def sleep(item: int) -> int:
        gevent.sleep(work.rtt_s)
        return item

    def talk(item: int) -> bytes:
        return ask(socket, host(item), work.port)

    return talk if work.port else sleep


if __name__ == "__main__":
    main({"pool": pool, "stream": stream})
