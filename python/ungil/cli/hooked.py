"""What a program needs to be recorded, and scheduled: a recorder, and its environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import MappingProxyType

from ungil._native import Recorder
from ungil.errors import HookError

NOTHING: Mapping[str, str] = MappingProxyType({})


def new_recorder(
    path: str,
    *,
    overwrite: bool,
    blame_after_ms: float,
    follow_children: bool,
    counter: bool = True,
) -> Recorder:
    """A recorder that will write the trace `path`.

    Its times are of the processor's counter where that can be trusted, unless `counter` is false.

    Raises OSError if that cannot be written, HookError if there is no room for the buffers that a
    recorder shares with a program.
    """
    try:
        return Recorder(
            path,
            overwrite=overwrite,
            blame_after_ms=blame_after_ms,
            follow_children=follow_children,
            counter=counter,
        )
    except RuntimeError as error:
        raise HookError(str(error)) from error


def hooked_environment(
    recorder: Recorder, scheduling: Mapping[str, str] = NOTHING
) -> dict[str, str]:
    """The environment of this process with the hook in it; what others preload stays.

    `scheduling` are the variables of `Scheduling`.
    HookError if the loader could not preload the hook from where it is installed.
    """
    # Only what concerns the hook goes through the native part: other variables may be any bytes.
    concerned = {
        name: value
        for name, value in os.environ.items()
        if name == "LD_PRELOAD" or name.startswith("UNGIL_")
    }
    try:
        return {**os.environ, **recorder.environment(concerned), **scheduling}
    except ValueError as error:
        raise HookError(str(error)) from error
