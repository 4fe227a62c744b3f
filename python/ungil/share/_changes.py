"""Waiting until a shared object has changed.

seen = share.version(settings)
use(settings.copy())
while True:
    seen = share.wait_for_change(settings, seen)
    use(settings.copy())
"""

from ungil import _native


def version(obj: object, /) -> int:
    """Return how often a shared dict, list, set, deque or struct has changed.

    It never counts too few changes: read the version first and the object second, and any later
    change gives another version. It can count a change that was undone. It does not count changes
    of objects inside it. After 2^31 changes it starts again. Raises TypeError for a lock, a queue,
    an array, a buffer, or an object that is not shared.
    """
    return _native.version(obj)


def wait_for_change(obj: object, version: int, timeout: float | None = None) -> int:
    """Wait until the version of a shared object changes, and return the new one.

    The same version is returned if nothing changed within `timeout` seconds. Waiting uses no CPU
    time, and a change is noticed within a millisecond. Raises RuntimeError in a transaction,
    TypeError as `version`.
    """
    return _native.wait_for_change(obj, version, timeout)


async def await_change(obj: object, version: int) -> int:
    """Wait until the version of a shared object changes, as a task of asyncio or trio."""
    while (now := _native.version(obj)) == version:
        # It imports asyncio, which takes longer than everything else here.
        from ungil.share import _awaiting

        await _awaiting.change(obj, version)
    return now
