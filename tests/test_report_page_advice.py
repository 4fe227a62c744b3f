"""What to do, and what held meanwhile: the advice and the flame graph of the page, in a browser."""

from __future__ import annotations

import re
from collections.abc import Generator
from pathlib import Path

import pytest
from playwright.sync_api import Browser
from shown_pages import DESK, Shown, chromium, page_of, report_of
from suite import PROGRAMS
from tracing import trace

CONVOY = PROGRAMS / "convoy.py"
# Threads that wait for something else than the GIL.
SLEEPERS = """
import threading, time
threads = [threading.Thread(target=time.sleep, args=(1.5,), name=f"nap-{n}") for n in range(3)]
[it.start() for it in threads]
[it.join() for it in threads]
"""
# What a terminal must not be given: it may end what is pasted.
INVISIBLE = "\x1b[201~\u202e"
# Many blocking calls beside a thread that computes in native code for long at a time.
NATIVE = """
import re, threading, time
stop = time.monotonic() + 3
def parse():
    while time.monotonic() < stop:
        re.match("(a|aa)+$", "a" * 27 + "b")
def serve():
    while time.monotonic() < stop:
        time.sleep(0.001)
threads = [threading.Thread(target=it, name=it.__name__) for it in (parse, serve)]
[it.start() for it in threads]
[it.join() for it in threads]
"""


@pytest.fixture(scope="module")
def browser() -> Generator[Browser]:
    with chromium() as opened:
        yield opened


@pytest.fixture(scope="module")
def convoy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("convoy")
    return trace(folder, CONVOY, "600", named=["cpu", "io"]).path


def explained(shown: Shown) -> int:
    """Which part of the wait time the flame graph explains, in percent."""
    said = shown.page.locator("section[aria-labelledby=flame] .quiet").first.inner_text()
    found = re.search(r", (\d+)% of all waits", said)
    assert found, said
    return int(found[1])


def test_the_page_has_the_advice_of_the_terminal_with_its_command(
    browser: Browser, convoy: Path
) -> None:
    advised = report_of(convoy, "--advise")["advised"]
    shown = Shown(browser, page_of(convoy))
    items = shown.page.locator(".advice-item")
    assert items.count() == sum(it["same_as"] is None for it in advised["advice"])
    first, told = items.first, advised["advice"][0]
    # Which kind comes first is a matter of how busy the machine is.
    action = told["action"]
    assert first.locator(".typed").inner_text() == (action["shell"] or action["code"])
    assert re.fullmatch(r"\N{MINUS SIGN}\d+%", first.locator(".less").inner_text())
    # What can only be 0 has no range.
    between = r".*between .+ and " if told["gain"]["high"] else ""
    assert re.search("instead of .+" + between, first.locator(".rest").inner_text())
    assert told["confidence"]["because"][1:] in first.locator(".sure").inner_text()
    first.locator(".evidence summary").click()
    for evidence in told["evidence"]:
        assert evidence["what"] in first.locator(".evidence").inner_text()
    box = items.first.bounding_box()
    assert box
    assert box["y"] + box["height"] < DESK["height"], "it is on the first screen"
    # What the finding itself advises would say the same again.
    assert shown.page.locator(".finding").first.locator(".advice").count() == 0
    assert shown.said == []


def test_a_button_copies_the_command_or_selects_it(browser: Browser, convoy: Path) -> None:
    shown = Shown(browser, page_of(convoy))
    first = shown.page.locator(".advice-item").first
    first.locator("button.copy").click()
    shown.until("document.querySelector('.copy').textContent !== 'Copy'")
    if first.locator("button.copy").inner_text() == "Selected":
        selected = shown.page.evaluate("getSelection().toString()")
        assert selected == first.locator(".typed").inner_text()


def test_without_advice_the_page_says_how_to_get_it(browser: Browser, convoy: Path) -> None:
    shown = Shown(browser, page_of(convoy, "--no-advice"))
    section = shown.page.locator(".advised")
    assert "--html OUT.html --advise" in section.inner_text()
    assert shown.page.locator(".advice-item").count() == 0
    # Then the finding has its own.
    assert "ungil run" in shown.page.locator(".finding .advice").first.inner_text()


def test_where_it_is_not_the_gil_the_page_says_what_it_is(browser: Browser, tmp_path: Path) -> None:
    shown = Shown(browser, page_of(trace(tmp_path, "-c", SLEEPERS).path))
    first = shown.page.locator(".advice-item").first
    assert first.locator(".kind").inner_text() == "not the GIL"
    assert "not the GIL" in first.locator("h3").inner_text()
    assert "no prediction" in first.locator(".sure").inner_text()


def test_a_command_with_something_invisible_is_shown_and_not_offered_to_copy(
    browser: Browser, tmp_path: Path
) -> None:
    path = page_of(trace(tmp_path, CONVOY, "200", INVISIBLE).path)
    shown = Shown(browser, path)
    typed = shown.page.locator(".advice-item .typed").first
    assert "\\x1b[201~\\u202e" in typed.inner_text()
    assert not set(INVISIBLE[:1] + INVISIBLE[-1]) & set(shown.page.locator("main").inner_text())
    assert shown.page.locator(".advice-item").first.locator(".copy").count() == 0


def test_the_flame_graph_explains_most_of_a_convoys_waits_and_those_of_a_range(
    browser: Browser, convoy: Path
) -> None:
    shown = Shown(browser, page_of(convoy))
    assert explained(shown) > 50
    flame = shown.page.locator("section[aria-labelledby=flame]")
    whole = flame.locator("button.frame").first.get_attribute("title")
    assert whole
    assert whole.startswith("cpu")
    shown.drag(".overview", 0.3, 0.7, 20)
    shown.measured()
    assert shown.page.locator(".scope.selected").count() == 1
    assert flame.locator("button.frame").first.get_attribute("title") != whole
    assert explained(shown) > 50


def test_native_frames_stand_above_the_line_that_called_them(
    browser: Browser, tmp_path: Path
) -> None:
    shown = Shown(browser, page_of(trace(tmp_path, "-c", NATIVE).path))
    native = shown.page.locator("section[aria-labelledby=flame] button.frame.native")
    assert native.count() > 0
    above = native.first.locator("xpath=ancestor::li[2]/button").get_attribute("title")
    assert above
    assert "match" in above or "parse" in above
    assert "Pattern.match" in native.first.get_attribute("title")  # pyright: ignore[reportOperatorIssue]
    holds = shown.page.locator("table.holds tbody").inner_text()
    assert "native code: re.Pattern.match" in holds
