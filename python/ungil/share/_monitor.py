"""Every shared object as a monitor."""

from ungil import _native


class Monitor(_native.SharedMonitor):
    """What the classes of shared objects inherit: `with obj:` lets one thread in at a time.

    The same thread can enter again. It keeps out who enters the same way, in any process, and
    nobody else: an operation on the object without `with` does not wait for who is in it, and each
    is still whole or not at all. If a thread dies inside, the next one gets in, and is told by
    `owner_died`.
    """

    __slots__ = ()


def owner_died(obj: object, /) -> bool:
    """Whether the thread inside `with obj:` got the object from a thread that died there.

    Raises TypeError if the object is not shared.
    """
    return _native.owner_died(obj)
