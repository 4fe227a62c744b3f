"""Whether items do nothing but sleep: then no service is asked, and all may run at once."""

import platform
from collections.abc import Iterable

TYPE_CHECKING = False
if TYPE_CHECKING:
    import threading

# The numbers of clock_nanosleep, in which time.sleep waits, and of futex, in which one waits for
# the GIL. One that has a processor, or waits for one, is in no system call: it is "running".
_NANOSLEEP, _FUTEX = {"x86_64": ("230", "202"), "aarch64": ("115", "98")}.get(
    platform.machine(), (None, None)
)


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


def threads_sleep(threads: "Iterable[threading.Thread]", *, all_at_once: bool = True) -> bool:
    """Whether the kernel says of each that it waits in `time.sleep`; False if it says nothing.

    With `all_at_once=False` threads that are between two sleeps are no objection, nor those that
    wait for the GIL there, as long as most sleep.
    """
    sleeping = others = 0
    try:
        for thread in threads:
            with open(f"/proc/self/task/{thread.native_id}/syscall") as file:
                call = file.read().split(maxsplit=1)[0]
            if call == _NANOSLEEP:
                sleeping += 1
            elif not all_at_once and call in ("running", _FUTEX):
                others += 1
            else:
                return False
    except (OSError, IndexError):
        return False
    return sleeping > others
