"""The page of the lab in a real browser: on a phone, in the dark, without a network.

Needs a Chromium of the system's, as distributions package it.
"""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, Page, ViewportSize
from shown_pages import chromium
from test_lab_page import some

from ungil.lab.experiments import load
from ungil.lab.page import page

PHONE: ViewportSize = {"width": 360, "height": 740}
DESK: ViewportSize = {"width": 1280, "height": 900}
Scheme = Literal["light", "dark"]
# What can still be read on a phone, in CSS pixels.
SMALLEST_PX = 7.5
# What WCAG 2.1 asks of large text and of graphics.
CONTRAST = 3.0


@pytest.fixture(scope="module")
def browser() -> Generator[Browser]:
    with chromium() as opened:
        yield opened


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("page") / "lab.html"
    made.write_text(page(load(()), some()), encoding="utf-8")
    return made


def looked_at(browser: Browser, path: Path, size: ViewportSize, scheme: Scheme) -> Page:
    shown = browser.new_context(viewport=size, color_scheme=scheme, offline=True).new_page()
    shown.goto(path.as_uri())
    return shown


@pytest.mark.parametrize("size", [PHONE, DESK], ids=["phone", "desk"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_wider_than_the_screen_and_everything_can_be_read(
    browser: Browser, path: Path, size: ViewportSize, scheme: Scheme
) -> None:
    shown = looked_at(browser, path, size, scheme)
    assert shown.evaluate("document.documentElement.scrollWidth") == size["width"]
    heights: list[float] = shown.evaluate(
        "[...document.querySelectorAll('svg text')].map(it => it.getBoundingClientRect().height)"
    )
    assert heights
    assert min(heights) >= SMALLEST_PX
    assert shown.evaluate(CONTRASTS) == []
    paper: str = shown.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (paper == "rgb(255, 255, 255)") is (scheme == "light")


# Texts and bars that stand out less from the page than CONTRAST.
CONTRASTS = f"""() => {{
  const light = (colour) => {{
    const [r, g, b] = colour.match(/\\d+/g).map(it => it / 255)
      .map(it => it <= 0.04045 ? it / 12.92 : ((it + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  }};
  const paper = light(getComputedStyle(document.body).backgroundColor);
  const weak = (colour) => {{
    const [low, high] = [light(colour), paper].sort((one, other) => one - other);
    return (high + 0.05) / (low + 0.05) < {CONTRAST};
  }};
  const texts = [...document.querySelectorAll('h1, h2, h3, p, li, td, th, figcaption, summary')]
    .filter(it => weak(getComputedStyle(it).color)).map(it => it.textContent);
  const drawn = [...document.querySelectorAll('svg text')]
    .filter(it => weak(getComputedStyle(it).fill)).map(it => it.textContent);
  return [...texts, ...drawn];
}}"""


def test_nothing_is_asked_of_a_network_and_nothing_complained_about(
    browser: Browser, path: Path
) -> None:
    asked: list[str] = []
    said: list[str] = []
    shown = browser.new_page()
    shown.on("request", lambda request: asked.append(request.url))
    shown.on("console", lambda message: said.append(message.text))
    shown.on("pageerror", lambda error: said.append(str(error)))
    shown.goto(path.as_uri())
    assert asked == [path.as_uri()]
    assert said == []


def test_a_chart_is_read_aloud_by_what_it_says(browser: Browser, path: Path) -> None:
    shown = looked_at(browser, path, PHONE, "light")
    [drawing] = shown.get_by_role("img").all()
    assert "1.85x in 2009" in str(drawing.get_attribute("aria-label"))
