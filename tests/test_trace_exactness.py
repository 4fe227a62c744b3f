"""Every hold and wait is recorded, and as long as it was: the program's own clock is the judge.

`programs/known_holds.py` keeps the GIL 200 times for 10 ms while another thread wants it, and
writes down when. Both clocks are CLOCK_MONOTONIC, so what lies inside of what is exact.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

import pytest
from pythons import Python, missing, pythons
from tracing import PROGRAMS, Recording, Track, compile_library, trace

HOLDS = 200
HOLD_US = 10_000


def test_a_machine_that_integrates_has_every_version_that_is_claimed() -> None:
    """Elsewhere the tests run on what there is."""
    assert "CI" not in os.environ or not missing()


@dataclass(frozen=True)
class Known:
    """What a run of known_holds.py said and what was recorded of it."""

    recording: Recording
    holds: list[tuple[int, int, int, int]]
    """Before it was acquired, when it was certainly held from, until, after it was released."""
    waits: list[tuple[int, int]]
    """Before it asked, after it got it."""

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


@pytest.fixture(
    scope="module", params=pythons("2.7", "3.8", "3.11", "3.11-debian", "3.12", "3.13"), ids=str
)
def known(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Known:
    """200 known holds and the waits for them."""
    python: Python = request.param
    folder = tmp_path_factory.mktemp("known")
    program, library = PROGRAMS / "known_holds.py", compile_library(folder)
    recording = trace(folder, python.path, program, library, str(HOLDS), str(HOLD_US))
    told = recording.told
    return Known(
        recording, [tuple(it) for it in told["holds"]], [tuple(it) for it in told["waits"]]
    )


def test_each_known_hold_is_exactly_one_slice(known: Known) -> None:
    recorded = known.track("holder").of("hold")
    assert len(known.holds) == HOLDS
    for before, began, ended, after in known.holds:
        around = [it for it in recorded if it.start_ns <= began and ended <= it.end_ns]
        assert len(around) == 1, (before, began, ended, after)
        assert before <= around[0].start_ns
        assert around[0].end_ns <= after


def test_each_known_wait_is_exactly_one_slice(known: Known) -> None:
    track = known.track("waiter")
    waited = 0
    for asked, got in known.waits:
        hold = next(it for it in track.of("hold") if it.start_ns >= asked)
        assert hold.start_ns <= got
        waits = [it for it in track.of("wait") if asked <= it.start_ns <= hold.start_ns]
        assert [it.end_ns for it in waits] in ([], [hold.start_ns])
        waited += len(waits)
    # Whoever asks while the GIL is kept has to wait, unless the kernel lets it ask too late.
    in_vain = [
        asked
        for asked, _ in known.waits
        if any(began <= asked < ended for _, began, ended, _ in known.holds)
    ]
    assert waited >= 0.98 * len(in_vain) > 0


def test_the_sums_of_the_report_agree_with_the_programs_clock(known: Known) -> None:
    held_s = sum(ended - began for _, began, ended, _ in known.holds) / 1e9
    assert known.row("holder")["held_s"] == pytest.approx(held_s, rel=0.02)
    waited_s = sum(got - asked for asked, got in known.waits) / 1e9
    assert known.row("waiter")["waited_s"] == pytest.approx(waited_s, rel=0.02)


def test_all_that_was_waited_is_blamed_on_the_holder(known: Known) -> None:
    tids = known.recording.told["tids"]
    (row,) = [
        row
        for row in known.recording.gil["blame"]
        if (row["victim"], row["culprit"]) == (tids["waiter"], tids["holder"])
    ]
    assert row["waited_s"] == pytest.approx(known.row("waiter")["waited_s"], rel=0.02)


def test_threads_are_called_as_python_calls_them(known: Known) -> None:
    if known.recording.report["python"].startswith("2."):
        names = {f"thread-{known.track(role).tid}" for role in ("holder", "waiter")}
    else:
        names = {"holder", "waiter"}
    assert {known.row(role)["name"] for role in ("holder", "waiter")} == names
