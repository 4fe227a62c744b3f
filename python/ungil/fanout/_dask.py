"""Engine `dask`: workers are actors in a dask cluster, at most one in each of its processes.

All of it runs in the client's own event loop, whether that is the caller's or a thread's; so both
kinds of client will do.
"""

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from importlib import import_module
from typing import Any

from ungil.errors import EngineError, WorkerDied
from ungil.fanout._shards import Deliver
from ungil.fanout._worker import Actor, Batch

try:
    distributed: Any = import_module("distributed")
    pickle: Any = import_module("distributed.protocol.pickle")
except ImportError as error:
    raise ModuleNotFoundError(
        f'engine="dask" needs the package distributed ({error}): pip install "ungil[dask]"'
    ) from None

# How long the workers may take to cancel what they run. Coroutines have a second.
_GRACE_SECONDS = 2.0

# How often to look for a new process in the place of one that has died.
_LOOK_SECONDS = 0.2


class _Worker:
    """An actor, as its caller sees it."""

    actor: Any = None  # not yet
    serving: asyncio.Task[None] | None = None


class Dask:
    """The actors of one fan-out."""

    def __init__(
        self,
        client: Any,
        fn: Callable[[Any], Any],
        options: dict[str, Any],
        deliver: Deliver,
    ) -> None:
        self._own = None
        if not isinstance(client, distributed.Client):
            client, self._own = _connected(client)
        if client.status == "closed":
            raise EngineError(f"{client!r} is closed")
        self._client = client
        self._function = self.dumps(fn)
        self._options = options
        self._deliver = deliver
        self._workers: list[_Worker] = []
        self._used: set[str] = set()
        self._closed = False
        try:
            self.workers = max(1, len(self._in_loop(self._call(self._client.nthreads)).result()))
        except BaseException:
            if self._own is not None:
                self._own.close()
            raise

    def dumps(self, item: Any) -> bytes:
        """As dask does: what pickle cannot, cloudpickle can."""
        return pickle.dumps(item)

    def loads(self, blob: bytes) -> Any:
        """What `dumps` made bytes of."""
        return pickle.loads(blob)

    def open(self, limit: int | str) -> _Worker:
        """Starts an actor in a process that has none; if there is no such process, later."""
        worker = _Worker()
        self._workers.append(worker)
        self._in_loop(self._serve(worker, limit))
        return worker

    def give(self, worker: _Worker, batch: Batch | None) -> None:
        """News for an actor."""
        self._in_loop(self._give(worker, batch))

    def close(self) -> None:
        """Ends the actors, and what they run."""
        if self._closed:
            return
        self._closed = True
        loop = self._asyncio
        if loop.is_closed():
            return  # with the client, and so the scheduler forgets the actors
        closing = self._in_loop(self._close())
        if asyncio._get_running_loop() is not loop:
            with suppress(TimeoutError):
                closing.result(2 * _GRACE_SECONDS)
            if self._own is not None:
                self._own.close()

    @property
    def _asyncio(self) -> asyncio.AbstractEventLoop:
        return self._client.loop.asyncio_loop

    def _in_loop(self, call: Coroutine[Any, Any, Any]) -> "Future[Any]":
        return asyncio.run_coroutine_threadsafe(call, self._asyncio)

    async def _call(self, function: Callable[[], Any]) -> Any:
        return await function()

    async def _serve(self, worker: _Worker, limit: int | str) -> None:
        """Everything an actor says, until it ends."""
        worker.serving = asyncio.current_task()
        options = {**self._options, "limit": limit}
        address = future = None
        try:
            with self._client.as_current():
                address, future = await self._start(options)
                worker.actor = await future
                while (reply := await worker.actor.take()) is not None:
                    self._deliver((worker, reply))
        except EngineError as error:
            self._deliver((worker, error))
        except ImportError as error:
            self._deliver((worker, EngineError(f"a dask worker lacks a module: {error}")))
        except Exception as error:
            self._lost(worker, error)
        else:
            self._lost(worker, EngineError("its fan-out has ended"))
        finally:
            self._used.discard(address)
            worker.actor = None
            if not self._closed:
                self._workers.remove(worker)
            if future is not None:
                await self._forget(future)

    async def _start(self, options: dict[str, Any]) -> tuple[str, Any]:
        """An actor in a process of its own: in one with another it would die of the other's items.

        Gives the address of the process as well.
        """
        client, used = self._client, self._used
        while True:
            free = [address for address in await client.nthreads() if address not in used]
            if not free:
                await asyncio.sleep(_LOOK_SECONDS)  # a nanny starts another process
                continue
            address = free[0]
            used.add(address)
            what = (Actor, self._function, options, pickle.dumps, pickle.loads)
            future = client.submit(*what, actor=True, pure=False, workers=[address])
            actor = asyncio.ensure_future(_result(future))
            try:
                while not actor.done():
                    await asyncio.wait([actor], timeout=_LOOK_SECONDS)
                    # If the process has ended meanwhile, the scheduler waits for it in vain.
                    if not actor.done() and address not in await client.nthreads():
                        break
                else:
                    actor.result()
                    return address, future
            except BaseException:
                used.discard(address)
                await self._forget(future)
                raise
            finally:
                actor.cancel()
            used.discard(address)
            await self._forget(future)

    async def _forget(self, future: Any) -> None:
        with suppress(Exception):
            await self._client.cancel([future])

    async def _give(self, worker: _Worker, batch: Batch | None) -> None:
        try:
            await worker.actor.give(batch)
        except Exception as error:
            self._lost(worker, error)

    def _lost(self, worker: _Worker, error: Exception) -> None:
        if self._closed:
            return
        what = f"{type(error).__qualname__}: {error}"
        if self._client.status == "running":
            self._deliver((worker, WorkerDied(f"was lost ({what})")))
        else:
            self._deliver(
                (worker, EngineError(f"the connection to the dask scheduler is lost ({what})"))
            )

    async def _close(self) -> None:
        workers, self._workers = self._workers, []
        serving = [worker.serving for worker in workers if worker.serving is not None]
        for worker in workers:
            if worker.actor is not None:
                worker.actor.close()
            elif worker.serving is not None:
                worker.serving.cancel()
        if serving:
            # An actor's last word is that it has ended.
            _, late = await asyncio.wait(serving, timeout=_GRACE_SECONDS)
            for task in late:
                task.cancel()
            await asyncio.gather(*serving, return_exceptions=True)


async def _result(future: Any) -> Any:
    return await future


def _connected(address: str | None) -> tuple[Any, Any]:
    """A client, and that again if it was made here."""
    if address is None:
        try:
            return distributed.default_client(), None
        except ValueError:
            pass
    try:
        # Without an address: the configured scheduler, else a cluster on this machine.
        client = distributed.Client(address, set_as_default=False)
    except OSError as error:
        raise EngineError(f"no dask scheduler answers at {address}: {error}") from error
    return client, client
