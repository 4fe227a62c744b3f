"""Engine `processes`: workers that are processes on this machine, for every core one.

Two pipes a worker, one for each direction. A worker ends when its own is closed, as it is when the
caller dies, in whatever way.
"""

import multiprocessing
import os
import pickle
import signal
import threading
import time
from collections.abc import Callable
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from typing import Any

from ungil.errors import EngineError, WorkerDied
from ungil.fanout._shards import Deliver, News
from ungil.fanout._worker import Batch, Shard
from ungil.formatting import end_of

# How long a worker may take to cancel what it runs, before it is killed. Coroutines have a second.
_GRACE_SECONDS = 1.5


class _Worker:
    """A worker process, as its caller sees it."""

    def __init__(self, process: Any, to: "Connection[Any, Any]") -> None:
        self.process = process
        self.to = to


class Processes:
    """The worker processes of one fan-out."""

    def __init__(
        self,
        workers: int | None,
        fn: Callable[[Any], Any],
        options: dict[str, Any],
        deliver: Deliver,
    ) -> None:
        self.workers = workers or len(os.sched_getaffinity(0))
        self._function = _pickled(fn)
        self._options = options
        self._deliver = deliver
        # A fork would copy locks that other threads hold.
        self._context = multiprocessing.get_context("spawn")
        self._opened: list[_Worker] = []
        self._has_begun = False
        self._closed = False

    def dumps(self, item: Any) -> bytes:
        """Anything in bytes."""
        return pickle.dumps(item, pickle.HIGHEST_PROTOCOL)

    def loads(self, blob: bytes) -> Any:
        """What `dumps` made bytes of."""
        return pickle.loads(blob)

    def open(self, limit: int | str) -> _Worker:
        """Starts a process."""
        inbox, to = self._context.Pipe(duplex=False)
        from_, outbox = self._context.Pipe(duplex=False)
        process = self._context.Process(
            target=serve,
            name="ungil-fanout",
            args=(self._function, {**self._options, "limit": limit}, inbox, outbox),
            daemon=True,
        )
        # An interrupt from the keyboard goes to all processes. A worker leaves it to its caller,
        # from its first moment on: blocked signals are inherited.
        resource_tracker.ensure_running()  # as it starts, it would unblock them
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        try:
            process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
            # The ends that the process has must be open nowhere else, or nobody learns of its end.
            inbox.close()
            outbox.close()
        worker = _Worker(process, to)
        self._opened.append(worker)
        threading.Thread(
            target=self._read, args=(worker, from_), name="fanout-reader", daemon=True
        ).start()
        return worker

    def give(self, worker: _Worker, batch: Batch | None) -> None:
        """News for a process. If it has died, that is told by the end of its replies."""
        try:
            worker.to.send(batch)
        except OSError:
            worker.process.kill()

    def close(self) -> None:
        """Ends the processes: those that do not cancel in time what they run are killed."""
        self._closed = True
        workers, self._opened = self._opened, []
        for worker in workers:
            worker.to.close()
        deadline = time.monotonic() + _GRACE_SECONDS + 0.5
        try:
            for worker in workers:
                worker.process.join(max(0.0, deadline - time.monotonic()))
        finally:  # also if the user does not want to wait
            for worker in workers:
                worker.process.kill()
            for worker in workers:
                worker.process.join()

    def _read(self, worker: _Worker, from_: "Connection[Any, Any]") -> None:
        """In a thread: everything a process says, until it ends."""
        with from_:
            try:
                while True:
                    news: News = from_.recv()
                    self._has_begun = True
                    self._deliver((worker, news))
            except (EOFError, OSError):
                pass
        if self._closed:
            return
        worker.process.join()
        end = end_of(worker.process.exitcode)
        if self._has_begun:
            news = WorkerDied(end)
        else:
            news = EngineError(
                f"a worker process {end} before it could start; start processes below "
                '`if __name__ == "__main__":`, because each process imports the program again'
            )
        self._deliver((worker, news))


def _pickled(fn: Callable[[Any], Any]) -> bytes:
    try:
        return pickle.dumps(fn, pickle.HIGHEST_PROTOCOL)
    except Exception as error:
        raise TypeError(
            f"{fn!r} cannot be sent to other processes ({error}): "
            'define it at the top level of a module; engine="dask" and "ray" can send any function'
        ) from None


def serve(
    function: bytes,
    options: dict[str, Any],
    inbox: "Connection[Any, Any]",
    outbox: "Connection[Any, Any]",
) -> None:
    """What a worker process does."""
    # Not ignored: that is inherited by what the function starts, ssh say, which shall be
    # interrupted.
    signal.signal(signal.SIGINT, _leave_it_to_the_caller)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    try:
        fn = pickle.loads(function)
    except Exception as error:
        outbox.send(EngineError(f"a worker process cannot load the function: {error}"))
        return
    shard = Shard(fn, dumps=_dumps, loads=pickle.loads, **options)
    threading.Thread(target=_receive, args=(shard, inbox), daemon=True).start()
    sender = threading.Thread(target=_send, args=(shard, outbox), daemon=True)
    sender.start()
    shard.run()
    sender.join()


def _receive(shard: Shard, inbox: "Connection[Any, Any]") -> None:
    try:
        while True:
            shard.give(inbox.recv())
    except (EOFError, OSError):
        shard.close()
    time.sleep(_GRACE_SECONDS)
    os._exit(1)  # threads cannot be cancelled


def _send(shard: Shard, outbox: "Connection[Any, Any]") -> None:
    try:
        while (reply := shard.take().result()) is not None:
            outbox.send(reply)
    except OSError:
        pass  # the caller has gone, as it will be found out by `_receive`


def _dumps(value: Any) -> bytes:
    return pickle.dumps(value, pickle.HIGHEST_PROTOCOL)


def _leave_it_to_the_caller(_signal: int, _frame: object) -> None:
    pass
