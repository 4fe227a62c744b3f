"""Pages of large traces in a browser: many threads, many processes, more holds than fit."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest
from playwright.sync_api import Browser
from shown_pages import PHONE, Shown, chromium, page_of, report_of
from tracing import trace

THREADS, PROCESSES = 10_000, 500
MARKS = "<img src=x onerror=window.executed=1>"
CROWD = f"""
import threading, time
def work(seconds):
    sum(range(500))
    time.sleep(seconds)
for batch in range({THREADS} // 100):
    # The names of the last ones are read: they live for longer than the longest pause between two
    # looks for names, which so many threads without one make.
    rest = (0 if batch < {THREADS} // 100 - 1 else 3,)
    threads = [threading.Thread(target=work, args=rest, name={MARKS!r}) for _ in range(100)]
    [it.start() for it in threads]
    [it.join() for it in threads]
"""
FORKS = f"""
import os, threading
def work():
    threads = [threading.Thread(target=sum, args=(range(2_000),)) for _ in range(2)]
    [it.start() for it in threads]
    [it.join() for it in threads]
for _ in range({PROCESSES}):
    if not os.fork():
        work()
        os._exit(0)
    os.wait()
"""
# Holds are short, and there are many: a page of less than 20 MB has no room for all.
MANY_HOLDS = """
import threading, time
def release():
    for _ in range(60_000):
        time.sleep(0)
threads = [threading.Thread(target=release, name=f"release-{n}") for n in range(2)]
[it.start() for it in threads]
[it.join() for it in threads]
"""
# Writes a page of half a megabyte.
SMALL = """
import sys
from ungil.report.page import write
write(sys.argv[1], sys.argv[2], 20, most_bytes=500_000)
"""
UNKNOWN = "\N{EN DASH}"


@pytest.fixture(scope="module")
def browser() -> Generator[Browser]:
    with chromium() as opened:
        yield opened


def test_of_ten_thousand_threads_only_those_in_sight_are_in_the_document(
    browser: Browser, tmp_path: Path
) -> None:
    recording = trace(tmp_path, "-c", CROWD)
    shown = Shown(browser, page_of(recording.path))
    page = shown.page
    assert page.evaluate("document.querySelectorAll('*').length") < 5_000
    labels = page.locator(".labels li")
    assert labels.count() < 40
    height: float = page.evaluate("document.querySelector('.labels').clientHeight")
    assert height > 20 * THREADS
    # The last of them can be scrolled to, and is drawn.
    page.evaluate("(it => it.scrollTop = it.scrollHeight)(document.querySelector('.lanes'))")
    shown.until("document.querySelector('.labels li').offsetTop > 100_000")
    assert labels.count() < 40
    threads = page.locator("section[aria-labelledby=threads]")
    # Most of those that have ended are summed in the report.
    assert "threads that are not listed" in threads.inner_text()
    threads.get_by_role("button", name="Show more of").click()
    assert page.locator("table.threads tbody tr").count() > 200
    shown.drag(".overview", 0.4, 0.6, 20)
    shown.measured()
    assert shown.page.locator(".scope.selected").count() == 1
    page.keyboard.press("/")
    page.keyboard.type("onerror")
    page.locator("#found button").first.wait_for()
    assert page.locator("#found button").count() <= 100
    assert page.evaluate("window.executed") is None
    assert page.evaluate("document.documentElement.scrollWidth") <= 1400
    assert shown.said == []


def test_of_five_hundred_processes_each_is_told_and_the_worst_can_be_chosen(
    browser: Browser, tmp_path: Path
) -> None:
    recording = trace(tmp_path, "-c", FORKS)
    shown = Shown(browser, page_of(recording.path), PHONE)
    page = shown.page
    assert page.locator("#gil option").count() == 64
    rows = page.locator("section[aria-labelledby=processes] tbody tr")
    assert rows.count() == 12
    more = page.locator("section[aria-labelledby=processes] button", has_text="Show more of")
    more.click()
    assert rows.count() == 112
    page.locator("#gil").select_option("63")
    shown.measured()
    assert "gil=63" in shown.hash
    assert page.locator("table.threads tbody tr").count() >= 1
    assert page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]
    assert "of 501 GILs, only the 64" in page.locator("section[aria-labelledby=notes]").inner_text()
    assert shown.said == []


def test_a_page_without_room_for_all_holds_says_what_it_does_not_know(
    browser: Browser, tmp_path: Path
) -> None:
    recording = trace(tmp_path, "-c", MANY_HOLDS).path
    small = recording.with_suffix(".html")
    command = [sys.executable, "-c", SMALL, str(recording), str(small)]
    subprocess.run(command, check=True, capture_output=True)
    assert small.stat().st_size < 500_000
    shown = Shown(browser, small)
    page = shown.page
    gil = page.evaluate("JSON.parse(document.getElementById('ungil-summary').textContent).gils[0]")
    assert gil["missing"]
    assert gil["chunks"]
    assert "no room for every hold" in page.locator("main").inner_text()
    gap = gil["missing"][0]
    for from_, to in ((gap["from"], gap["to"]), (0, gap["from"] + 1)):
        took = page.evaluate("([a, b]) => ungil.view(0, a, b)", [from_, to])
        assert took > 0
    # The numbers of a time that is missing are rough, and those of the whole run the report's.
    whole = page.evaluate("ungil.numbers(0, 0, 1e15)")
    assert not whole["is_exact"]
    told = report_of(recording)["processes"][0]["gils"][0]
    assert whole["held_s"] == pytest.approx(told["held_s"], rel=0.01)
    shown.drag(".overview", 0.3, 0.6, 20)
    shown.measured()
    assert shown.page.locator(".scope.selected").count() == 1
    assert "no room for every hold of this time" in page.locator(".busy").inner_text()
    assert UNKNOWN in page.locator("table.threads tbody").inner_text()
    # A click where nothing is known of single holds breaks nothing.
    page.locator(".timeline canvas").scroll_into_view_if_needed()
    box = page.locator(".timeline canvas").bounding_box()
    assert box
    for share in (0.1, 0.3, 0.5, 0.7, 0.9):
        page.mouse.click(box["x"] + box["width"] * share, box["y"] + 58 + 12)
    assert shown.said == []
