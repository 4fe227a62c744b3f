"""Pages of traces in a real browser, for the tests of the page.

Needs a Chromium of the system's, as distributions package it.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, ViewportSize, sync_playwright

PHONE: ViewportSize = {"width": 390, "height": 844}
DESK: ViewportSize = {"width": 1400, "height": 900}
Scheme = Literal["light", "dark"]
# What has not happened by then on the busiest machine does not happen.
PATIENCE_MS = 60_000
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


@contextmanager
def chromium() -> Generator[Browser]:
    """A browser."""
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    assert found, "these tests need a Chromium: apt install chromium"
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield opened
        opened.close()


def page_of(recording: Path, *options: str) -> Path:
    """The page of a trace."""
    page = recording.with_suffix(".html")
    command = [sys.executable, "-m", "ungil", "report", str(recording), "--html", str(page)]
    subprocess.run([*command, *options], check=True, capture_output=True)
    return page


def report_of(recording: Path, *options: str) -> dict[str, Any]:
    """What the terminal would be told."""
    command = [sys.executable, "-m", "ungil", "report", str(recording), "--json", *options]
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)


class Shown:
    """A page in a browser, and all that it asked for and complained about."""

    def __init__(
        self,
        browser: Browser,
        path: Path,
        size: ViewportSize = DESK,
        scheme: Scheme = "light",
        link: str = "",
    ) -> None:
        context = browser.new_context(viewport=size, color_scheme=scheme, offline=True)
        self.page: Page = context.new_page()
        self.asked: list[str] = []
        self.said: list[str] = []
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.goto(path.as_uri() + link)
        self.page.evaluate("window.ungil.ready")
        self.measured()

    def _console(self, message: ConsoleMessage) -> None:
        self.said.append(message.text)

    def measured(self) -> None:
        """Return when the numbers, and the address, are those of what is selected."""
        self.page.evaluate("window.ungil.unchanged()")
        self.page.wait_for_selector("[aria-busy=false]", state="attached")
        assert "Not measured" not in self.page.locator("main").inner_text()

    def until(self, expression: str) -> None:
        """Return when it is true. The page forbids what Playwright's own waiting would evaluate.

        Fails with what the page shows if it never becomes true.
        """
        became_true = self.page.evaluate(
            f"""() => new Promise(resolve => {{
              const until = performance.now() + {PATIENCE_MS};
              const look = () => {{
                if ({expression}) resolve(true);
                else if (performance.now() > until) resolve(false);
                else setTimeout(look, 20);
              }};
              look();
            }})"""
        )
        if not became_true:
            shown = self.page.locator("body").inner_text()
            pytest.fail(f"never true: {expression}\nat {self.hash}\n{shown}")

    @property
    def scope(self) -> str:
        """What the numbers are about."""
        return self.page.locator(".scope > p").inner_text()

    @property
    def hash(self) -> str:
        """The part of the address that keeps the view."""
        return self.page.evaluate("location.hash")

    def range(self, name: str) -> tuple[int, int]:
        """A stretch of time in the address."""
        begin, end = self.hash.split(f"{name}=")[1].split("&")[0].split("-")
        return int(begin), int(end)

    @property
    def unit_s(self) -> float:
        """The page's unit of time."""
        summary = "JSON.parse(document.getElementById('ungil-summary').textContent)"
        return self.page.evaluate(f"{summary}.unit_ns") / 1e9

    def drag(self, selector: str, start: float, end: float, y: float, *keys: str) -> None:
        """Drag over an element, between shares of its width, `y` below its top."""
        self.page.locator(selector).scroll_into_view_if_needed()
        box = self.page.locator(selector).bounding_box()
        assert box
        for key in keys:
            self.page.keyboard.down(key)
        mouse = self.page.mouse
        mouse.move(box["x"] + box["width"] * start, box["y"] + y)
        mouse.down()
        mouse.move(box["x"] + box["width"] * (start + end) / 2, box["y"] + y)
        mouse.move(box["x"] + box["width"] * end, box["y"] + y)
        mouse.up()
        for key in keys:
            self.page.keyboard.up(key)
