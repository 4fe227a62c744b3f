"""A dump as text for people, and as data for programs."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.markup import escape

from ungil.cli.dump.taken import Dump
from ungil.cli.live.moment import Thread
from ungil.formatting import duration, plural, printable


def print_dump(console: Console, dump: Dump) -> None:
    """For people: the holder first, then those that wait, then the others."""
    console.print(f"process {dump.pid}: {_plain(shlex.join(dump.command))}", soft_wrap=True)
    console.print(f"[dim]{_surroundings(dump)}[/dim]")
    for note in dump.notes:
        console.print(f"[dim]{_plain(note)}[/dim]", soft_wrap=True)
    if not dump.moment.steady:
        console.print(
            "[dim]its GIL changes hands faster than ungil reads stacks: a stack may be slightly "
            "older or newer than its state[/dim]"
        )
    for number in dump.moment.gils or [0]:
        console.print(f"\n{_sentence(dump, number)}")
    for thread in dump.moment.threads:
        console.print(f"\n{_headline(dump, thread)}")
        for frame in thread.stack:
            console.print(f"    {_plain(str(frame))}", soft_wrap=True)
        if not thread.stack:
            console.print("    [dim]no Python stack[/dim]")


def as_data(dump: Dump) -> dict[str, Any]:
    """For programs; docs/live.md describes the keys."""
    told = dump.moment
    return {
        "pid": dump.pid,
        "command": list(dump.command),
        "python": dump.python or None,
        "policy": dump.policy,
        "switch_interval_s": dump.switch_interval_s,
        "seen_s": told.seen_s,
        "steady": told.steady,
        "gils": [
            {
                "gil": number,
                "holder": holder.tid if (holder := told.holder(number)) else None,
                "held_s": holder.for_s if holder else None,
                "at_least": holder.at_least if holder else False,
                "waiters": [it.tid for it in told.waiters(number)],
            }
            for number in told.gils or [0]
        ],
        "threads": [_thread_data(dump, it) for it in told.threads],
        "notes": list(dump.notes),
    }


def _thread_data(dump: Dump, thread: Thread) -> dict[str, Any]:
    waits = thread.state == "waits"
    holder = dump.moment.holder(thread.gil) if waits else None
    return {
        "tid": thread.tid,
        "name": thread.name,
        "main": thread.main,
        "state": thread.state,
        "gil": None if thread.state == "off" else thread.gil,
        "for_s": thread.for_s,
        "at_least": thread.at_least,
        "waits_for": holder.tid if holder else None,
        "stack": [asdict(it) for it in thread.stack],
    }


def _surroundings(dump: Dump) -> str:
    parts = [f"Python {dump.python}"] if dump.python else []
    if dump.policy is not None and dump.policy != "stock":
        parts.append(f"policy {dump.policy}")
    if dump.switch_interval_s is not None:
        parts.append(f"switch interval {1e3 * dump.switch_interval_s:.2g} ms")
    parts.append(plural(len(dump.moment.threads), "thread"))
    if dump.moment.seen_s is not None:
        parts.append(f"seen for {duration(dump.moment.seen_s)}")
    return ", ".join(parts)


def _sentence(dump: Dump, number: int) -> str:
    """Who holds this GIL, for how long, and how many wait."""
    which = "the GIL" if number == 0 else f"GIL {number}"
    holder, waiters = dump.moment.holder(number), dump.moment.waiters(number)
    waiting = f"; {plural(len(waiters), 'thread')} {_verb(len(waiters))} for it" if waiters else ""
    if holder is None:
        return f"[bold]nobody holds {which}[/bold]{waiting}"
    waiting = waiting or ("; nobody waits for it" if dump.moment.seen_s is not None else "")
    return f"[bold]{_name(holder)} holds {which}{_for(holder)}[/bold]{waiting}"


def _headline(dump: Dump, thread: Thread) -> str:
    who = f"[bold]{_name(thread)}[/bold]" + (
        f" [dim](thread {thread.tid})[/dim]" if thread.tid else ""
    )
    match thread.state:
        case "holds":
            return f"{who} [red]holds[/red]{_for(thread)}"
        case "waits":
            holder = dump.moment.holder(thread.gil)
            whom = f" for {_name(holder)}" if holder else ""
            return f"{who} [yellow]waits[/yellow]{whom}{_for(thread)}"
        case "off":
            # A thread in a line of ungil's calls once a second only, and later if nothing runs it.
            is_sure = dump.moment.seen_s is not None and dump.policy in (None, "stock")
            wants = "does not want the GIL" if is_sure else "was not seen waiting for it"
            return f"{who} [dim]{wants}[/dim]"


def _for(thread: Thread) -> str:
    if thread.for_s is None:
        return ""
    return f", for {'at least ' if thread.at_least else ''}{duration(thread.for_s)}"


def _verb(number: int) -> str:
    return "waits" if number == 1 else "wait"


def _name(thread: Thread) -> str:
    return _plain(thread.name)


def _plain(text: str) -> str:
    return escape(printable(text))
