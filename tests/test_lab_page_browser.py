"""The page of the lab in a real browser: on a phone, on a desk, in the dark, without a network.

Looked at is the page in docs, which has every chart that there is. Needs a Chromium of the
system's, as distributions package it.
"""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, ViewportSize
from shown_pages import DESK, PHONE, Scheme, chromium

from ungil.lab.experiments import NAMES, load
from ungil.lab.findings import found
from ungil.lab.results import load as results_of

DOCS = Path(__file__).parent.parent / "docs"
LAPTOP: ViewportSize = {"width": 1280, "height": 900}
SIZES: list[ViewportSize] = [{"width": 320, "height": 640}, PHONE, LAPTOP, DESK]
# What can be read on a phone, in CSS pixels.
SMALLEST_PX = 11
# What WCAG 2.1 asks of text and of graphics.
TEXT_CONTRAST, MARK_CONTRAST = 4.5, 3.0


@pytest.fixture(scope="module")
def browser() -> Generator[Browser]:
    with chromium() as opened:
        yield opened


def looked_at(
    browser: Browser, size: ViewportSize, scheme: Scheme = "light", *, calm: bool = False
) -> Page:
    shown = browser.new_context(
        viewport=size,
        color_scheme=scheme,
        offline=True,
        reduced_motion="reduce" if calm else "no-preference",
    ).new_page()
    shown.goto((DOCS / "lab.html").as_uri())
    return shown


@pytest.fixture(scope="module")
def open_page(browser: Browser) -> Page:
    """In the light, with all tables open; its size is each test's own."""
    shown = looked_at(browser, LAPTOP)
    shown.evaluate(UNFOLD)
    return shown


UNFOLD = "document.querySelectorAll('details').forEach(it => it.open = true)"


@pytest.mark.parametrize("size", SIZES, ids=lambda it: str(it["width"]))
def test_nothing_is_wider_than_the_screen(open_page: Page, size: ViewportSize) -> None:
    shown = open_page
    shown.set_viewport_size(size)
    assert shown.evaluate("document.documentElement.scrollWidth") == size["width"]
    outside: list[str] = shown.evaluate(
        """[...document.querySelectorAll('svg text, svg rect, svg use')].filter(it => {
          const { left, right, width } = it.getBoundingClientRect();
          return width && (left < -0.5 || right > innerWidth + 0.5);
        }).map(it => it.textContent || it.outerHTML)"""
    )
    assert outside == []


@pytest.mark.parametrize("size", SIZES, ids=lambda it: str(it["width"]))
def test_text_in_charts_is_as_large_on_a_phone_as_on_a_desk(
    open_page: Page, size: ViewportSize
) -> None:
    shown = open_page
    shown.set_viewport_size(size)
    heights: list[float] = shown.evaluate(
        """[...document.querySelectorAll('svg text')].filter(it => it.getClientRects().length)
          .map(it => {
            // A drawing that is scaled has letters of another height than it says.
            const scale = it.getScreenCTM().d;
            return scale * parseFloat(getComputedStyle(it).fontSize);
          })"""
    )
    assert len(heights) > 300
    assert min(heights) >= SMALLEST_PX
    smallest: float = shown.evaluate(
        """Math.min(...[...document.querySelectorAll('body *')].filter(it => it.textContent.trim())
          .map(it => parseFloat(getComputedStyle(it).fontSize)))"""
    )
    assert smallest >= SMALLEST_PX


@pytest.mark.parametrize("size", [PHONE, LAPTOP], ids=["phone", "laptop"])
def test_no_label_lies_on_another(open_page: Page, size: ViewportSize) -> None:
    shown = open_page
    shown.set_viewport_size(size)
    collisions: list[str] = shown.evaluate(
        """[...document.querySelectorAll('svg.plot')].flatMap(plot => {
          const boxes = [...plot.querySelectorAll('text')].map(it => [it.textContent,
            it.getBoundingClientRect()]).filter(([, box]) => box.width);
          return boxes.flatMap(([one, a], i) => boxes.slice(i + 1).filter(([, b]) =>
            a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 3
            && b.top < a.bottom - 3).map(([other]) =>
            `${plot.querySelector('title').textContent}: ${one} | ${other}`));
        })"""
    )
    assert collisions == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everything_stands_out_from_the_page(browser: Browser, scheme: Scheme) -> None:
    shown = looked_at(browser, PHONE, scheme)
    shown.evaluate(UNFOLD)
    assert shown.evaluate(CONTRASTS) == []
    paper: str = shown.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (paper == "rgb(255, 255, 255)") is (scheme == "light")


# Texts, and marks, bars, holds and curves that stand out too little from the page.
CONTRASTS = f"""() => {{
  const light = (colour) => {{
    const [r, g, b] = colour.match(/[\\d.]+/g).map(it => it / 255)
      .map(it => it <= 0.04045 ? it / 12.92 : ((it + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  }};
  const paper = light(getComputedStyle(document.body).backgroundColor);
  const weak = (colour, least) => {{
    const [low, high] = [light(colour), paper].sort((one, other) => one - other);
    return (high + 0.05) / (low + 0.05) < least;
  }};
  const texts = [...document.querySelectorAll('h1, h2, h3, h4, p, li, td, th, figcaption, summary')]
    .filter(it => weak(getComputedStyle(it).color, {TEXT_CONTRAST})).map(it => it.textContent);
  const labels = [...document.querySelectorAll('svg text')]
    .filter(it => weak(getComputedStyle(it).fill, {TEXT_CONTRAST})).map(it => it.textContent);
  const marks = [...document.querySelectorAll('.mark, .bar, .hold, .curve')]
    .filter(it => weak(getComputedStyle(it).stroke, {MARK_CONTRAST})).map(it => it.outerHTML);
  return [...texts, ...labels, ...marks];
}}"""


def test_nothing_is_asked_of_a_network_and_nothing_complained_about(browser: Browser) -> None:
    asked: list[str] = []
    said: list[str] = []
    shown = browser.new_page()
    shown.on("request", lambda request: asked.append(request.url))
    shown.on("console", lambda message: said.append(message.text))
    shown.on("pageerror", lambda error: said.append(str(error)))
    address = (DOCS / "lab.html").as_uri()
    shown.goto(address)
    shown.mouse.wheel(0, 5000)
    assert asked == [address]
    assert said == []


def test_the_page_begins_with_all_experiments_in_a_line_each(browser: Browser) -> None:
    shown = looked_at(browser, PHONE)
    lines = shown.locator("#summary li > div:first-child a")
    assert lines.count() == len(NAMES)
    run = results_of(DOCS / "lab.json")
    for experiment, said in zip(load(()), lines.all_inner_texts(), strict=True):
        one = found(experiment.name, run.of(experiment.name))
        assert said.replace("\N{NO-BREAK SPACE}", " ") == one.title
    plots = shown.locator("#summary svg.plot")
    assert plots.count() == len(NAMES)
    lines.last.click()
    assert shown.locator(f"#{NAMES[-1]} h2").evaluate("it => it.getBoundingClientRect().top") < 100


def test_never_is_drawn_beyond_everything_that_came(open_page: Page) -> None:
    places: list[list[float]] = open_page.evaluate(
        """[...document.querySelectorAll('#interrupt svg.plot')].map(plot => {
          const x = (it) => it.getBoundingClientRect().left;
          const values = [...plot.querySelectorAll('.value')];
          const never = values.filter(it => it.textContent == 'never');
          const others = values.filter(it => !never.includes(it));
          return [Math.min(...never.map(x)), Math.max(...others.map(x))];
        }).slice(0, 2)"""
    )
    assert len(places) == 2
    for never, last in places:
        assert never > last


def test_panels_of_a_chart_share_their_axis(open_page: Page) -> None:
    axes: list[list[str]] = open_page.evaluate(
        """[...document.querySelectorAll('.panels')].map(panels => [...new Set(
          [...panels.querySelectorAll('svg.plot')].map(plot =>
            [...plot.querySelectorAll('.tick')].map(it => it.textContent).join()))])"""
    )
    assert len(axes) > len(NAMES)
    assert [one for one in axes if len(one) != 1] == []


def test_tables_are_folded_and_have_every_figure(browser: Browser) -> None:
    shown = looked_at(browser, PHONE)
    assert shown.locator("table").first.is_visible() is False
    for name in NAMES:
        shown.locator(f"#{name} details > summary").click()
        assert shown.locator(f"#{name} table").first.is_visible()


def test_the_battle_is_played_when_asked_for_without_a_script(browser: Browser) -> None:
    shown = looked_at(browser, PHONE)
    cover = shown.locator("#battle .cover").last
    assert not cover.is_visible()
    shown.get_by_label("Play it").check()
    assert cover.is_visible()
    playing = "it => it.getAnimations().map(one => [one.animationName, one.playState])"
    assert cover.evaluate(playing) == [["played", "running"]]
    # At its end it covers nothing, and everything that was held is to be seen.
    cover.evaluate("it => it.getAnimations()[0].finish()")
    assert cover.evaluate("it => it.getBoundingClientRect().width") < 2


def test_who_wants_no_motion_gets_none(browser: Browser) -> None:
    shown = looked_at(browser, PHONE, calm=True)
    assert not shown.locator(".play").is_visible()
    assert shown.evaluate("document.getAnimations().length") == 0


def test_on_paper_there_is_nothing_to_play(browser: Browser) -> None:
    shown = looked_at(browser, LAPTOP)
    shown.emulate_media(media="print")
    assert not shown.locator(".play").is_visible()
