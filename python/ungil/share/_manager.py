"""`share.Manager`: the names of `multiprocessing.Manager`, without a server process."""

from __future__ import annotations

import array
import builtins
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Generic, NoReturn, Self, TypeVar, overload

from ungil.share._dict import dict
from ungil.share._heap import Heap
from ungil.share._list import list
from ungil.share._queue import Queue
from ungil.share._set import set
from ungil.share._sync import (
    Barrier,
    BoundedSemaphore,
    Condition,
    Event,
    Lock,
    RLock,
    Semaphore,
)

if TYPE_CHECKING:
    from ungil.share._manager_pool import ManagedPool

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")


class Namespace:
    """An object whose attributes are shared."""

    __slots__ = ("_ungil_attributes",)

    def __init__(self, attributes: dict[str, Any]) -> None:
        object.__setattr__(self, "_ungil_attributes", attributes)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # What copy and pickle ask for, also before it has anything.
            raise AttributeError(name)
        attributes: dict[str, Any] = object.__getattribute__(self, "_ungil_attributes")
        try:
            return attributes[name]
        except KeyError:
            raise AttributeError(f"the namespace has no attribute {name!r}") from None

    def __setattr__(self, name: str, value: Any) -> None:
        self._ungil_attributes[name] = value

    def __delattr__(self, name: str) -> None:
        try:
            del self._ungil_attributes[name]
        except KeyError:
            raise AttributeError(f"the namespace has no attribute {name!r}") from None

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return Namespace, (self._ungil_attributes,)

    def __repr__(self) -> str:
        those = sorted(self._ungil_attributes.copy().items())
        shown = ", ".join(f"{name}={value!r}" for name, value in those if name[:1] != "_")
        return f"Namespace({shown})"


class Value(Generic[T]):
    """One shared value, in `value`. Reading and writing it are one step each."""

    __slots__ = ("_typecode", "_values")

    def __init__(self, typecode: str, values: list[T]) -> None:
        self._typecode = typecode
        self._values = values

    @property
    def value(self) -> T:
        """The value."""
        return self._values[0]

    @value.setter
    def value(self, value: T) -> None:
        self._values[0] = value

    def get(self) -> T:
        """Return the value."""
        return self._values[0]

    def set(self, value: T) -> None:
        """Set the value."""
        self._values[0] = value

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return Value, (self._typecode, self._values)

    def __repr__(self) -> str:
        return f"Value({self._typecode!r}, {self.value!r})"


class Array(Generic[T]):
    """A fixed number of shared numbers of one type, as the module `array` names it."""

    __slots__ = ("_typecode", "_values")

    def __init__(self, typecode: str, values: list[T]) -> None:
        self._typecode = typecode
        self._values = values

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[T]:
        return iter(self._values)

    @overload
    def __getitem__(self, key: int, /) -> T: ...
    @overload
    def __getitem__(self, key: slice, /) -> array.array[Any]: ...
    def __getitem__(self, key: int | slice, /) -> Any:
        if isinstance(key, slice):
            return array.array(self._typecode, self._values[key])  # type: ignore[type-var]  # pyright: ignore
        return self._values[key]

    def __setitem__(self, key: int | slice, value: Any, /) -> None:
        if isinstance(key, slice):
            given = checked(self._typecode, value)
            if len(given) != len(range(*key.indices(len(self)))):
                raise ValueError(f"an Array keeps its {len(self)} items: pass exactly that many")
            self._values[key] = given
        else:
            self._values[key] = checked(self._typecode, (value,))[0]

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return Array, (self._typecode, self._values)

    def __repr__(self) -> str:
        return f"Array({self._typecode!r}, {self._values[:]!r})"


class ManagedBarrier:
    """A shared barrier with an action and a timeout, which each process has with it."""

    __slots__ = ("_action", "_barrier", "_timeout")

    def __init__(
        self, barrier: Barrier, action: Callable[[], object] | None, timeout: float | None
    ) -> None:
        self._barrier = barrier
        self._action = action
        self._timeout = timeout

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the other parties; return the number of this one, in the order of arrival.

        Raises threading.BrokenBarrierError if it is broken, or `timeout` seconds are over.
        """
        most = self._timeout if timeout is None else timeout
        return self._barrier.wait(most, action=self._action)

    def abort(self) -> None:
        """Break it."""
        self._barrier.abort()

    def reset(self) -> None:
        """Make it as new."""
        self._barrier.reset()

    @property
    def parties(self) -> int:
        """How many must come."""
        return self._barrier.parties

    @property
    def n_waiting(self) -> int:
        """How many have come and are waiting."""
        return self._barrier.n_waiting

    @property
    def broken(self) -> bool:
        """Whether it is broken."""
        return self._barrier.broken

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return ManagedBarrier, (self._barrier, self._action, self._timeout)

    def __repr__(self) -> str:
        return repr(self._barrier)


def checked(typecode: str, values: Iterable[Any]) -> builtins.list[Any]:
    """Return the values as an array of that type holds them, or raise what that raises."""
    made: Any = array.array(typecode, values)
    return made.tolist()


class Manager:
    """Makes shared objects by the names of `multiprocessing.Manager`.

        with share.Manager() as manager:
            counts = manager.dict()
            lock = manager.Lock()

    It replaces that one in a program. There is no server, so an access costs only an access to
    shared memory. Objects live in a heap, `heap` or one of their own, as long as a process has
    them, even after `shutdown`.

    A dict, a list or a queue takes what can be shared (docs/sharing.md): plain containers become
    shared instead of being copied, and objects of your own classes are refused unless the class is
    declared with `@share.struct`. You cannot register types of your own, or use addresses of other
    machines.
    """

    address = None
    """There is none."""

    def __init__(self, *, heap: Heap | None = None, max_size: int | None = None) -> None:
        self._heap: Heap | None = Heap(max_size=max_size) if heap is None else heap
        self._pools: builtins.list[ManagedPool] = []

    @property
    def heap(self) -> Heap:
        """The heap that the objects are in. Raises ValueError after `shutdown`."""
        if self._heap is None:
            raise ValueError("the manager has been shut down: make another one")
        return self._heap

    def start(
        self, initializer: Callable[..., object] | None = None, initargs: tuple[Any, ...] = ()
    ) -> None:
        """Do nothing except call `initializer`: there is no server to start."""
        if initializer is not None:
            initializer(*initargs)

    def shutdown(self) -> None:
        """End its pools, and make no more objects. Those that are there go on."""
        pools, self._pools = self._pools, []
        for pool in pools:
            pool.terminate()
        self._heap = None

    def join(self, timeout: float | None = None) -> None:
        """Return at once: there is no server to wait for."""

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self.shutdown()

    def connect(self) -> NoReturn:
        """Always raise: other processes get the objects themselves, or open a heap by its name."""
        raise NotImplementedError(
            "a share.Manager has no server: pass its objects to the other process, or put them "
            "into a named heap, share.Heap(name), and open that there"
        )

    def get_server(self) -> NoReturn:
        """Always raise, as `connect` does."""
        self.connect()

    @classmethod
    def register(cls, typeid: str, *_arguments: object, **_named: object) -> NoReturn:
        """Always raise: an object of any type would need a server to live in."""
        raise NotImplementedError(
            f"a share.Manager has no server in which a {typeid} could live: declare its class with"
            " @share.struct, or use multiprocessing.managers.BaseManager for it"
        )

    def dict(self, *args: Any, **kwargs: Any) -> dict[Any, Any]:
        """Make a shared dict, of what `dict` takes."""
        return self.heap.share(builtins.dict(*args, **kwargs))

    def list(self, items: Iterable[T] = (), /) -> list[T]:
        """Make a shared list."""
        return self.heap.share(builtins.list(items))

    def set(self, items: Iterable[T] = (), /) -> set[T]:
        """Make a shared set. The standard library's managers have this since Python 3.14."""
        return self.heap.share(builtins.set(items))

    def Namespace(self, **attributes: Any) -> Namespace:
        """Make an object with shared attributes."""
        return Namespace(self.heap.share(attributes))

    def Value(self, typecode: str, value: T, lock: bool = True) -> Value[T]:
        """Make a shared value. `typecode` and `lock` have no effect, as in multiprocessing."""
        return Value(typecode, self.heap.share([value]))

    def Array(self, typecode: str, sequence: Iterable[T], lock: bool = True) -> Array[T]:
        """Make a shared array of numbers; `lock` has no effect, as in multiprocessing.

        Raises TypeError or OverflowError for a value that is not such a number.
        """
        return Array(typecode, self.heap.share(checked(typecode, sequence)))

    def Queue(self, maxsize: int = 0) -> Queue[Any]:
        """Make a shared queue."""
        return self.heap.share(Queue[Any](maxsize))

    def JoinableQueue(self, maxsize: int = 0) -> Queue[Any]:
        """Make a shared queue; every shared queue can be joined."""
        return self.Queue(maxsize)

    def Lock(self) -> Lock:
        """Make a shared lock."""
        return self.heap.share(Lock())

    def RLock(self) -> RLock:
        """Make a shared re-entrant lock."""
        return self.heap.share(RLock())

    def Semaphore(self, value: int = 1) -> Semaphore:
        """Make a shared semaphore."""
        return self.heap.share(Semaphore(value))

    def BoundedSemaphore(self, value: int = 1) -> BoundedSemaphore:
        """Make a shared bounded semaphore."""
        return self.heap.share(BoundedSemaphore(value))

    def Condition(self, lock: Lock | RLock | None = None) -> Condition:
        """Make a shared condition, with a shared lock or one of its own."""
        return self.heap.share(Condition(lock))

    def Event(self) -> Event:
        """Make a shared event."""
        return self.heap.share(Event())

    def Barrier(
        self, parties: int, action: Callable[[], object] | None = None, timeout: float | None = None
    ) -> Any:
        """Make a shared barrier, with the methods of `Barrier`.

        The process of the last party calls `action`, a function that can be pickled; `timeout` is
        that of `wait`, if that has none.
        """
        return ManagedBarrier(self.heap.share(Barrier(parties)), action, timeout)

    def Pool(
        self,
        processes: int | None = None,
        initializer: Callable[..., object] | None = None,
        initargs: tuple[Any, ...] = (),
        maxtasksperchild: int | None = None,
        context: Any = None,
    ) -> Any:
        """Make a pool with the methods of `multiprocessing.Pool`, of workers of this process."""
        from ungil.share._manager_pool import ManagedPool

        pool = ManagedPool(
            processes, initializer, initargs, maxtasksperchild, context, heap=self.heap
        )
        self._pools.append(pool)
        return pool
