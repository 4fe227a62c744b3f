"""Builds ungil for pip: maturin does it, where ungil can run at all.

Elsewhere pip would compile for minutes, maturin too, and then show errors of Rust. It shows one
sentence instead. So maturin is asked for by a hook, and not by `requires` in pyproject.toml.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Callable
from importlib import import_module
from typing import Any

PLATFORMS = ("linux-x86_64", "linux-aarch64")
MATURIN = "maturin>=1.12.1,<2"
# PyO3 refuses older ones, after some minutes, unless this variable is set.
OLDEST_FREE_THREADED = (3, 14)
SKIP_CHECK = "UNSAFE_PYO3_SKIP_VERSION_CHECK"


def maturins(name: str) -> Callable[..., str]:
    """A hook of maturin's. pip looks whether a hook is there before it has maturin."""

    def hook(*arguments: Any, **options: Any) -> str:
        return getattr(import_module("maturin"), name)(*arguments, **options)

    return hook


build_wheel = maturins("build_wheel")
build_editable = maturins("build_editable")
build_sdist = maturins("build_sdist")
prepare_metadata_for_build_wheel = maturins("prepare_metadata_for_build_wheel")
prepare_metadata_for_build_editable = maturins("prepare_metadata_for_build_editable")


def get_requires_for_build_wheel(config_settings: dict[str, Any] | None = None) -> list[str]:
    """What building a wheel needs; SystemExit where ungil cannot run. pip asks this first."""
    platform = sysconfig.get_platform()
    if platform not in PLATFORMS or sys.maxsize < 2**32:
        bits = "" if sys.maxsize > 2**32 else " with a Python of 32 bits"
        sys.exit(f"ungil needs Linux on x86-64 or aarch64, and this is {platform}{bits}")
    is_too_old = sys.version_info < OLDEST_FREE_THREADED and not os.environ.get(SKIP_CHECK)
    if sysconfig.get_config_var("Py_GIL_DISABLED") and is_too_old:
        here = f"{sys.version_info.major}.{sys.version_info.minor}"
        sys.exit(f"ungil needs a free-threaded Python of 3.14 or newer, and this is {here}t")
    return [MATURIN]


get_requires_for_build_editable = get_requires_for_build_wheel


def get_requires_for_build_sdist(config_settings: dict[str, Any] | None = None) -> list[str]:
    """What packing the sources needs; that works everywhere."""
    return [MATURIN]
