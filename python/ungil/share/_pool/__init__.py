"""`share.Pool`: an executor of processes that survives its workers.

`pool.py` is the executor, `worker.py` what a worker does, `line.py` what they have in common in
shared memory and `making.py` how that is made, `core.py` how tasks go out and results come back,
`future.py` who waits for them, `gate.py` how for several pools, `withdrawal.py` how many are
cancelled, `staff.py` who lives and who died, `process.py` one of them, `limits.py` until when it
may run a task, `nested.py` how a task submits tasks.
"""

# It imports nothing: a worker needs little of this, and a new interpreter starts the sooner.
