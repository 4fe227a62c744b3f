"""The errors of ungil, where no builtin exception fits.

    ungil.Error
    ├── UsageError    what was asked for is wrong; the command line exits with 2
    ├── HookError     the GIL of an interpreter cannot be reached; the message says why
    │   └── NotInstalled    this program is not counted, or not scheduled, and asked for it
    └── EngineError   an engine of a fan-out has not run an item to its end
        ├── WorkerDied      the worker died while it ran the item
        └── NotCarried      the item, or what became of it, cannot go to another process

A message says what happened, with which value, and what to do; it has no final dot.
"""

__all__ = [
    "EngineError",
    "Error",
    "HookError",
    "NotCarried",
    "NotInstalled",
    "UsageError",
    "WorkerDied",
]


class Error(Exception):
    """Everything that ungil raises on purpose."""


class UsageError(Error):
    """The request is wrong: a missing file, an impossible option."""


class HookError(Error):
    """The GIL of an interpreter cannot be recorded or scheduled here."""


class NotInstalled(HookError):
    """The call needs a process that is counted, or scheduled, and this one is not.

    `ungil.gil.install()` does both.
    """


class EngineError(Error):
    """An engine could not run an item to its end; the item is not tried again."""


class WorkerDied(EngineError):
    """A worker died. In the outcome of an item: it died while it ran this item, in the end alone.

    A `share.Pool` also says which task that was, which process, and which signal.
    """

    def __init__(
        self,
        message: str = "",
        *,
        task: str | None = None,
        pid: int | None = None,
        signal: int | None = None,
    ) -> None:
        super().__init__(message)
        self.task = task
        """The number of the task and the name of its function."""
        self.pid = pid
        """The process id of the worker."""
        self.signal = signal
        """The number of the signal that killed it; None if it ended by itself."""


class NotCarried(EngineError):
    """An item, a value or an exception cannot go from one process to another."""
