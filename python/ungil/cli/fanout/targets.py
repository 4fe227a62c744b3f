"""What `ungil fanout` runs for each host: a function of the user's, or a command."""

from __future__ import annotations

import functools
import importlib
import re
import shlex
import shutil
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

from ungil.cli.fanout.hosts import BadLine, Host, Hosts, NoHost
from ungil.cli.fanout.template import CommandTemplate
from ungil.errors import UsageError
from ungil.fanout.frontend import is_async, is_generator

_FUNCTION = re.compile(r"([\w.]+):([\w.]+)")


class Target:
    """What runs: `fn` is called with a `Host`, or a `NoHost`, whose error it raises."""

    def __init__(self, name: str, title: str, fn: Callable[[Any], Any], *, command: bool) -> None:
        self.name = name
        """For journals: different for everything that does something else."""
        self.title = title
        """For people."""
        self.fn = fn
        self.is_command = command
        fn.__qualname__ = title


def find_target(words: Sequence[str], command: Sequence[str]) -> Callable[[Hosts], Target]:
    """What `words`, those before a `--`, or `command`, those after it, mean for given hosts.

    UsageError if they mean nothing.
    """
    example = "for example: ungil fanout --hosts FILE -- ssh {host} uptime"
    if command:
        if words:
            raise UsageError(f"{words[0]!r} and a command after -- cannot both run")
        return functools.partial(_command, command)
    if not words:
        raise UsageError(f"nothing to run; name module:function, or a command after --, {example}")
    if len(words) > 1 or not (names := _FUNCTION.fullmatch(words[0])):
        raise UsageError(
            f"{shlex.join(words)!r} is not a module:function; to run a command, put it after --, "
            f"{example}"
        )
    return functools.partial(_function, names[1], names[2])


def _command(words: Sequence[str], hosts: Hosts) -> Target:
    command = CommandTemplate(words)
    fields = command.fields
    if not fields:
        raise UsageError(
            f"{shlex.join(words)!r} would do the same for each host; write {{host}} where its "
            "name belongs"
        )
    if hosts.fields is not None and (unknown := sorted(fields.difference(hosts.fields))):
        raise UsageError(
            f"the hosts of {hosts.name} have no field {unknown[0]!r}, only "
            f"{', '.join(hosts.fields)}; write {{{{{unknown[0]}}}}} to get the braces themselves"
        )
    if not CommandTemplate(words[:1]).fields and shutil.which(words[0]) is None:
        raise UsageError(_why_no_command(words[0]))

    return Target(shlex.join(words), " ".join(words), _Running(command), command=True)


def _why_no_command(word: str) -> str:
    if "/" in word and Path(word).is_dir():
        return f"{word!r} is a folder, and no command"
    if "/" in word and Path(word).exists():
        return f"{word!r} is not executable; make it so with chmod +x, or name its interpreter"
    return f"there is no command {word!r}"


def _function(module: str, name: str, _hosts: Hosts) -> Target:
    folder = str(Path.cwd())
    function = _imported(module, name, folder)
    if not callable(function):
        raise UsageError(f"{module}:{name} cannot be called: it is {_a(function)}")
    if is_generator(function):
        raise UsageError(
            f"{module}:{name} has a yield, so calling it only makes a generator and runs nothing; "
            "return a list"
        )
    kind = _Awaiting if is_async(function) else _Calling
    run = kind(function, (module, name, folder))
    return Target(f"{module}.{name}", f"{module}:{name}", run, command=False)


class _Running:
    """Runs a command for a host. The workers of an engine get it by pickle."""

    def __init__(self, command: CommandTemplate) -> None:
        self._command = command

    async def __call__(self, host: Host | NoHost) -> object:
        if isinstance(host, NoHost):
            raise host.error
        if lacking := sorted(self._command.fields.difference(host.fields)):
            raise BadLine(f"no field {lacking[0]!r}, only {', '.join(host.fields)}")
        return await self._command(host.fields)


class _OfUser:
    """A function of the user's. The workers of an engine import it as this process has done."""

    def __init__(self, function: Callable[..., Any], origin: tuple[str, str, str]) -> None:
        self._function = function
        self._origin = origin

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (type(self), self._origin)


class _Awaiting(_OfUser):
    async def __call__(self, host: Host | NoHost) -> Any:
        if isinstance(host, NoHost):
            raise host.error
        return await self._function(host.value)


class _Calling(_OfUser):
    def __call__(self, host: Host | NoHost) -> Any:
        if isinstance(host, NoHost):
            raise host.error
        return self._function(host.value)


def _again(kind: type[_OfUser], origin: tuple[str, str, str]) -> _OfUser:
    return kind(_imported(*origin), origin)


def is_in_function(frame: FrameType | None) -> bool:
    """Whether a function of the user's is being executed there."""
    while frame is not None:
        if frame.f_globals is globals() and frame.f_code.co_name == "__call__":
            return True
        frame = frame.f_back
    return False


def _imported(module: str, name: str, folder: str) -> Any:
    """The object, from a module that may lie in this folder."""
    if sys.path[:1] != [folder]:
        sys.path.insert(0, folder)
    try:
        found = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise UsageError(_why_not(module, error)) from error
        hint = f"; write {module.removesuffix('.py')}:{name}" if module.endswith(".py") else ""
        raise UsageError(
            f"there is no module {module!r}, neither in this folder nor among the installed "
            f"ones{hint}"
        ) from error
    except (Exception, SystemExit) as error:
        raise UsageError(_why_not(module, error)) from error
    for part in name.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            raise UsageError(f"the module {module!r} has no {name!r}") from None
    return found


def _why_not(module: str, error: BaseException) -> str:
    """Why a module cannot be imported, and where it is wrong."""
    if isinstance(error, SyntaxError):
        return f"cannot import {module!r}: {type(error).__name__}: {error}"
    place = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{Path(place.filename).name}, line {place.lineno}"
    if "importlib" in place.filename:
        where = ""
    said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return f"cannot import {module!r}: {said}{f' ({where})' if where else ''}"


def _a(thing: object) -> str:
    name = type(thing).__name__
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"
