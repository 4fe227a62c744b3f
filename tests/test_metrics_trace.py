"""Metrics and a trace of the same server agree within 2 %."""

from __future__ import annotations

from pathlib import Path

import pytest
from suite import PROGRAMS
from tracing import Recording, trace

TOLERANCE = 0.02


@pytest.fixture(params=["wsgi", "asgi"], scope="module")
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def recording(kind: str, tmp_path_factory: pytest.TempPathFactory) -> Recording:
    return trace(tmp_path_factory.mktemp("trace"), PROGRAMS / "metrics_traced.py", kind)


def test_the_counters_of_the_process_are_those_of_its_trace(recording: Recording) -> None:
    others = [it for it in recording.gil["threads"] if it["tid"] != recording.process["pid"]]
    told = recording.told["others"]
    for metric, traced in {
        "python_gil_waits_total": sum(it["waits"]["count"] for it in others),
        "python_gil_wait_seconds_total": sum(it["waited_s"] for it in others),
        "python_gil_holds_total": sum(it["holds"]["count"] for it in others),
        "python_gil_hold_seconds_total": sum(it["held_s"] for it in others),
        "python_gil_releases_totalvoluntary": sum(it["voluntary"] for it in others),
        "python_gil_releases_totalforced": sum(it["forced"] for it in others),
    }.items():
        assert told[metric] == pytest.approx(traced, rel=TOLERANCE), metric
        assert told[metric] > 0, metric


def test_what_requests_waited_is_what_their_threads_waited_meanwhile(
    kind: str, recording: Recording
) -> None:
    told = recording.told
    assert told["requests"] == 40
    waits = {track.tid: track.of("wait") for track in recording.tracks}
    traced_ns = sum(
        max(0, min(wait.end_ns, ended) - max(wait.start_ns, began))
        for tid, began, ended in told["spans"]
        for wait in waits[tid]
    )
    assert traced_ns > 40 * 1_000_000
    if kind == "wsgi":
        assert told["waited_ns"] == pytest.approx(traced_ns, rel=TOLERANCE)
    else:
        # The waits of the loop before its steps come on top, each once: one request runs at a time.
        loop = told["spans"][0][0]
        whole_ns = sum(wait.length_ns for wait in waits[loop])
        assert traced_ns * (1 - TOLERANCE) <= told["waited_ns"] <= whole_ns * (1 + TOLERANCE)


def test_a_recorder_changes_no_sum_of_ended_threads(tmp_path: Path) -> None:
    recording = trace(tmp_path, PROGRAMS / "metrics_never_fall.py")
    assert recording.told["fell"] == []
    before, after = recording.told["process"]
    for field in before:
        parts = sum(group[field] for group in recording.told["groups"].values())
        assert before[field] <= parts <= after[field], field
    held_s = sum(it["held_s"] for it in recording.gil["threads"])
    assert before["held_ns"] / 1e9 <= held_s * (1 + TOLERANCE)
