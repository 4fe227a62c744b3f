"""How long an item that has failed waits before it is tried again."""

from ungil.fanout._retry_after import too_much

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class Backoff:
    """How long to wait before an item is tried again.

    The first wait takes `first` seconds, and each further one `factor` times as long as the one
    before, at most `most` seconds. The share `jitter` of each wait (0 to 1) is random, so that
    items that failed together are not tried again together.

    Raises ValueError for an impossible number, and TypeError for what is none.
    """

    __slots__ = ("factor", "first", "jitter", "most")

    first: float
    """Seconds after the first failure."""
    factor: float
    """How many times longer each further wait is."""
    most: float
    """The longest wait, in seconds."""
    jitter: float
    """The share of each wait that is random, from 0 to 1."""

    def __init__(
        self, first: float = 0.1, *, factor: float = 2.0, most: float = 30.0, jitter: float = 0.5
    ) -> None:
        for name, value, least in (("first", first, 0), ("most", most, 0), ("factor", factor, 1)):
            if not is_number(value):
                raise TypeError(f"backoff's {name}={value!r} is not a number")
            if not value >= least:
                raise ValueError(f"backoff's {name}={value!r} is below {least}")
        if not is_number(jitter):
            raise TypeError(f"backoff's jitter={jitter!r} is not a number")
        if not 0 <= jitter <= 1:
            raise ValueError(f"backoff's jitter={jitter!r} is not a number from 0 to 1")
        self.first = first
        self.factor = factor
        self.most = most
        self.jitter = jitter

    def __repr__(self) -> str:
        return (
            f"Backoff({self.first!r}, factor={self.factor!r}, most={self.most!r}, "
            f"jitter={self.jitter!r})"
        )


def is_number(value: object) -> bool:
    """Whether it is one, of whatever type: numpy's and `Decimal` are as good as a float."""
    return hasattr(value, "__float__")


def waiting(
    own: "Callable[[Any, int], float | None] | None",
) -> "Callable[[BaseException, int], tuple[float, bool] | None]":
    """The seconds that a failed item waits, and whether `own`, the user's function, says so.

    None where the `Backoff` decides.
    """

    def wait(error: BaseException, attempt: int) -> tuple[float, bool] | None:
        if own is not None and (seconds := own(error, attempt)) is not None:
            # As `own` is the user's, it may have returned anything.
            is_number_of_seconds = is_number(seconds) and 0 <= seconds < float("inf")
            if not is_number_of_seconds:
                raise (ValueError if is_number(seconds) else TypeError)(
                    f"backoff returned {seconds!r} for {error!r}, which is not a number of seconds"
                )
            return seconds, True
        asked = too_much(error)
        return None if asked is None else (asked, False)

    return wait
