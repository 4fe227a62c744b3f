"""The environment in which a program is recorded."""

from __future__ import annotations

import os

from ungil._native import Recorder
from ungil.errors import HookError


def hooked_environment(recorder: Recorder) -> dict[str, str]:
    """The environment of this process with the hook in it; what others preload stays.

    HookError if the loader could not preload the hook from where it is installed.
    """
    # Only what concerns the hook goes through the native part: other variables may be any bytes.
    concerned = {
        name: value
        for name, value in os.environ.items()
        if name == "LD_PRELOAD" or name.startswith("UNGIL_")
    }
    try:
        return {**os.environ, **recorder.environment(concerned)}
    except ValueError as error:
        raise HookError(str(error)) from error
