"""`share.Pool`: an executor of processes that survives its workers.

`pool.py` is the executor, `worker.py` what a worker does, `line.py` what they have in common in
shared memory, `core.py` how tasks go out and results come back, `staff.py` who lives and who died.
"""

from ungil.share._pool.died import WorkerDied
from ungil.share._pool.pool import Pool, PoolTasks

__all__ = ["Pool", "PoolTasks", "WorkerDied"]
