"""The environment in which a program is recorded, and scheduled."""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import MappingProxyType

from ungil._native import Recorder
from ungil.errors import HookError

NOTHING: Mapping[str, str] = MappingProxyType({})


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
