"""In which mode a function runs, and why."""

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

# As inspect has them, which takes as long to import as Python to start.
_CO_GENERATOR = 0x20
_CO_COROUTINE = 0x80
_CO_ITERABLE_COROUTINE = 0x100
_CO_ASYNC_GENERATOR = 0x200


def is_async(fn: "Callable[..., Any]") -> bool:
    """Whether calling `fn` gives a coroutine: an `async def`, in whatever it is wrapped.

    As `inspect.iscoroutinefunction`, and also for objects whose `__call__` is one.
    """
    inner, flags = _unwrapped(fn)
    # inspect.markcoroutinefunction, for a function that only returns a coroutine.
    return getattr(inner, "_is_coroutine_mark", None) is not None or bool(flags & _CO_COROUTINE)


def is_generator(fn: "Callable[..., Any]") -> bool:
    """Whether calling `fn` runs nothing of it: it has a `yield`, in an `async def` or not."""
    _, flags = _unwrapped(fn)
    only_made = flags & (_CO_GENERATOR | _CO_ASYNC_GENERATOR)
    # types.coroutine, for a generator that can be awaited.
    return bool(only_made) and not flags & _CO_ITERABLE_COROUTINE


def _unwrapped(fn: "Callable[..., Any]") -> "tuple[Callable[..., Any], int]":
    """The function itself, in whatever it is wrapped, and the flags of its code."""
    functools = sys.modules.get("functools")
    partial = () if functools is None else functools.partial
    while (
        inner := getattr(fn, "func" if isinstance(fn, partial) else "__func__", None)
    ) is not None:
        fn = inner
    code = getattr(fn, "__code__", None)
    if code is None and not isinstance(fn, type):
        code = getattr(type(fn).__call__, "__code__", None)
    return fn, 0 if code is None else code.co_flags


def choose(fn: "Callable[..., Any]", mode: str) -> tuple[str, str]:
    """The mode for `fn`, and in a few words why; `mode` is what was asked for.

    Raises TypeError where `fn` cannot run in that mode.
    """
    if not callable(fn):
        raise TypeError(f"fn={fn!r} cannot be called")
    _refuse_generator(fn)
    asynchronous = is_async(fn)
    if mode == "auto":
        return _automatic(asynchronous)
    if mode in ("threads", "green") and asynchronous:
        raise TypeError(
            f"{name_of(fn)} is an async def and cannot run in {mode}: "
            'use mode="asyncio", or leave mode out'
        )
    # Any function may return what asyncio can await.
    if mode == "lean" and not asynchronous:
        raise TypeError(
            f"{name_of(fn)} is not an async def and cannot run in lean: "
            'use mode="asyncio" if it returns a coroutine, else "threads" or "green"'
        )
    return mode, "asked for"


def choose_beside(fn: "Callable[..., Any]", mode: str, engine: object = None) -> tuple[str, str]:
    """As `choose`, where an event loop runs already: in `Fanout`, and in an engine's workers."""
    if mode != "auto" or not callable(fn) or is_generator(fn):
        mode, reason = choose(fn, mode)
    elif is_async(fn):
        mode, reason = "asyncio", "an async def"
    else:
        mode, reason = "threads", "not an async def"
    return mode, reason if engine is None else f"{reason}, in workers of engine {engine!r}"


def choose_here(fn: "Callable[..., Any]", mode: str, engine: object = None) -> tuple[str, str]:
    """As `choose`, for a caller who waits for the outcomes.

    Where an event loop runs in the caller's thread, it waits as well. Everybody expects that of
    the cell of a notebook, where functions run in threads; nobody does of a coroutine, for which
    this is a RuntimeError, as for what needs that loop, or one of its own in its place.
    """
    asyncio = sys.modules.get("asyncio.events")
    loop = None if asyncio is None else asyncio._get_running_loop()
    if engine is None and loop is None:
        return choose(fn, mode)
    mode, reason = choose_beside(fn, mode, engine)
    if loop is None:
        return mode, reason
    if not _in_notebook():
        raise RuntimeError(
            "fanout() would block the event loop that runs here: "
            "use `async with Fanout() as f: async for outcome in f.stream(fn, items)`"
        )
    if engine is None and mode != "threads":
        what = f"{name_of(fn)} in mode {mode}"
    elif getattr(getattr(engine, "loop", None), "asyncio_loop", None) is loop:
        what = f"{name_of(fn)} by {engine!r}, which belongs to that loop,"
    else:
        return mode, f"{reason}, and a notebook's loop runs in this thread"
    raise RuntimeError(
        f"fanout() cannot run {what} where an event loop runs: "
        "use `async with Fanout() as f: async for outcome in f.stream(fn, items)`"
    )


def _refuse_generator(fn: "Callable[..., Any]") -> None:
    if is_generator(fn):
        raise TypeError(
            f"{name_of(fn)} has a yield, so calling it only makes a generator and runs nothing: "
            "return a list"
        )


def _in_notebook() -> bool:
    """Whether this program executes the cells of a notebook (ipykernel, which all of them use)."""
    ipython = sys.modules.get("IPython")
    return getattr(ipython and ipython.get_ipython(), "kernel", None) is not None


def _automatic(asynchronous: bool) -> tuple[str, str]:
    if asynchronous:
        if "asyncio" in sys.modules:
            return "asyncio", "an async def, and asyncio is imported"
        if is_patched():  # other green threads get no turn while the lean loop waits
            return "asyncio", "an async def, and gevent has patched this program"
        return "lean", "an async def, and asyncio is not imported"
    if is_patched():
        return "green", "gevent has patched this program"
    return "threads", "not an async def, and gevent has not patched this program"


def is_patched() -> bool:
    """Whether gevent has replaced in this program what waits, so that threads are green."""
    monkey = sys.modules.get("gevent.monkey")
    return monkey is not None and monkey.is_module_patched("socket")


def name_of(fn: "Callable[..., Any]") -> str:
    """How a function is called in messages."""
    return getattr(fn, "__qualname__", None) or repr(fn)
