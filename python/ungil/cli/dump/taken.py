"""What is dumped of one process, and how it is taken."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from ungil._native import Stacks, look_at_recorded, process_policy
from ungil.cli.attaching import in_turn, refusal
from ungil.cli.live.attached import Attached
from ungil.cli.live.moment import Moment, moment
from ungil.cli.proc import process
from ungil.errors import UsageError

SEEN_S = 0.1
"""For so long calls are seen before anything is said: a thread that waits calls once a switch
interval, 5 ms by default."""
SEEN_IN_LINE_S = 1.05
"""For so long where a policy is in force: a thread in its line calls once a second at least."""
TRIES = 30
"""How often stacks are read to get some that are of one moment with the GIL's account."""

Look = Callable[[], "dict[str, Any] | None"]


@dataclass(frozen=True)
class Dump:
    """One process at one moment."""

    pid: int
    command: tuple[str, ...]
    moment: Moment
    python: str = ""
    policy: str | None = None
    switch_interval_s: float | None = None
    notes: tuple[str, ...] = field(default=())
    """Sentences about what could not be told."""


def dumps(pids: Iterable[int]) -> list[Dump]:
    """What these processes do now. UsageError says of the first one why it cannot be looked at."""
    done: dict[int, Dump] = {}
    attached: list[int] = []
    pids = list(pids)
    with Attached() as live:
        for pid in pids:
            known = process(pid)
            if known is None:
                if pid == pids[0]:
                    raise refusal(pid, ProcessLookupError())
                continue
            try:
                dump = _at_once(live, pid, known.threads)
            except UsageError as why:
                if pid == pids[0] or process(pid) is not None:
                    done[pid] = _without_account(pid, why)
                continue
            if dump is None:
                attached.append(pid)
            else:
                done[pid] = dump
        if attached:
            # Finding an interpreter takes some of that time.
            in_line = any(_has_line(it) for it in attached)
            end = time.monotonic() + (SEEN_IN_LINE_S if in_line else SEEN_S)
            for pid in attached:
                live.everyone(pid)
            time.sleep(max(0.0, end - time.monotonic()))
            for pid in attached:
                done[pid] = _of_attached(live, pid)
    return [done[pid] for pid in pids if pid in done]


def _at_once(live: Attached, pid: int, threads: int) -> Dump | None:
    """What can be told of a process without a wait; `None` if `live` has attached to it for that.

    UsageError says why it cannot.
    """
    with in_turn(pid):
        recorded = look_at_recorded(pid)
        if recorded is None and threads > 1:
            live.attach(pid)
            return None
    if recorded is not None:
        return _of_recorded(pid, json.loads(recorded))
    return _from_outside(pid, ("it has one thread, so no other thread can wait for the GIL",))


def _has_line(pid: int) -> bool:
    """Whether threads of the process may stand in a line of ungil's, where they call nothing."""
    try:
        return process_policy(pid)[0] != "stock"
    except (OSError, RuntimeError):
        return False


def _of_attached(live: Attached, pid: int) -> Dump:
    def account() -> dict[str, Any] | None:
        live.look()
        return live.now(pid)

    first = account()
    if first is None:
        raise UsageError(f"process {pid} has ended")
    return _steady(pid, account, lambda: live.everyone(pid), ())


def _of_recorded(pid: int, first: dict[str, Any]) -> Dump:
    """Of a process that somebody else records: their account is read, and nothing is loaded."""
    stacks = _stacks(pid)

    def account() -> dict[str, Any] | None:
        told = look_at_recorded(pid)
        return first if told is None else json.loads(told)

    note = "another ungil records it; these numbers come from that recording"
    return _steady(pid, account, lambda: json.loads(stacks.read()), (note,))


def _steady(
    pid: int,
    account: Callable[[], dict[str, Any] | None],
    everyone: Look,
    notes: tuple[str, ...],
) -> Dump:
    """Account and stacks of one moment, if the GIL rests for as long as reading stacks takes."""
    tries = 0
    while True:
        tries += 1
        before = account()
        try:
            stacks = everyone()
        except (OSError, RuntimeError):
            stacks = None
        after = account()
        told = after or before
        if told is None:
            raise UsageError(f"process {pid} has ended")
        taken = moment(pid, told, stacks)
        if stacks is not None and before is not None and _agree(pid, before, told, stacks, taken):
            return _dump(pid, told, taken, notes)
        if tries == TRIES:
            if stacks is None:
                notes = (*notes, "its Python stacks cannot be read")
            return _dump(pid, told, replace(taken, steady=False), notes)


def _agree(
    pid: int,
    before: dict[str, Any],
    after: dict[str, Any],
    stacks: dict[str, Any],
    taken: Moment,
) -> bool:
    """Whether the same threads held GILs before, while and after the stacks were read."""
    earlier = moment(pid, before, stacks)
    holds = {it.ident for it in taken.threads if it.state == "holds"}
    owners = {it["ident"] for it in stacks["threads"] if it["owns_gil"]}
    return holds == {it.ident for it in earlier.threads if it.state == "holds"} == owners


def _dump(pid: int, told: dict[str, Any], taken: Moment, notes: tuple[str, ...]) -> Dump:
    if told["not_recorded"]:
        notes = (*notes, f"ungil cannot see which threads wait: {told['not_recorded']}")
    if lost := told["unrecorded_threads"]:
        notes = (*notes, f"{lost} more threads were not seen")
    known = process(pid)
    interval_ns = told["switch_interval_ns"]
    return Dump(
        pid=pid,
        command=known.command if known else (),
        moment=taken,
        python=told["python"],
        policy=told["policy"],
        switch_interval_s=None if interval_ns is None else interval_ns / 1e9,
        notes=notes,
    )


def _without_account(pid: int, why: UsageError) -> Dump:
    """What can be seen of a process that cannot be attached to; `why` if that is nothing."""
    try:
        return _from_outside(pid, (f"{why}; which threads wait, and since when, is unknown",))
    except UsageError:
        raise why from None


def _from_outside(pid: int, notes: tuple[str, ...]) -> Dump:
    """By the interpreter's own memory alone: who holds, not for how long."""
    stacks = _stacks(pid)
    try:
        taken = moment(pid, None, json.loads(stacks.read()))
    except (OSError, RuntimeError) as error:
        raise refusal(pid, error) from error
    known = process(pid)
    return Dump(pid=pid, command=known.command if known else (), moment=taken, notes=notes)


def _stacks(pid: int) -> Stacks:
    try:
        return Stacks(pid)
    except (OSError, RuntimeError) as error:
        raise refusal(pid, error) from error
