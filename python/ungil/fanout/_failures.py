"""In which way an item failed, in few words: one name for each way, wherever failures are counted.

| name                        | of                                      |
|-----------------------------|-----------------------------------------|
| `timeout`                   | TimeoutError, whoever raised it         |
| `exit 255`                  | a command that ended with that status   |
| `killed by SIGKILL`         | a command that a signal has ended       |
| `bad line`                  | a line of the hosts that is no host     |
| `not done`                  | `Stopped`: it was not run, or not again |
| `cut off`                   | `CutOff`: it was cancelled while it ran |
| `ConnectionRefusedError`, … | all other exceptions: their own name    |
"""

from ungil._native import CutOff


class NamedFailure(Exception):
    """An exception that says itself in which way its item failed."""

    @property
    def failure(self) -> str:
        """The name of the way, in few words."""
        raise NotImplementedError


class Stopped(RuntimeError):
    """The item did not run, or not again, because the fan-out was stopped.

    One that ran, and was cancelled, has `CutOff`.
    """


def failure(error: BaseException) -> str:
    """The name of the way in which an item failed that raised `error`."""
    if isinstance(error, NamedFailure):
        return error.failure
    if isinstance(error, TimeoutError):
        return "timeout"
    if isinstance(error, Stopped):
        return "not done"
    # A SystemExit of a function, say, is the end of its item only: a failure as all others.
    return "cut off" if isinstance(error, CutOff) else type(error).__name__


def cut_off(cause: BaseException) -> CutOff:
    """The exception of an item that did not end by itself, but by `cause`."""
    error = CutOff("cut off: the fan-out was stopped while it ran")
    error.__cause__ = cause
    return error


def sentence(error: BaseException) -> str:
    """The whole of what an exception says: with its name, unless the text says it all."""
    text = str(error)
    if not text:
        return failure(error)
    if isinstance(error, NamedFailure | TimeoutError | CutOff):
        return text
    return f"{type(error).__name__}: {text}"
