"""What is raised for a task whose worker has died."""

from concurrent.futures.process import BrokenProcessPool

from ungil import errors


class WorkerDied(errors.WorkerDied, BrokenProcessPool):
    """The worker of a task died while it ran the task, and no retry was left.

    Only this task failed; the pool goes on. It is a BrokenProcessPool, because existing code
    expects one. `task` is the number of the task and the name of its function, `pid` the worker,
    `signal` the number of what killed it, None if it ended by itself.
    """
