"""Engine `ray`: workers are actors in a ray cluster, one for each of its processors."""

import pickle
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from importlib import import_module
from typing import Any

from ungil.errors import EngineError, WorkerDied
from ungil.fanout._shards import Deliver
from ungil.fanout._worker import Actor, Batch

try:
    ray: Any = import_module("ray")
except ImportError as error:
    raise ModuleNotFoundError(
        f'engine="ray" needs the package ray ({error}): pip install "ungil[ray]"'
    ) from None

# How long the workers may take to cancel what they run. Coroutines have a second.
_GRACE_SECONDS = 2.0


class _Worker:
    """An actor, as its caller sees it."""

    def __init__(self, actor: Any) -> None:
        self.actor = actor
        self.ended = threading.Event()


class Ray:
    """The actors of one fan-out."""

    def __init__(
        self,
        address: str | None,
        fn: Callable[[Any], Any],
        options: dict[str, Any],
        deliver: Deliver,
    ) -> None:
        self._is_own = not ray.is_initialized()
        if self._is_own:
            try:
                # Without an address: that of RAY_ADDRESS, else a cluster on this machine.
                ray.init(address, log_to_driver=True)
            except (ConnectionError, ValueError) as error:
                raise EngineError(f"no ray cluster answers at {address}: {error}") from error
        self.workers = max(1, int(ray.cluster_resources().get("CPU", 1)))
        self._function = dumps(fn)
        self._options = options
        self._deliver = deliver
        self._actor = ray.remote(num_cpus=1, max_restarts=0, max_task_retries=0)(Actor)
        self._workers: list[_Worker] = []
        self._has_begun = False
        self._closed = False

    def dumps(self, item: Any) -> bytes:
        """Anything in bytes: what pickle cannot, cloudpickle can."""
        return dumps(item)

    def loads(self, blob: bytes) -> Any:
        """What `dumps` made bytes of."""
        return pickle.loads(blob)

    def open(self, limit: int | str) -> _Worker:
        """Starts an actor. It waits for a processor if there is none."""
        options = {**self._options, "limit": limit}
        actor = self._actor.remote(self._function, options, dumps, pickle.loads)
        worker = _Worker(actor)
        self._workers.append(worker)
        threading.Thread(
            target=self._read, args=(worker,), name="fanout-reader", daemon=True
        ).start()
        return worker

    def give(self, worker: _Worker, batch: Batch | None) -> None:
        """News for an actor."""
        given = worker.actor.give.remote(batch).future()
        given.add_done_callback(partial(self._given, worker))

    def close(self) -> None:
        """Ends the actors, and what they run."""
        if self._closed:
            return
        self._closed = True
        if not ray.is_initialized():
            return  # and so the actors have ended
        for worker in self._workers:
            worker.actor.close.remote()
        for worker in self._workers:
            worker.ended.wait(_GRACE_SECONDS)
            ray.kill(worker.actor)
        self._workers.clear()
        if self._is_own:
            ray.shutdown()

    def _given(self, worker: _Worker, given: "Future[None]") -> None:
        error = given.exception()
        if error is not None and not self._closed:
            self._deliver((worker, _lost(error)))

    def _read(self, worker: _Worker) -> None:
        """In a thread: everything an actor says, until it ends."""
        news: BaseException
        try:
            while (reply := ray.get(worker.actor.take.remote())) is not None:
                self._has_begun = True
                self._deliver((worker, reply))
            news = WorkerDied("has ended its fan-out")
        except ray.exceptions.RayTaskError as error:
            news = EngineError(f"{error.cause}")
        except Exception as error:
            news = _lost(error)
            if not self._has_begun:
                news = EngineError(f"a worker {news} before it could start")
        worker.ended.set()
        if not self._closed:
            self._deliver((worker, news))


def _lost(error: BaseException) -> WorkerDied:
    # Ray goes on to explain at length why processes end.
    reason = str(error).partition("\n")[0]
    return WorkerDied(f"was lost ({type(error).__qualname__}: {reason})")


def dumps(item: Any) -> bytes:
    """Anything in bytes. What is defined in the program itself is sent with its code."""
    with suppress(Exception):
        blob = pickle.dumps(item, pickle.HIGHEST_PROTOCOL)
        if b"__main__" not in blob:
            return blob
    return ray.cloudpickle.dumps(item)
