"""What is tried in each row: real uses of ungil, each with a number that is judged."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from statistics import median
from typing import Any, Literal

from tracing import Track, read_tracks

from platforms.interpreters import OURS, PROGRAMS, Interpreter
from platforms.room import Ended, Late, Room

State = Literal["passed", "impossible", "failed"]
SCRATCH = "/mnt/scratch"
"""Where a room has the folder of the row."""

HOLDS, HOLD_US = 50, 10_000
# By how much a recorded hold may be wrong; qemu translates the code that reads the clocks.
MOST_OFF_PERCENT, MOST_OFF_EMULATED_PERCENT = 1.0, 5.0
PARKS, PARK_MS, MOST_OFF_PARKS_PERCENT = 5, 200, 2.0
# A policy has to make a thread that sleeps at least so many times less late.
LEAST_TIMES = 5
LEAST_ROUNDS, MOST_ROUNDS, ROUND_S = 2, 4, 1.0
# From when on ungil schedules, and gets into a process that runs.
OLDEST_SCHEDULED, OLDEST_ATTACHED = (3, 7), (3, 8)


@dataclass(frozen=True)
class Outcome:
    """What came of a check: a state, and a number or a sentence."""

    state: State
    text: str


class Wrong(Exception):
    """What a check did not want to see, in a sentence."""


@dataclass(frozen=True)
class Subject:
    """An interpreter in a room, and the ungil that is used there."""

    room: Room
    interpreter: Interpreter
    environment: str
    """The folder of the environment that ungil is installed in."""
    without_ungil: str
    """Why the interpreter itself cannot import ungil; empty if it can."""
    scratch: Path
    is_emulated: bool

    @property
    def ungil(self) -> str:
        """The command."""
        return f"{self.environment}/bin/ungil"

    def run(self, *words: str) -> Ended:
        """Run words with what the interpreter needs in its environment."""
        return self.room.run(*words, **self.interpreter.variables)

    def document(self, *words: str) -> Any:
        """What words print as JSON; `Wrong` if they fail."""
        done = self.run(*words)
        if done.status:
            raise Wrong(done.said)
        return json.loads(done.out)

    def without(self, name: str) -> str:
        """Why it cannot use a module of ungil; empty if it can."""
        if self.without_ungil:
            return self.without_ungil
        return "needs `/proc`" if name == "share" and not self.room.place.has_proc else ""


def doctor(subject: Subject) -> Outcome:
    """The doctor finds that the interpreter is recorded, and what the place lacks."""
    done = subject.run(subject.ungil, "doctor", "--json", subject.interpreter.path)
    try:
        said = json.loads(done.out)
    except json.JSONDecodeError:
        raise Wrong(done.said) from None
    failed = [it for it in said["checks"] if it["status"] == "fail"]
    if failed:
        return Outcome("failed", failed[0]["text"])
    warned = {it["name"] for it in said["checks"] if it["status"] == "warn"}
    told = {*subject.room.place.told, *(["attach"] if subject.is_emulated else [])}
    unsaid = told - warned
    if unsaid:
        raise Wrong(f"it does not say what is wrong with {', '.join(sorted(unsaid))}")
    return Outcome("passed", f"works, without {_named(warned)}" if warned else "works")


def _named(names: set[str]) -> str:
    return ", ".join(f"`{it}`" for it in sorted(names))


def known_holds(subject: Subject) -> Outcome:
    """Each of 50 holds of 10 ms is one slice of the trace, and as long as it was.

    Without a GIL the same of what took its place: parks for a lock.
    """
    if not subject.interpreter.has_gil:
        return known_parks(subject)
    report, trace = f"{SCRATCH}/known.json", f"{SCRATCH}/known.pftrace"
    words = ["trace", "--quiet", "--force", "--json", report, "-o", trace]
    program = [f"{PROGRAMS}/known_holds.py", f"{SCRATCH}/truth.so", str(HOLDS), str(HOLD_US)]
    told = subject.document(subject.ungil, *words, subject.interpreter.path, *program)
    (process,) = json.loads((subject.scratch / "known.json").read_text())["processes"]
    if process["not_recorded"]:
        raise Wrong(process["not_recorded"])
    tracks = read_tracks(subject.scratch / "known.pftrace")
    (holder,) = [it for it in tracks if it.tid == told["tids"]["holder"]]
    off = off_percent(told["holds"], holder, process["clock_error_us"] * 1000)
    most = MOST_OFF_EMULATED_PERCENT if subject.is_emulated else MOST_OFF_PERCENT
    if max(off) > most:
        raise Wrong(f"a hold is off by {max(off):.2f} %, and at most {most:.0f} % are allowed")
    return Outcome("passed", f"{len(off)} of {HOLDS}, within {max(off):.2f} %")


def known_parks(subject: Subject) -> Outcome:
    """Each of 5 waits of 200 ms for a lock is a park, and the middle one as long as it was.

    On a busy machine the thread itself may begin to count earlier, and end later.
    """
    report, trace = f"{SCRATCH}/parks.json", f"{SCRATCH}/parks.pftrace"
    words = ["trace", "--quiet", "--force", "--json", report, "-o", trace]
    program = [f"{OURS}/known_parks.py", str(PARKS), str(PARK_MS)]
    told = subject.document(subject.ungil, *words, subject.interpreter.path, *program)
    if told["has_gil"] or len(told["waited_ns"]) != PARKS:
        raise Wrong(f"the program says {told}")
    tracks = read_tracks(subject.scratch / "parks.pftrace")
    (waiter,) = [it for it in tracks if it.tid == told["tid"]]
    parks = [it.length_ns for it in waiter.parks if it.length_ns > PARK_MS * 1e6 / 2]
    if len(parks) != PARKS:
        raise Wrong(f"{len(parks)} long parks in the place of {PARKS}")
    off = 100 * abs(median(parks) / median(told["waited_ns"]) - 1)
    if off > MOST_OFF_PARKS_PERCENT:
        raise Wrong(f"a park is off by {off:.2f} %, at most {MOST_OFF_PARKS_PERCENT:.0f} % allowed")
    return Outcome("passed", f"{PARKS} of {PARKS} parks, within {off:.2f} %")


def off_percent(known: list[list[int]], holder: Track, error_ns: float) -> list[float]:
    """By how much each known hold was recorded wrongly; `Wrong` if one is not exactly one slice.

    A known hold began between its first two times, and ended between its last two.
    """
    if len(known) != HOLDS:
        raise Wrong(f"the program kept the GIL {len(known)} times and not {HOLDS} times")
    off: list[float] = []
    for before, began, ended, after in known:
        around = [
            it
            for it in holder.of("hold")
            if it.start_ns <= began + error_ns and ended <= it.end_ns + error_ns
        ]
        if len(around) != 1:
            raise Wrong(f"{len(around)} slices in the place of one hold")
        length_ns = around[0].length_ns
        wrong_ns = max(0, ended - began - length_ns, length_ns - (after - before))
        off.append(100 * wrong_ns / (ended - began))
    return off


def policy(subject: Subject) -> Outcome:
    """A thread that sleeps beside four that compute is far less late under `interactive`."""
    if subject.interpreter.version < OLDEST_SCHEDULED:
        return Outcome("impossible", "needs 3.7")
    if not subject.interpreter.has_gil:
        return Outcome("impossible", "there is no GIL to schedule")
    stock = [subject.interpreter.path, f"{OURS}/lateness.py", str(ROUND_S)]
    ours = [subject.ungil, "run", "--policy", "interactive", *stock]
    stock_ms = ours_ms = kernels_ms = float("inf")
    for number in range(MOST_ROUNDS):
        # What else the machine does makes both later, and never earlier.
        stock_ms = min(stock_ms, median(subject.document(*stock)))
        ours_ms = min(ours_ms, median(subject.document(*ours)))
        if number >= LEAST_ROUNDS - 1 and ours_ms * LEAST_TIMES <= stock_ms:
            times = stock_ms / ours_ms
            return Outcome("passed", f"{stock_ms:.1f} to {ours_ms:.2f} ms, {times:.0f} times less")
    # On a machine with much other work: how late a thread is without any GIL to wait for.
    for _ in range(MOST_ROUNDS):
        kernels_ms = min(kernels_ms, median(subject.document(*stock, "process")))
    said = f"{stock_ms:.1f} to {ours_ms:.1f} ms, {kernels_ms:.1f} of both without a GIL"
    if max(0, ours_ms - kernels_ms) * LEAST_TIMES > stock_ms - kernels_ms:
        raise Wrong(f"{said}: the rest is not {LEAST_TIMES} times less")
    return Outcome("passed", said)


def share(subject: Subject) -> Outcome:
    """Two processes count in a dict of one heap, by a lock, and one is killed in the middle."""
    if reason := subject.without("share"):
        return Outcome("impossible", reason)
    said = subject.document(f"{subject.environment}/bin/python", f"{OURS}/sharing.py")
    if said["wrong"]:
        raise Wrong("; ".join(said["wrong"]))
    return Outcome("passed", f"{said['counted']:,} counted")


def fanout(subject: Subject) -> Outcome:
    """Three hundred items come out right in threads, with asyncio, and in the lean loop."""
    if reason := subject.without("fanout"):
        return Outcome("impossible", reason)
    said = subject.document(f"{subject.environment}/bin/python", f"{OURS}/fanning.py")
    if set(said["right"].values()) != {said["items"]}:
        raise Wrong(f"of {said['items']} items came right: {said['right']}")
    return Outcome("passed", f"{len(said['right'])} x {said['items']}")


def attach(subject: Subject) -> Outcome:
    """It records a program that runs, gives it a policy, and leaves; the program stays well.

    Where nobody may trace, ungil has to say so, and get in by standby.
    """
    if subject.interpreter.version < OLDEST_ATTACHED:
        return Outcome("impossible", "needs 3.8")
    if not subject.room.place.has_proc:
        return Outcome("impossible", "needs `/proc`")
    said = _attached(subject)
    refusal = said["trace"]["err"].strip().removeprefix("ungil: ")
    if subject.interpreter.is_free_threaded and "its Python is free-threaded" in refusal:
        return Outcome("impossible", refusal.partition(": ")[2])
    if subject.room.place.may_trace and not subject.is_emulated:
        return _judged(subject, said)
    # Nobody may trace here: one sentence, as for a mistake of the user.
    if said["trace"]["status"] != 2 or "\n" in refusal:
        raise Wrong(f"nobody may trace, and ungil says {said['trace']}")
    standby = _judged(subject, _attached(subject, "--standby"))
    why = "not under qemu" if subject.is_emulated else "not without `ptrace`"
    return Outcome("impossible", f"{why}; in standby {standby.text}")


def _judged(subject: Subject, said: dict[str, Any]) -> Outcome:
    """What came of a program that ungil got into."""
    text = f"{_holds_while_attached(said):,} holds in 1 s"
    if subject.room.place.shm_is_writable:
        _assert_obeyed(said)
        return Outcome("passed", text)
    # A policy is changed through a page in that folder, and is not to be in force without it.
    if said["policy"]["status"] != 2 or "/dev/shm" not in said["policy"]["err"]:
        raise Wrong(f"there is no `/dev/shm` for a policy, and ungil says {said['policy']}")
    return Outcome("passed", f"{text}, no policy without `/dev/shm`")


def _attached(subject: Subject, *options: str) -> dict[str, Any]:
    words = [SCRATCH, subject.ungil, subject.interpreter.path, f"{PROGRAMS}/attached.py", "all"]
    python = f"{subject.environment}/bin/python"
    return subject.document(python, f"{OURS}/attaching.py", *options, *words)


def _holds_while_attached(said: dict[str, Any]) -> int:
    """How many holds were recorded; `Wrong` if there were none, or the program is not well."""
    if said["trace"]["status"]:
        raise Wrong(Ended(**said["trace"]).said)
    if (said["end"].splitlines()[:1], said["status"]) != (["well"], 0):
        raise Wrong(f"the program is not well: {said['end'].strip()} (exit code {said['status']})")
    (process,) = said["report"]["processes"]
    if process["not_recorded"]:
        raise Wrong(process["not_recorded"])
    threads = chain.from_iterable(it["threads"] for it in process["gils"])
    holds = sum(it["holds"]["count"] for it in threads)
    if not holds:
        raise Wrong("no hold was recorded")
    return holds


def _assert_obeyed(said: dict[str, Any]) -> None:
    """`Wrong` if the policy was not in force, or could not be taken back."""
    for name in ("policy", "detach"):
        if said[name]["status"]:
            raise Wrong(Ended(**said[name]).said)
    if json.loads(said["in force"])["processes"][0]["policy"] != "interactive":
        raise Wrong(f"the policy is not in force: {said['in force']}")


CHECKS: dict[str, Callable[[Subject], Outcome]] = {
    "doctor": doctor,
    "known holds": known_holds,
    "policy": policy,
    "share": share,
    "fanout": fanout,
    "attach": attach,
}


def outcome(check: Callable[[Subject], Outcome], subject: Subject) -> Outcome:
    """What came of a check, whatever it was."""
    try:
        return check(subject)
    except (Wrong, Late) as error:
        return Outcome("failed", str(error))
    except (KeyError, ValueError, OSError) as error:
        # What was printed or written is not what it should be.
        return Outcome("failed", f"{type(error).__name__}: {error}")
