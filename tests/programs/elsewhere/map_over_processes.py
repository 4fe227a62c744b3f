"""A client that waits for two processes of a pool, which compute for three seconds."""

import multiprocessing
import time

COMPUTES_S = 3


def compute(until: float) -> int:
    rounds = 0
    while time.monotonic() < until:
        rounds += 1
    return rounds


if __name__ == "__main__":
    # Spawned, so that there is a resource tracker as well.
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        pool.map(compute, 2 * [time.monotonic() + COMPUTES_S], chunksize=1)
