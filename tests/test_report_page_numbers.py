"""The numbers that the page of a trace computes in a browser are those of the report."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser
from shown_pages import Shown, chromium, page_of, report_of
from suite import PROGRAMS
from tracing import trace


@pytest.fixture(scope="module")
def browser() -> Generator[Browser]:
    with chromium() as opened:
        yield opened


@pytest.fixture(scope="module")
def convoy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trace(tmp_path_factory.mktemp("convoy"), PROGRAMS / "convoy.py", "300").path


def same_thread(lane: dict[str, Any], thread: dict[str, Any]) -> bool:
    """Whether a lane of the page may be that thread of the report."""
    return lane["tid"] == thread["tid"] and lane["held_s"] == pytest.approx(
        thread["held_s"], abs=2e-6
    )


def agree(measured: dict[str, Any], gil: dict[str, Any]) -> None:
    """What the page measured from single holds is what the report says of that GIL."""
    for key in ("held_s", "contended_s"):
        assert measured[key] == pytest.approx(gil[key], rel=1e-6, abs=2e-6), key
    for key in ("handoffs", "voluntary", "forced"):
        assert measured[key] == gil[key], key
    assert gil["others"] is None
    unseen = list(measured["threads"])
    for thread in gil["threads"]:
        # The kernel may give a tid to a later thread again.
        lane = next(it for it in unseen if same_thread(it, thread))
        unseen.remove(lane)
        for key in ("held_s", "waited_s"):
            assert lane[key] == pytest.approx(thread[key], abs=2e-6), key
        for kind in ("holds", "waits"):
            assert lane[kind]["count"] == thread[kind]["count"]
            assert lane[kind]["max_us"] == pytest.approx(thread[kind]["max_us"], abs=0.01)
        for quantile in ("p50_us", "p99_us"):
            exact = lane["waits"][quantile]
            assert exact == pytest.approx(thread["waits"][quantile], rel=0.011, abs=0.01)
        for key in ("mean_ms", "max_ms"):
            assert lane["gaps"][key] == pytest.approx(thread["gaps"][key], abs=1e-4), key
        for key in ("voluntary", "forced", "drop_requests"):
            assert lane[key] == thread[key], key
        for key in ("calls", "late"):
            assert lane["blocking"][key] == thread["blocking"][key], key
        assert lane["unanswered"]["holds"] == thread["unanswered"]["holds"]
        for key in ("total_s", "waited_s"):
            said = thread["unanswered"][key]
            assert lane["unanswered"][key] == pytest.approx(said, abs=1e-5), key
    blame = {
        (it["victim"], it["culprit"]): it["waited_s"]
        for it in gil["blame"]
        if it["waited_s"] > 1e-6
    }
    tids = [it["tid"] for it in measured["threads"]]
    charged = {
        (tids[it["victim"]], None if it["culprit"] is None else tids[it["culprit"]]): it["waited_s"]
        for it in measured["blame"]
        if it["waited_s"] > 1e-6
    }
    assert charged == pytest.approx(blame, abs=1e-6)


def numbers(shown: Shown, start: float, end: float) -> dict[str, Any]:
    """What the page measures between two moments, in seconds."""
    begin, until = (round(it / shown.unit_s) for it in (start, end))
    return shown.page.evaluate("([a, b]) => ungil.numbers(0, a, b)", [begin, until])


@pytest.mark.parametrize(
    "words",
    [
        [PROGRAMS / "convoy.py", "300"],
        [PROGRAMS / "short_threads.py", "60", "6", "5"],
        [
            "-c",
            "import threading; t = threading.Thread(target=sum, args=(range(9**7),)); t.start()",
        ],
    ],
    ids=["convoy", "short-threads", "computing"],
)
def test_over_the_whole_run_its_numbers_are_the_reports(
    browser: Browser, tmp_path: Path, words: list[str | Path]
) -> None:
    recording = trace(tmp_path, *words)
    shown = Shown(browser, page_of(recording.path))
    whole = numbers(shown, 0.0, recording.report["duration_s"])
    agree(whole, recording.report["processes"][0]["gils"][0])


def test_numbers_of_a_range_are_those_of_the_report_of_that_part(
    browser: Browser, convoy: Path
) -> None:
    seconds = report_of(convoy)["duration_s"]
    shown = Shown(browser, page_of(convoy))
    for first, last in ((0.3, 0.8), (0.0, 0.5), (0.61, 0.62)):
        start, end = round(seconds * first, 3), round(seconds * last, 3)
        part = report_of(convoy, "--from", str(start), "--to", str(end))
        agree(numbers(shown, start, end), part["processes"][0]["gils"][0])
