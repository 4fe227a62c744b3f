"""A recorder, and what a program's environment needs for it to be recorded."""

from __future__ import annotations

from dataclasses import dataclass

from ungil.environment import about_the_hook
from ungil.errors import HookError

TYPE_CHECKING = False  # the native part is imported when it is needed: some of it may be missing
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ungil._native import Recorder

LONG_HOLD_MS = 20.0
"""From here on a hold is long, and comes with its Python stack, unless somebody says otherwise."""


@dataclass(frozen=True)
class Flight:
    """What a flight recorder keeps, and when it writes it."""

    last_s: float
    """How many seconds."""
    conditions: tuple[tuple[str, float], ...] = ()
    """"wait" or "hold", each with the milliseconds that it may last."""
    max_files: int | None = None
    """How many of its snapshots it leaves, the newest ones; None: all."""
    writes: bool = True
    """Whether what lasts too long is written to a file, or only told."""


def new_recorder(
    path: str | None,
    *,
    overwrite: bool = False,
    blame_after_ms: float = LONG_HOLD_MS,
    follow_children: bool = True,
    counter: bool = True,
    judged_from_ms: tuple[float, float] | None = None,
    flight: Flight | None = None,
    native: bool = False,
) -> Recorder:
    """A recorder that will write the trace `path`, or with `flight` snapshots called after it.

    With None for `path` it writes nothing.

    Its times are of the processor's counter where that can be trusted, unless `counter` is false.

    With `judged_from_ms` it judges holds and waits from these lengths on (`Recorder.judged`).

    With `native` long holds come with their native functions: threads are stopped for some tens of
    microseconds to see them.

    Raises OSError if that cannot be written, HookError if there is no room for the buffers that a
    recorder shares with a program.
    """
    from ungil._native import Recorder

    try:
        return Recorder(
            path,
            overwrite=overwrite,
            blame_after_ms=blame_after_ms,
            follow_children=follow_children,
            counter=counter,
            judged_from_ms=judged_from_ms,
            flight=None
            if flight is None
            else (flight.last_s, list(flight.conditions), flight.max_files, flight.writes),
            native=native,
        )
    except RuntimeError as error:
        raise HookError(str(error)) from error


def recorded(recorder: Recorder, environment: Mapping[str, str]) -> dict[str, str]:
    """`environment` with what a program needs to be recorded; what others preload stays.

    HookError if the loader could not preload the hook from where it is installed.
    """
    try:
        return {**environment, **recorder.environment(about_the_hook(environment))}
    except ValueError as error:
        raise HookError(str(error)) from error
