"""Functions that run in the workers of an engine, which import them from here."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from pathlib import Path
from typing import Any

from suite import PATIENCE_S


class Unloadable(Exception):
    """Can be pickled, and not unpickled."""

    def __init__(self, what: str, why: str) -> None:
        super().__init__(f"{what}: {why}")


class Stubborn:
    """Cannot be pickled."""

    def __reduce__(self) -> Any:
        raise TypeError("a Stubborn stays where it is")


def wait_for(path: Path, count: int = 1) -> None:
    """Until the folder has so many files."""
    deadline = time.monotonic() + PATIENCE_S
    while len(list(path.iterdir())) < count:
        if time.monotonic() > deadline:
            raise AssertionError(f"{path} never had {count} files")
        time.sleep(0.002)


async def double(number: int) -> int:
    await asyncio.sleep(0)
    return 2 * number


def double_in_a_thread(number: int) -> int:
    return 2 * number


def process(_item: object) -> int:
    return os.getpid()


def peculiar(item: Any) -> Any:
    match item:
        case "raises":
            raise KeyError(item)
        case "unloadable":
            raise Unloadable("this", "that")
        case "stubborn":
            return Stubborn()
        case "exits":
            raise SystemExit(3)
        case _:
            return item


def meet(item: tuple[Path, int]) -> int:
    """Comes back when `count` calls run at once."""
    folder, count = item
    (folder / f"{os.getpid()}-{time.monotonic_ns()}").touch()
    wait_for(folder, count)
    return os.getpid()


def wait_for_files(item: tuple[Path, int]) -> None:
    wait_for(*item)


async def span(_item: object) -> tuple[float, float]:
    """When it ran, on the one clock of this machine."""
    begun = time.monotonic()
    await asyncio.sleep(0.002)
    return begun, time.monotonic()


def fail_once(item: tuple[Path, int]) -> int:
    folder, number = item
    mark = folder / str(number)
    if not mark.exists():
        mark.touch()
        raise ConnectionError(f"{number} for the first time")
    return number


async def hang(item: Path | None) -> None:
    """For ever, and leaves a mark when it is cancelled."""
    if item is None:
        return
    try:
        (item / f"begun-{os.getpid()}").touch()
        await asyncio.sleep(3600)
    finally:
        (item / f"cancelled-{os.getpid()}").touch()


def hang_in_a_thread(item: Path | None) -> None:
    if item is not None:
        (item / f"begun-{os.getpid()}").touch()
        time.sleep(3600)


def die(item: tuple[int, str]) -> int:
    """Ends the process it runs in, in several ways."""
    number, way = item
    if way == "exit":
        os._exit(3)
    if way == "segfault":
        os.kill(os.getpid(), signal.SIGSEGV)
        time.sleep(PATIENCE_S)
    return number


def mark_and_wait(item: tuple[Path, Path, int]) -> int:
    """Leaves its process's number, and waits for a file."""
    processes, go, number = item
    (processes / str(os.getpid())).touch()
    wait_for(go)
    return number


def begin_and_wait(item: tuple[Path, Path, int]) -> int:
    """Leaves its number, and waits for a file."""
    begun, go, number = item
    (begun / str(number)).touch()
    wait_for(go)
    return number


class OnlyHere:
    """Can be called; and pickled, but not unpickled."""

    def __call__(self, item: int) -> int:
        return item

    def __reduce__(self) -> Any:
        return _not_there, ()


def _not_there() -> Any:
    raise LookupError("it is only here")
