"""In which way an item failed, in few words: one name for each way, wherever failures are counted.

| name                        | of                                      |
|-----------------------------|-----------------------------------------|
| `timeout`                   | TimeoutError, whoever raised it         |
| `exit 255`                  | a command that ended with that status   |
| `killed by SIGKILL`         | a command that a signal has ended       |
| `bad line`                  | a line of the hosts that is no host     |
| `not done`                  | `Stopped`: it was not run, or not again |
| `cut off`                   | what was cancelled while it ran         |
| `ConnectionRefusedError`, … | all other exceptions: their own name    |
"""


class NamedFailure(Exception):
    """An exception that says itself in which way its item failed."""

    @property
    def failure(self) -> str:
        """The name of the way, in few words."""
        raise NotImplementedError


class Stopped(RuntimeError):
    """The item did not run, or not again, because the fan-out was stopped."""


def failure(error: BaseException) -> str:
    """The name of the way in which an item failed that raised `error`."""
    if isinstance(error, NamedFailure):
        return error.failure
    if isinstance(error, TimeoutError):
        return "timeout"
    if isinstance(error, Stopped):
        return "not done"
    return type(error).__name__ if isinstance(error, Exception) else "cut off"


def sentence(error: BaseException) -> str:
    """The whole of what an exception says: with its name, unless the text says it all."""
    text = str(error)
    if not text:
        return failure(error)
    if isinstance(error, NamedFailure | TimeoutError):
        return text
    return f"{type(error).__name__}: {text}"
