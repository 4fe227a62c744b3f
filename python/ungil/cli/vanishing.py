"""Files that are of no use once a command has ended: they go with it, also when it is killed."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager
from threading import Thread

# Ctrl-C is a KeyboardInterrupt, which ends a command as any other error does.
KILLS = (signal.SIGTERM, signal.SIGHUP)
# Says that the block is over. Nobody else sends it to a thread.
_OVER = signal.SIGURG


@contextmanager
def removed_if_killed(remove: Callable[[], object]) -> Generator[None]:
    """Call `remove` if SIGTERM or SIGHUP ends this process inside, which it does all the same.

    A thread waits for the signals: a handler of Python's would come after the native code in which
    the main thread is. Nothing may be started inside, as it would inherit that they are blocked.
    """
    # What is ignored, as under nohup, or has a handler, ends no process.
    kills = {it for it in KILLS if signal.getsignal(it) is signal.SIG_DFL}
    if not kills:
        yield
        return

    def wait() -> None:
        number = signal.sigwait({*kills, _OVER})
        if number == _OVER:
            return
        try:
            remove()
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, kills)
            os.kill(os.getpid(), number)

    # The thread begins with all blocked. The kernel may give it Ctrl-C otherwise, and the main
    # thread stays in its call.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        thread = Thread(target=wait, daemon=True)
        thread.start()
        try:
            signal.pthread_sigmask(signal.SIG_SETMASK, {*before, *kills, _OVER})
            yield
        finally:
            assert thread.ident is not None
            signal.pthread_kill(thread.ident, _OVER)
            thread.join()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
