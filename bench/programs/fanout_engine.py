"""The same fan-out several times, through one engine.

    fanout_engine.py ENGINE WORKERS ITEMS WAIT_S CPU_S TIMES

Each item waits WAIT_S seconds asleep and computes for CPU_S seconds, as an SSH handshake does.
Prints what starting the cluster took, if the engine has one, and then each of TIMES fan-outs, in
seconds.
"""

import asyncio
import json
import sys
import time
from functools import partial
from typing import Any

from ungil.fanout import fanout


async def work(wait_s: float, cpu_s: float, item: int) -> int:
    """One item."""
    until = time.thread_time() + cpu_s
    while time.thread_time() < until:
        pass
    await asyncio.sleep(wait_s)
    return item


def cluster(engine: str, workers: int) -> Any:
    """What to pass as `engine`, and what must be kept alive for it."""
    if engine == "local":
        return None, None
    if engine == "dask":
        import distributed

        made: Any = distributed.LocalCluster(
            n_workers=workers, threads_per_worker=1, dashboard_address=":0"
        )
        client: Any = distributed.Client(made)
        client.wait_for_workers(workers)
        return client, made
    if engine == "ray":
        import ray

        ray.init(num_cpus=workers, include_dashboard=False, log_to_driver=False)
        return "ray", None
    return f"processes:{workers}", None


def main() -> None:
    """As in the arguments."""
    engine, workers, items = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    fn = partial(work, float(sys.argv[4]), float(sys.argv[5]))
    begun = time.monotonic()
    where, kept = cluster(engine, workers)
    start_s = time.monotonic() - begun
    taken: list[float] = []
    for _ in range(int(sys.argv[6])):
        begun = time.monotonic()
        outcomes = fanout(fn, range(items), engine=where, mode="asyncio")
        assert [outcome.value for outcome in outcomes] == list(range(items))
        taken.append(time.monotonic() - begun)
    print(json.dumps({"start_s": start_s, "taken_s": taken}), flush=True)
    if kept is not None:
        where.close()
        kept.close()


if __name__ == "__main__":
    main()
