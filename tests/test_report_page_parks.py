"""What threads waited for without a GIL, on the page, in a browser."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest
from playwright.sync_api import Browser
from pythons import Python, free_threaded
from shown_pages import DESK, Shown, chromium, page_of, report_of
from tracing import trace

# Threads that change one dict all the time.
CONTENDING = """
import threading, time
counts, stop = {}, time.monotonic() + 1
def count():
    while time.monotonic() < stop:
        counts["all"] = counts.get("all", 0) + 1
threads = [threading.Thread(target=count, name=f"counter-{n}") for n in range(4)]
[it.start() for it in threads]
[it.join() for it in threads]
"""
pytestmark = pytest.mark.parametrize("python", free_threaded(), ids=str)


@pytest.fixture(scope="module")
def browser() -> Generator[Browser]:
    with chromium() as running:
        yield running


def test_who_waited_for_which_lock_is_shown(
    python: Python, browser: Browser, tmp_path: Path
) -> None:
    recording = trace(tmp_path, python.path, "-c", CONTENDING).path
    (process,) = report_of(recording)["processes"]
    first = process["parks"]["waits"][0]
    shown = Shown(browser, page_of(recording), DESK)
    section = shown.page.locator("section[aria-labelledby=parks]")
    section.locator("table").nth(1).wait_for()
    assert "The GIL was off" in section.inner_text()
    row = section.locator("table").nth(1).locator("tbody tr").first.inner_text()
    assert row.startswith(first["name"])
    assert "the lock of one dict" in row
