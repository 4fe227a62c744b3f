"""A worker's half of an engine: a local fan-out that is fed from outside.

It does not know how its items come and how its outcomes go: `Shard` has methods for both that any
thread may call, and each engine calls them in its own way. Everything crosses as bytes, one piece
for each item, so that what cannot be pickled is the trouble of that item alone.
"""

import asyncio
import os
import socket
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future
from traceback import walk_tb
from typing import TYPE_CHECKING, Any, Literal

from ungil._native import Outcome
from ungil.errors import EngineError, NotCarried
from ungil.fanout._asyncio import new_loop
from ungil.fanout._plan import Plan
from ungil.fanout._stream import Stream

if TYPE_CHECKING:
    from ungil.fanout._options import Mode

Dumps = Callable[[Any], bytes]
Loads = Callable[[bytes], Any]

# Items by number; the caller numbers them, for each worker from 0. None instead: everything was
# stopped, and what has not begun by then is given back, as is what may still come.
Batch = list[tuple[int, bytes]]

# How many items have begun, and of those that ended: number, how, and the value, or else the
# exception with a note on where it was raised, and its cause in bytes of their own. What is given
# back has nothing.
Reply = tuple[int, list[tuple[int, int, bytes]]]
VALUE, ERROR, ABANDONED, GIVEN_BACK = range(4)

# How often a worker replies at least. An engine keeps an actor while somebody waits for its reply,
# even if that is nobody any more.
_REPLY_SECONDS = 2.0

# A reply that is longer is sent in parts: the first can be unpacked while the next is on its way.
_REPLY_BYTES = 4 << 20


class Shard:
    """The fan-out of one worker. `run` runs it, in whatever thread; the rest is for the others."""

    def __init__(
        self,
        fn: Callable[[Any], Any],
        *,
        mode: "Mode",
        limit: "int | Literal['auto']",
        timeout: float | None,
        dumps: Dumps,
        loads: Loads,
    ) -> None:
        self._fn = fn
        self._plan = Plan({"mode": mode, "limit": limit, "timeout": timeout})
        self._dumps = dumps
        self._loads = loads
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        self._stream: Stream | None = None
        self._fed = asyncio.Event()
        self._given: deque[tuple[int, bytes]] = deque()
        self._numbers: dict[int, int] = {}  # by their index in the local fan-out
        self._lock = threading.Lock()
        self._begun = 0
        self._ended: list[tuple[int, int, bytes]] = []
        self._is_news = False
        self._taker: Future[Reply | None] | None = None
        self._stopped = False
        self._closed = False
        self._is_over = False

    def run(self) -> None:
        """Runs what is given, until `close`."""
        with asyncio.Runner(loop_factory=lambda: new_loop()[0]) as runner:
            try:
                runner.run(self._run())
            finally:
                with self._lock:
                    self._is_over = True
                    self._tell()

    def give(self, batch: Batch | None) -> None:
        """Items to run, or the news that nothing more shall begin."""
        if batch is None:
            self._stopped = True
        else:
            self._given.extend(batch)
        self._in_loop(self._look)

    def take(self) -> "Future[Reply | None]":
        """What has happened since the last time, as soon as something has; None when it is over.

        Only one may be waited for at once.
        """
        future: Future[Reply | None] = Future()
        with self._lock:
            self._taker = future
            if self._is_news or self._is_over:
                self._tell()
        return future

    def close(self) -> None:
        """Cancels what runs, as `Fanout` does."""
        self._closed = True
        if self._task is not None:
            self._in_loop(self._task.cancel)

    async def _run(self) -> None:
        self._task = asyncio.current_task()
        self._loop = asyncio.get_running_loop()
        self._loop.call_later(_REPLY_SECONDS, self._reply_again)
        try:
            if self._closed:
                return
            stream = self._stream = Stream(self._fn, self._feed(), self._plan)
            try:
                async for outcome in stream.outcomes():
                    self._end(outcome)
            finally:
                await stream.close()
        except asyncio.CancelledError:
            if not self._closed:
                raise

    def _in_loop(self, call: Callable[[], object]) -> None:
        loop = self._loop
        if loop is not None:
            try:
                loop.call_soon_threadsafe(call)
            except RuntimeError:
                if not loop.is_closed():
                    raise

    def _look(self) -> None:
        """After news of the caller's."""
        while self._stopped and self._given:
            number, _ = self._given.popleft()
            self._reply(number, GIVEN_BACK, b"")
        self._fed.set()

    async def _feed(self) -> AsyncIterator[Any]:
        stream, given = self._stream, self._given
        assert stream is not None, "it asks for items"
        index = 0
        while True:
            # What is taken before it can begin could not be given back any more.
            await stream.has_room()
            if given:
                number, blob = given.popleft()
                self._begun += 1
                try:
                    item = self._loads(blob)
                except Exception as error:
                    self._not_carried(number, f"the item cannot be unpickled: {_text(error)}")
                    continue
                self._numbers[index] = number
                index += 1
                yield item
                continue
            # It could do with more: that is news as well.
            self._fed.clear()
            self._announce()
            if not given:
                await self._fed.wait()

    def _reply_again(self) -> None:
        self._announce()
        asyncio.get_running_loop().call_later(_REPLY_SECONDS, self._reply_again)

    def _end(self, outcome: Outcome) -> None:
        number = self._numbers.pop(outcome.index)
        error = outcome.exception
        if error is not None:
            how = ABANDONED if outcome.abandoned else ERROR
            self._reply(number, how, self._exception(error))
            return
        try:
            blob = self._dumps(outcome.value)
        except Exception as error:
            kind = type(outcome.value).__qualname__
            why = f"the function returned a {kind}, which cannot be pickled: {_text(error)}"
            self._not_carried(number, why)
        else:
            self._reply(number, VALUE, blob)

    def _exception(self, error: BaseException) -> bytes:
        """An exception in bytes. It leaves its traceback behind, so it says where it was raised."""
        note = f"raised on {_here()}: {_path(error)}"
        try:
            blob = self._dumps((error, note, self._cause(error)))
            # Many can be pickled and not unpickled: those that want more than one argument.
            self._loads(blob)
        except Exception as why:
            refused = NotCarried(f"{_text(error)} (which cannot be pickled: {_text(why)})")
            return self._dumps((refused, note, None))
        return blob

    def _cause(self, error: BaseException) -> bytes | None:
        """That of an exception, which pickle leaves out. If it cannot be carried, it stays here."""
        if error.__cause__ is None:
            return None
        try:
            blob = self._dumps(error.__cause__)
            self._loads(blob)
        except Exception:
            return None
        return blob

    def _not_carried(self, number: int, why: str) -> None:
        self._reply(number, ERROR, self._dumps((NotCarried(why), None, None)))

    def _reply(self, number: int, how: int, blob: bytes) -> None:
        with self._lock:
            self._ended.append((number, how, blob))
        self._announce()

    def _announce(self) -> None:
        with self._lock:
            if self._is_news:
                return
            self._is_news = True
        # What ends in the same turn of the loop goes in the same reply.
        asyncio.get_running_loop().call_soon(self._flush)

    def _flush(self) -> None:
        with self._lock:
            self._tell()

    def _tell(self) -> None:
        """Answers whoever waits. With the lock."""
        taker = self._taker
        if taker is None:
            return
        if not self._is_news:
            if self._is_over:
                self._taker = None
                taker.set_result(None)
            return
        self._taker = None
        ended, count, size = self._ended, 0, 0
        while count < len(ended) and size < _REPLY_BYTES:
            size += len(ended[count][2])
            count += 1
        self._ended = ended[count:]
        self._is_news = bool(self._ended)
        taker.set_result((self._begun, ended[:count]))


class Actor:
    """A shard in a thread of its own, for engines that call an object's methods from afar."""

    _shard: Shard | None = None
    _error: EngineError | None = None

    def __init__(
        self, function: bytes, options: dict[str, Any], dumps: Dumps, loads: Loads
    ) -> None:
        try:
            fn = loads(function)
        except Exception as error:
            self._error = EngineError(f"a worker cannot load the function: {_text(error)}")
            return
        self._shard = Shard(fn, dumps=dumps, loads=loads, **options)
        threading.Thread(target=self._shard.run, name="fanout", daemon=True).start()

    async def give(self, batch: Batch | None) -> None:
        """As `Shard.give`."""
        if self._shard is not None:
            self._shard.give(batch)

    async def take(self) -> Reply | None:
        """As `Shard.take`."""
        if self._shard is None:
            assert self._error is not None, "there is one of both"
            raise self._error
        return await asyncio.wrap_future(self._shard.take())

    async def close(self) -> None:
        """As `Shard.close`."""
        if self._shard is not None:
            self._shard.close()

    def __del__(self) -> None:
        """The engine has forgotten it: its caller has ended without a word."""
        if self._shard is not None:
            self._shard.close()


def _text(error: BaseException) -> str:
    try:
        return f"{type(error).__qualname__}: {error}"
    except Exception:
        return type(error).__qualname__


def _here() -> str:
    return f"{socket.gethostname()}, process {os.getpid()}"


def _path(error: BaseException) -> str:
    frames = ((frame.f_code, line) for frame, line in walk_tb(error.__traceback__))
    # The first is ours.
    path = [f"{code.co_name} ({code.co_filename}:{line})" for code, line in frames][1:]
    return " > ".join(path) or "outside of the function"
