"""Every hold and wait is recorded, and as long as it was: the program's own clock is the judge.

`programs/known_holds.py` keeps the GIL 200 times for 10 ms while another thread wants it, and
writes down when, by CLOCK_MONOTONIC. Where the hook reads that clock too, what lies inside of what
is exact; where it reads the processor's counter, it is as exact as the report says it is.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

import pytest
from pythons import Python, pythons
from suite import PROGRAMS
from tracing import Recording, Track, compile_library, trace

HOLDS = 200
HOLD_US = 10_000


@dataclass(frozen=True)
class Known:
    """What a run of known_holds.py said and what was recorded of it."""

    recording: Recording
    holds: list[tuple[int, int, int, int]]
    """Before it was acquired, when it was certainly held from, until, after it was released."""
    waits: list[tuple[int, int]]
    """Before it asked, after it got it."""

    @property
    def error_ns(self) -> float:
        """How far recorded times may be from the program's clock: far less than a hold is long."""
        error_us: float = self.recording.process["clock_error_us"]
        # A virtual machine that is busy may bend the kernel's clock.
        assert error_us <= HOLD_US / 10
        return error_us * 1000

    def track(self, role: str) -> Track:
        """The thread that played the role."""
        tid = self.recording.told["tids"][role]
        (track,) = [it for it in self.recording.tracks if it.tid == tid]
        return track

    def row(self, role: str) -> dict[str, float]:
        """Its row in the report."""
        tid = self.recording.told["tids"][role]
        (row,) = [it for it in self.recording.gil["threads"] if it["tid"] == tid]
        return row


# The clock that suits this machine with every Python, and CLOCK_MONOTONIC itself with one.
PYTHONS = pythons("2.7", "3.8", "3.11", "3.11-debian", "3.12", "3.13", "musl")
CASES = [(it, "") for it in PYTHONS] + [(it, "monotonic") for it in pythons("3.13")]


@pytest.fixture(
    scope="module", params=CASES, ids=["-".join(filter(None, map(str, it))) for it in CASES]
)
def known(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Known:
    """200 known holds and the waits for them."""
    python: Python = request.param[0]
    environment = {**os.environ, "UNGIL_CLOCK": request.param[1]}
    folder = tmp_path_factory.mktemp("known")
    program = PROGRAMS / "known_holds.py"
    library = compile_library(folder, compiler=python.compiler)
    words = (python.path, program, library, str(HOLDS), str(HOLD_US))
    recording = trace(folder, *words, env=environment)
    if environment["UNGIL_CLOCK"]:
        assert recording.process["clock_error_us"] == 0
    told = recording.told
    return Known(
        recording, [tuple(it) for it in told["holds"]], [tuple(it) for it in told["waits"]]
    )


def test_each_known_hold_is_exactly_one_slice(known: Known) -> None:
    recorded, error_ns = known.track("holder").of("hold"), known.error_ns
    assert len(known.holds) == HOLDS
    for before, began, ended, after in known.holds:
        around = [
            it
            for it in recorded
            if it.start_ns <= began + error_ns and ended <= it.end_ns + error_ns
        ]
        assert len(around) == 1, (before, began, ended, after)
        assert before <= around[0].start_ns + error_ns
        assert around[0].end_ns <= after + error_ns


def test_each_known_wait_is_exactly_one_slice(known: Known) -> None:
    track, error_ns = known.track("waiter"), known.error_ns
    waited = 0
    for asked, got in known.waits:
        hold = next(it for it in track.of("hold") if it.start_ns + error_ns >= asked)
        assert hold.start_ns <= got + error_ns
        waits = [
            it
            for it in track.of("wait")
            if asked <= it.start_ns + error_ns <= hold.start_ns + error_ns
        ]
        assert [it.end_ns for it in waits] in ([], [hold.start_ns])
        waited += len(waits)
    # Whoever asks while the GIL is kept has to wait, unless the kernel lets it ask too late.
    in_vain = [
        asked
        for asked, _ in known.waits
        if any(began <= asked < ended for _, began, ended, _ in known.holds)
    ]
    assert waited >= 0.98 * len(in_vain) > 0


def test_the_sums_of_the_report_are_those_of_all_slices(known: Known) -> None:
    # Of which the tests before this one say that they agree with the program's clock.
    for role, kind, told in (("holder", "hold", "held_s"), ("waiter", "wait", "waited_s")):
        slices = known.track(role).of(kind)
        total_s = sum(it.end_ns - it.start_ns for it in slices) / 1e9
        assert known.row(role)[told] == pytest.approx(total_s, rel=0.001)
    held_s = sum(ended - began for _, began, ended, _ in known.holds) / 1e9
    assert known.row("holder")["held_s"] >= held_s - HOLDS * known.error_ns / 1e9


def test_all_that_was_waited_while_it_held_is_blamed_on_the_holder(known: Known) -> None:
    # Not all of a wait: on a machine under load the kernel may not run who has got the GIL.
    waits, holds = known.track("waiter").of("wait"), known.track("holder").of("hold")
    meanwhile_ns = sum(
        max(0, min(wait.end_ns, hold.end_ns) - max(wait.start_ns, hold.start_ns))
        for wait in waits
        for hold in holds
    )
    tids = known.recording.told["tids"]
    (row,) = [
        row
        for row in known.recording.gil["blame"]
        if (row["victim"], row["culprit"]) == (tids["waiter"], tids["holder"])
    ]
    assert row["waited_s"] == pytest.approx(meanwhile_ns / 1e9, rel=0.001)
    assert row["waited_s"] > 0


def test_threads_are_called_as_python_calls_them(known: Known) -> None:
    if known.recording.report["python"].startswith("2."):
        names = {f"thread-{known.track(role).tid}" for role in ("holder", "waiter")}
    else:
        names = {"holder", "waiter"}
    assert {known.row(role)["name"] for role in ("holder", "waiter")} == names
