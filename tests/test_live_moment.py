"""The GIL's own account of a moment, joined with the stacks that were read from outside."""

from __future__ import annotations

from typing import Any

from ungil.cli.live.moment import Moment, moment

PID = 4711
SEEN_NS, AT_NS = 1_000_000_000, 1_500_000_000


def account(tid: int, **facts: Any) -> dict[str, Any]:
    """A thread as the process itself tells of it; its ident is ten times its number."""
    known = {"holding_since_ns": None, "waiting_since_ns": None, "is_first_wait": False}
    return {"tid": tid, "ident": tid * 10, "gil": 0, "releases": 0, **known, **facts}


def stack(tid: int, *, owns_gil: bool = False, name: str | None = None) -> dict[str, Any]:
    """A thread as the interpreter's memory shows it."""
    frames = [{"function": "work", "file": "app.py", "line": tid}]
    names = {"ident": tid * 10, "tid": tid, "name": name or f"worker-{tid}"}
    return {**names, "owns_gil": owns_gil, "frames": frames}


def joined(accounts: list[dict[str, Any]], stacks: list[dict[str, Any]]) -> Moment:
    """The moment that these make."""
    now = {"at_ns": AT_NS, "seen_since_ns": SEEN_NS, "threads": accounts}
    return moment(PID, now, {"threads": stacks})


def test_a_hold_that_was_seen_to_begin_lasts_from_then() -> None:
    seen = joined([account(1, holding_since_ns=AT_NS - 250_000_000)], [stack(1, owns_gil=True)])
    holder = seen.holder()
    assert holder is not None
    assert (holder.tid, holder.for_s, holder.at_least) == (1, 0.25, False)
    assert [it.line for it in holder.stack] == [1]
    assert seen.seen_s == 0.5


def test_who_has_the_gil_and_was_not_seen_to_take_it_has_held_it_since_before() -> None:
    waiting = account(2, waiting_since_ns=AT_NS - 400_000_000, is_first_wait=True)
    seen = joined([waiting], [stack(1, owns_gil=True), stack(2)])
    holder, (waiter,) = seen.holder(), seen.waiters()
    assert holder is not None
    assert (holder.tid, holder.for_s, holder.at_least) == (1, 0.5, True)
    assert (waiter.tid, waiter.for_s, waiter.at_least) == (2, 0.4, True)


def test_once_anybody_was_seen_to_let_go_the_account_alone_says_who_holds() -> None:
    # The GIL is on its way to thread 2; the stacks are a moment older.
    accounts = [account(1, releases=1), account(2, waiting_since_ns=AT_NS - 1_000)]
    seen = joined(accounts, [stack(1, owns_gil=True), stack(2)])
    assert seen.holder() is None
    assert [it.tid for it in seen.waiters()] == [2]


def test_of_two_holders_the_first_has_it_as_slots_are_read_one_by_one() -> None:
    accounts = [
        account(1, holding_since_ns=AT_NS - 10),
        account(2, holding_since_ns=AT_NS - 500),
    ]
    seen = joined(accounts, [stack(1), stack(2)])
    assert [it.tid for it in seen.threads if it.state == "holds"] == [2]


def test_every_gil_has_its_holder_and_its_waiters() -> None:
    accounts = [
        account(1, holding_since_ns=AT_NS - 10),
        account(2, holding_since_ns=AT_NS - 20, gil=1),
        account(3, waiting_since_ns=AT_NS - 5, gil=1),
    ]
    seen = joined(accounts, [])
    assert seen.gils == [0, 1]
    assert [it.tid for it in seen.waiters(1)] == [3]
    assert (seen.holder(0), seen.holder(1)) == (seen.threads[1], seen.threads[0])


def test_without_an_account_the_holder_is_known_and_not_for_how_long() -> None:
    seen = moment(PID, None, {"threads": [stack(PID, owns_gil=True, name="MainThread"), stack(1)]})
    holder = seen.holder()
    assert holder is not None
    assert (holder.name, holder.main, holder.for_s) == ("MainThread", True, None)
    assert seen.seen_s is None


def test_the_longest_wait_comes_first_and_who_wants_nothing_comes_last() -> None:
    accounts = [account(2, waiting_since_ns=AT_NS - 10), account(3, waiting_since_ns=AT_NS - 20)]
    seen = joined(accounts, [stack(1), stack(2), stack(3), stack(4, owns_gil=True)])
    assert [it.tid for it in seen.threads] == [4, 3, 2, 1]
