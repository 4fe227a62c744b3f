"""What the options of `ungil fanout` mean: each mistake is one sentence, in the command's words."""

from __future__ import annotations

import re
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING, Literal

from ungil.cli.fanout.hosts import Host, Hosts, NoHost
from ungil.errors import UsageError
from ungil.fanout.frontend import LARGEST, engine_kind, is_async

if TYPE_CHECKING:
    from collections.abc import Callable

    from ungil.cli.fanout.targets import Target

# Commands take their time in other processes, where nobody here can see what more would cost.
COMMANDS_AT_ONCE = 100

# A pipe for each of its two outputs, what the loop needs to see its end, and one to spare.
_FILES_OF_A_COMMAND = 4
_FILES_OF_UNGIL = 64

_PER_SECOND = {"": 1, "s": 1, "m": 60, "h": 3600}

# What an engine needs besides ungil.
_PACKAGES = {"dask": "distributed", "ray": "ray"}


def check_numbers(
    *, timeout: float | None, retries: int, backoff: float, per_group: int | None
) -> None:
    """UsageError for a number that makes no sense."""
    if timeout is not None and not timeout > 0:
        raise UsageError(f"--timeout {timeout:g} is not a number of seconds above 0")
    if retries < 0:
        raise UsageError(f"--retries {retries} is below 0")
    if not backoff >= 0:
        raise UsageError(f"--backoff {backoff:g} is not a number of seconds, 0 or more")
    if per_group is not None and per_group < 1:
        raise UsageError(f"--per-group {per_group} is below 1")
    _check_size("--retries", retries, LARGEST["retries"])
    _check_size("--per-group", per_group or 1, LARGEST["per_group"])


def _check_size(option: str, number: int, largest: int) -> None:
    if number > largest:
        raise UsageError(f"{option} {number} is too large: the largest is {largest}")


def check_engine(engine: str | None, mode: str) -> None:
    """UsageError for an engine that there is not, or that cannot run in this mode."""
    if engine is None:
        return
    try:
        kind = engine_kind(engine)
    except ValueError:
        raise UsageError(
            f"--engine {engine!r} is not one of processes, processes:N (N at least 1), dask, ray, "
            "or the address of a cluster, tcp://HOST:PORT or ray://HOST:PORT"
        ) from None
    if mode in ("lean", "green"):
        raise UsageError(
            f"--engine {engine} and --mode {mode} cannot be combined: the workers of an engine run "
            "async functions on asyncio and others in threads; leave --mode out"
        )
    package = _PACKAGES.get(kind)
    if package is not None and find_spec(package) is None:
        raise UsageError(
            f"--engine {engine} needs the package {package}: pip install 'ungil[{kind}]'"
        )


def check_mode(mode: str, target: Target) -> None:
    """UsageError for a mode in which the function cannot run."""
    if target.is_command:
        if mode not in ("auto", "asyncio"):
            raise UsageError(
                f"--mode {mode} applies to functions, and a command runs as a process; leave it out"
            )
        return
    if is_async(target.fn):
        if mode in ("threads", "green"):
            raise UsageError(
                f"{target.title} is an async def and cannot run in --mode {mode}; "
                "use --mode asyncio, or leave it out"
            )
    elif mode == "lean":
        raise UsageError(
            f"{target.title} is not an async def and cannot run in --mode lean; "
            "use --mode asyncio if it returns a coroutine, else threads or green"
        )


def limit_of(text: str | None, target: Target) -> int | Literal["auto"]:
    """How many at once, or auto."""
    if text in (None, "auto"):
        return _affordable(COMMANDS_AT_ONCE) if target.is_command else "auto"
    if not text.isdecimal() or int(text) < 1:
        raise UsageError(f"--limit {text!r} is neither auto nor a positive whole number")
    _check_size("--limit", int(text[:100]), LARGEST["limit"])  # int() refuses very long ones
    return _affordable(int(text)) if target.is_command else int(text)


def _affordable(commands: int) -> int:
    """So many commands, or as many as this process may have files open for."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = commands * _FILES_OF_A_COMMAND + _FILES_OF_UNGIL
    if needed > soft != resource.RLIM_INFINITY:
        soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        if needed > soft:
            commands = max(1, (soft - _FILES_OF_UNGIL) // _FILES_OF_A_COMMAND)
            print(
                f"ungil: {commands:,} commands at once is the most that {hard:,} open files allow "
                "(ulimit -Hn)",
                file=sys.stderr,
            )
    return commands


def per_second(text: str) -> float:
    """A rate as people write it: 50, 50/s, 100/m, 0.5/s."""
    if not (parts := re.fullmatch(r"([\d.]+)(?:/([smh]?))?", text)):
        raise UsageError(f"--rate {text!r} is not a rate such as 50, 50/s or 100/m")
    try:
        rate = float(parts[1]) / _PER_SECOND[parts[2] or ""]
    except ValueError:
        raise UsageError(f"--rate {text!r} is not a rate such as 50, 50/s or 100/m") from None
    if not rate > 0:
        raise UsageError(f"--rate {text!r} never lets a host start; give a rate above 0")
    return rate


def grouping(
    field: str | None, per_group: int | None, hosts: Hosts
) -> Callable[[Host | NoHost], str | None] | None:
    """What tells the group of a host."""
    if field is None:
        if per_group is not None:
            raise UsageError("--per-group needs --group-by, the field that tells a host's group")
        return None
    if hosts.fields is not None and field not in hosts.fields:
        raise UsageError(
            f"the hosts of {hosts.name} have no field {field!r} to group by, only "
            f"{', '.join(hosts.fields)}"
        )
    return lambda host: host.fields.get(field) if isinstance(host, Host) else None
