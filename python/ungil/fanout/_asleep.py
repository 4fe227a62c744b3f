"""Whether items do nothing but sleep: then no service is asked, and all may run at once."""

import platform
from collections.abc import Iterable

TYPE_CHECKING = False
if TYPE_CHECKING:
    import threading

# The number of clock_nanosleep, in which time.sleep waits.
_NANOSLEEP = {"x86_64": "230", "aarch64": "115"}.get(platform.machine())


def coroutines_sleep(coroutines: Iterable[object]) -> bool:
    """Whether each of them waits in `asyncio.sleep`, be it in what it awaits."""
    import asyncio

    sleep = asyncio.sleep.__code__

    def sleeps(coroutine: object) -> bool:
        inner = coroutine
        while (awaited := getattr(inner, "cr_await", None)) is not None:
            if getattr(inner, "cr_code", None) is sleep:
                # sleep(0) only lets others go first, by a generator.
                return not hasattr(awaited, "gi_code")
            inner = awaited
        return False

    return all(map(sleeps, coroutines))


def threads_sleep(threads: "Iterable[threading.Thread]") -> bool:
    """Whether the kernel says of each that it waits in `time.sleep`; False if it says nothing."""
    try:
        for thread in threads:
            with open(f"/proc/self/task/{thread.native_id}/syscall") as file:
                if file.read().split(maxsplit=1)[0] != _NANOSLEEP:
                    return False
    except (OSError, IndexError):
        return False
    return True
