"""`ungil policy`: show and change the policy of a running process."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from typing import TypedDict, TypeVar

import click

from ungil._native import (
    StillStarting,
    WithoutPolicy,
    attach_policy,
    detach_policy,
    process_policy,
    set_process_policy,
)
from ungil.cli import proc
from ungil.cli.attaching import in_turn, way_in
from ungil.cli.command import Command, process_number
from ungil.cli.completing import policies, processes
from ungil.cli.scheduling import known_policy, milliseconds
from ungil.errors import UsageError
from ungil.formatting import reason

EXAMPLES = """\
  ungil policy 4711                    which policy has it?
  ungil policy 4711 batch              change it
  ungil policy 4711 fair --quantum 2   and its quantum
  ungil policy 4711 stock --children   its children, too: a server and its workers
  ungil policy 4711 stock --detach     ungil does nothing there any more
"""


# A program that is still starting gets so long: a Python takes some tens of milliseconds.
PATIENCE_S = 2.0
PAUSE_S = 0.01

Answer = TypeVar("Answer")


class Settings(TypedDict):
    """A policy and its quantum; stock has none."""

    policy: str
    quantum_ms: float | None


class ScheduledProcess(Settings):
    """A process, its settings, and those it had before they were changed.

    `stopped_ms`: for how long a thread of it stood still, at most, for that; None if none did.
    """

    pid: int
    before: Settings | None
    stopped_ms: float | None


@click.command(cls=Command, name="policy", examples=EXAMPLES)
@click.argument("pid", callback=process_number, shell_complete=processes)
@click.argument("name", required=False, shell_complete=policies)
@click.option("--quantum", metavar="MS", help="Time slice [default: that of the policy].")
@click.option("--children", is_flag=True, help="Include the scheduled descendants of PID.")
@click.option(
    "--detach",
    is_flag=True,
    help="With stock: also take the hook out of PID; its library stays mapped.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a sentence.")
def command(
    pid: int,
    name: str | None,
    quantum: str | None,
    children: bool,
    detach: bool,
    as_json: bool,
) -> None:
    """Show the policy of process PID, or change it to NAME.

    NAME is interactive, fair, batch, priority or stock; docs/scheduling.md says what they do.

    A process has a policy if ungil run or ungil trace started it, if it has the variables of
    `ungil run --env`, or if it called ungil.gil.install(). If it is still starting, ungil waits for
    up to two seconds.

    Any other CPython (3.8 or newer) gets its first policy while it runs: ungil stops one of its
    threads for some milliseconds and makes it load the hook. That takes the right to trace the
    process.

    The change takes effect at once. Processes that PID forks later inherit it. Programs that PID
    starts later begin with the policy of their command line or environment.
    """
    if name is not None:
        known_policy("NAME", name)
    if detach and (name != "stock" or quantum is not None):
        raise UsageError("--detach works only with stock: ungil policy PID stock --detach")
    quantum_ns = None
    if quantum is not None:
        quantum_ns = max(1, round(milliseconds("--quantum", quantum) * 1e6))
    processes = [
        _detached(it) if detach else shown_or_changed(it, name, quantum_ns)
        for it in ([pid] if not children else _scheduled(pid))
    ]
    if as_json:
        print(json.dumps({"schema": 1, "processes": processes}))
        return
    for process in processes:
        before = process["before"]
        was = "" if before is None else f" (was {_words(before)})"
        now = "detached" if detach else _words(process)
        print(f"process {process['pid']}: {now}{was}{_way_in(process)}")


def shown_or_changed(pid: int, name: str | None, quantum_ns: int | None) -> ScheduledProcess:
    """Process `pid`, after it was given policy `name` or that quantum, if there are any.

    UsageError if it has no policy, and can be given none.
    """
    before = stopped_s = None
    if name is not None or quantum_ns is not None:
        policy = name if name is not None else _policy_of(pid)[0]

        def change() -> tuple[tuple[str, int], float | None]:
            try:
                return set_process_policy(pid, policy, quantum_ns or 0), None
            except WithoutPolicy:
                if name is None:
                    raise
            with in_turn(pid):
                return ("stock", 0), attach_policy(pid, name, quantum_ns)

        was, stopped_s = answer(pid, change)
        before = _settings(was)
    return _scheduled_process(pid, _policy_of(pid), before, stopped_s)


def _detached(pid: int) -> ScheduledProcess:
    """Process `pid` without its hook; UsageError if that cannot be taken out."""
    before = _settings(_policy_of(pid))
    stopped_s = answer(pid, lambda: detach_policy(pid))
    return _scheduled_process(pid, ("stock", 0), before, stopped_s)


def _policy_of(pid: int, patience_s: float = PATIENCE_S) -> tuple[str, int]:
    return answer(pid, lambda: process_policy(pid), patience_s)


def answer(pid: int, ask: Callable[[], Answer], patience_s: float = PATIENCE_S) -> Answer:
    """What `ask` returns, once process `pid` has started; UsageError if it has no policy."""
    deadline = time.monotonic() + patience_s
    while True:
        try:
            return ask()
        except StillStarting as error:
            if time.monotonic() >= deadline:
                raise _refusal(pid, error) from error
            time.sleep(PAUSE_S)
        except (OSError, RuntimeError) as error:
            raise _refusal(pid, error) from error


def _refusal(pid: int, error: OSError | RuntimeError) -> UsageError:
    """What the native part says, in a sentence about process `pid`."""
    if not proc.is_mounted():
        return UsageError(f"process {pid} cannot be inspected: {proc.ABSENT}")
    if isinstance(error, FileNotFoundError | ProcessLookupError):
        return UsageError(f"there is no process {pid}")
    if isinstance(error, PermissionError):
        advice = "try as its user or as root"
        if os.geteuid() == 0:
            advice = "give this container CAP_SYS_PTRACE (docker run --cap-add SYS_PTRACE)"
        return UsageError(f"process {pid} cannot be inspected: permission denied; {advice}")
    why = reason(error) if isinstance(error, OSError) else str(error)
    return UsageError(f"process {pid} has no policy: {why}")


def _scheduled(pid: int) -> list[int]:
    """`pid` and its descendants, those that are scheduled; UsageError if none is."""
    family = list(proc.family(pid))
    found: list[int] = []
    refusal: UsageError | None = None
    for it in family:
        try:
            # A child may be left alone for ever, and cannot be told from one that is starting.
            _policy_of(it, PATIENCE_S if it == pid else 0)
        except UsageError as error:
            refusal = refusal or error
        else:
            found.append(it)
    if refusal is None or found:
        return found
    if len(family) == 1:
        raise refusal
    raise UsageError(
        f"neither process {pid} nor a descendant of it has a policy; give each process its first "
        "one by itself: ungil policy PID NAME"
    )


def _scheduled_process(
    pid: int, settings: tuple[str, int], before: Settings | None, stopped_s: float | None
) -> ScheduledProcess:
    stopped_ms = None if stopped_s is None else stopped_s * 1e3
    return {"pid": pid, **_settings(settings), "before": before, "stopped_ms": stopped_ms}


def _way_in(process: ScheduledProcess) -> str:
    """What to say of it, where there is anything to say."""
    stopped_ms = process["stopped_ms"]
    return "" if stopped_ms is None else f"; attached {way_in(stopped_ms / 1e3)}"


def _settings(settings: tuple[str, int]) -> Settings:
    policy, quantum_ns = settings
    return {"policy": policy, "quantum_ms": None if policy == "stock" else quantum_ns / 1e6}


def _words(settings: Settings | ScheduledProcess) -> str:
    if settings["policy"] == "stock":
        return "stock"
    return f"{settings['policy']}, quantum {settings['quantum_ms']:g} ms"
