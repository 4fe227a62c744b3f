"""The page of a trace in a real browser: its gestures, and what it shows to whom.

Needs a Chromium of the system's, as distributions package it.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Generator
from itertools import pairwise
from pathlib import Path

import pytest
from playwright.sync_api import Browser, ViewportSize
from shown_pages import DESK, PHONE, Scheme, Shown, chromium, page_of, report_of
from suite import PROGRAMS
from tracing import Running, trace

from ungil.formatting import duration, share

CONVOY = PROGRAMS / "convoy.py"
# What WCAG 2.1 asks of text.
CONTRAST = 4.5
MARKS = "</script><script>window.executed = 1</script><img src=x onerror=window.executed=1>"
HOSTILE = f"""
import threading
def compute(n):
    for _ in range(n):
        sum(range(50_000))
    all_are_done.wait()
names = [{MARKS!r}, "\\u202egnp.exe", "שלום עולם", "a\\x00\\x1b[31mb", "", "<b>bold</b>", "x" * 400]
all_are_done = threading.Barrier(len(names))
threads = [threading.Thread(target=compute, args=(150,), name=name) for name in names]
[it.start() for it in threads]
[it.join() for it in threads]
"""


FORKS = """
import os, threading
def work():
    threads = [threading.Thread(target=lambda: sum(range(300_000))) for _ in range(4)]
    [it.start() for it in threads]
    [it.join() for it in threads]
for _ in range(8):
    if not os.fork():
        work()
        os._exit(0)
    os.wait()
"""
SUBINTERPRETERS = """
import threading
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
ids = [interpreters.create() for _ in range(3)]
run = lambda it: interpreters.run_string(it, "sum(range(100_000))")
threads = [threading.Thread(target=run, args=(it,)) for it in ids]
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
    return trace(folder, CONVOY, "300", named=["cpu", "io"]).path


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hostile")
    program = folder / "<script>window.executed = 1<.py"
    program.write_text(HOSTILE, encoding="utf-8")
    return trace(folder, program).path


def test_the_first_screen_has_the_cause_the_advice_and_how_busy_the_gil_was(
    browser: Browser, convoy: Path
) -> None:
    shown = Shown(browser, page_of(convoy))
    finding = shown.page.locator(".finding").first
    assert finding.locator(".kind").inner_text() == "convoy"
    assert "io" in finding.locator("h3").inner_text()
    assert "behind cpu" in finding.locator("h3").inner_text()
    advice = shown.page.locator(".advice-item").first
    assert advice.inner_text()
    process = report_of(convoy)["processes"][0]
    gil = process["gils"][0]
    busy_s = process["duration_s"] - process["startup_s"]
    held = share(gil["held_s"] - gil["startup_held_s"], busy_s)
    title = shown.page.locator(".title")
    # In words, because the bar is below more than two findings.
    contended = share(gil["contended_s"], busy_s)
    assert f"GIL held {held}, contended {contended} of the time" in title.inner_text()
    shown.measured()
    facts = shown.page.locator(".busy .facts")
    assert facts.get_by_text(held, exact=True).count() > 0
    for wanted in (finding, advice, title):
        box = wanted.bounding_box()
        assert box
        assert box["y"] + box["height"] < DESK["height"]
    assert shown.scope.startswith("Numbers are of the whole run")
    assert shown.page.evaluate("performance.getEntriesByName('ungil:first-paint').length") == 1


def test_what_the_page_shows_of_the_whole_run_is_in_the_terminal(
    browser: Browser, convoy: Path
) -> None:
    shown = Shown(browser, page_of(convoy))
    command = [sys.executable, "-m", "ungil", "report", str(convoy)]
    printed = subprocess.run(
        command, check=True, capture_output=True, text=True, env={"COLUMNS": "200"}
    ).stdout
    rows = shown.page.locator("table.threads tbody tr")
    assert rows.count() == 3
    for cell in rows.first.locator("td").all_inner_texts():
        assert cell in printed


def test_dragging_on_the_overview_selects_and_every_number_is_of_that_time(
    browser: Browser, convoy: Path
) -> None:
    shown = Shown(browser, page_of(convoy))
    before = shown.page.locator("main").inner_text()
    shown.drag(".overview", 0.4, 0.6, 20)
    shown.measured()
    assert shown.page.locator(".scope.selected").count() == 1
    after = shown.page.locator("main").inner_text()
    assert before != after
    begin, end = shown.range("range")
    measured = shown.page.evaluate("([a, b]) => ungil.numbers(0, a, b)", [begin, end])
    threads = sorted(measured["threads"], key=lambda it: -it["held_s"] - it["waited_s"])
    first = shown.page.locator("table.threads tbody tr").first.locator("td").all_inner_texts()
    assert first[0] == duration(threads[0]["held_s"])
    assert first[2] == duration(threads[0]["waited_s"])
    facts = shown.page.locator(".facts dd").all_inner_texts()
    seconds = (end - begin) * shown.unit_s
    assert facts[0] == share(measured["held_s"], seconds)
    assert facts[1] == share(measured["contended_s"], seconds)
    assert facts[2] == duration(measured["waited_s"])
    shown.page.keyboard.press("Escape")
    shown.measured()
    assert shown.scope.startswith("Numbers are of the whole run")
    shown.drag(".timeline", 0.5, 0.7, 120, "Shift")
    assert "to" in shown.scope
    assert shown.said == []


def test_keys_zoom_and_move_and_a_link_keeps_the_view(browser: Browser, convoy: Path) -> None:
    path = page_of(convoy)
    shown = Shown(browser, path)
    for _ in range(6):
        shown.page.keyboard.press("w")
    summary = shown.page.evaluate(
        "JSON.parse(document.getElementById('ungil-summary').textContent).end"
    )
    shown.measured()
    span = summary / 1.5**6
    before, end = shown.range("view")
    assert end - before == pytest.approx(span, rel=0.01)
    shown.page.keyboard.press("d")
    shown.measured()
    begin, end = shown.range("view")
    assert begin > before
    assert end - begin == pytest.approx(span, rel=0.01)
    again = Shown(browser, path, link=shown.hash)
    again.page.keyboard.press("a")
    again.page.keyboard.press("d")
    again.measured()
    assert again.hash == shown.hash
    shown.page.keyboard.press("0")
    shown.measured()
    assert "view=" not in shown.hash
    shown.page.keyboard.press("?")
    assert shown.page.get_by_role("dialog").is_visible()
    shown.page.keyboard.press("Escape")
    assert not shown.page.get_by_role("dialog").is_visible()


def test_a_zoom_to_the_microsecond_shows_single_holds(browser: Browser, convoy: Path) -> None:
    shown = Shown(browser, page_of(convoy))
    took = shown.page.evaluate("""async () => {
      const {end, unit_ns} = JSON.parse(document.getElementById('ungil-summary').textContent);
      return await ungil.view(0, end / 2, end / 2 + 1000 / unit_ns);
    }""")
    assert took > 0
    assert shown.page.locator(".timeline").get_attribute("data-exact") == "true"


def test_a_wait_is_explained_by_who_held_meanwhile(browser: Browser, convoy: Path) -> None:
    shown = Shown(browser, page_of(convoy))
    shown.page.locator("table.threads .lane-link", has_text="io").click()
    shown.page.keyboard.press("Enter")
    detail = shown.page.locator(".detail")
    detail.wait_for()
    # On a busy machine the longest may be a hold in which the kernel did not run the thread, or a
    # wait for the main thread, which starts the others.
    asked = re.compile("io waited.*asked the holder to release the GIL after.*cpu", re.DOTALL)
    while not asked.search(told := detail.inner_text()):
        shown.page.keyboard.press(".")
        shown.until(f"document.querySelector('.detail').innerText !== {json.dumps(told)}")
    assert "cpu" in detail.locator(".parties").inner_text()
    # Its culprit's hold is one click away; in such a wait the main thread may have held, too.
    detail.locator(".parties button", has_text="cpu").first.click()
    shown.until("document.querySelector('.detail').innerText.includes('cpu held the GIL')")
    assert "io" in detail.locator(".parties").inner_text()
    shown.measured()
    assert "pick=" in shown.hash
    again = Shown(browser, page_of(convoy), link=shown.hash)
    again.page.locator(".detail").wait_for()
    assert "cpu held the GIL" in again.page.locator(".detail").inner_text()
    shown.page.keyboard.press("m")
    shown.measured()
    assert shown.page.locator(".scope.selected").count() == 1
    shown.page.keyboard.press("Escape")
    assert not detail.is_visible()


def test_a_click_on_the_canvas_explains_what_is_there(browser: Browser, convoy: Path) -> None:
    shown = Shown(browser, page_of(convoy))
    shown.page.locator(".timeline canvas").scroll_into_view_if_needed()
    box = shown.page.locator(".timeline canvas").bounding_box()
    assert box
    # The first lane is that of the thread that computes nearly all the time.
    shown.page.mouse.click(box["x"] + box["width"] / 2, box["y"] + 58 + 12)
    shown.page.locator(".detail").wait_for()
    assert shown.page.locator(".detail").inner_text().startswith("cpu held the GIL for ")


def test_search_finds_threads(browser: Browser, convoy: Path) -> None:
    shown = Shown(browser, page_of(convoy))
    shown.page.keyboard.press("/")
    shown.page.keyboard.type("cpu")
    shown.page.locator("#found button").first.wait_for()
    shown.page.keyboard.press("Enter")
    assert shown.page.locator(".labels .current").inner_text() == "cpu"
    shown.page.keyboard.press("/")
    shown.page.keyboard.type("no such thing")
    shown.page.get_by_text("No thread or code matches").wait_for()


def test_nothing_is_asked_of_a_network_and_nothing_complained_about(
    browser: Browser, convoy: Path
) -> None:
    path = page_of(convoy)
    shown = Shown(browser, path)
    shown.drag(".timeline", 0.5, 0.7, 120)
    shown.drag(".overview", 0.2, 0.3, 20)
    shown.measured()
    assert [url for url in shown.asked if not url.startswith("blob:")] == [path.as_uri()]
    assert shown.said == []


@pytest.mark.parametrize("size", [PHONE, DESK], ids=["phone", "desk"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_wider_than_the_screen_and_everything_can_be_read(
    browser: Browser, hostile: Path, size: ViewportSize, scheme: Scheme
) -> None:
    shown = Shown(browser, page_of(hostile), size, scheme)
    assert shown.page.evaluate("document.documentElement.scrollWidth") == size["width"]
    assert shown.page.evaluate(CONTRASTS) == []
    paper: str = shown.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (paper == "rgb(255, 255, 255)") is (scheme == "light")


# Texts that stand out less from what is behind them than CONTRAST.
CONTRASTS = f"""() => {{
  const light = (colour) => {{
    const [r, g, b] = colour.match(/\\d+/g).map(it => it / 255)
      .map(it => it <= 0.04045 ? it / 12.92 : ((it + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  }};
  const behind = (it) => {{
    for (; it; it = it.parentElement) {{
      const colour = getComputedStyle(it).backgroundColor;
      if (/^rgb\\(/.test(colour)) return light(colour);
    }}
    return 1;
  }};
  return [...document.querySelectorAll('h1, h2, h3, p, li, dt, dd, td, th, figcaption, button')]
    .filter(it => it.checkVisibility() && it.textContent)
    .filter(it => {{
      const [low, high] = [light(getComputedStyle(it).color), behind(it)].sort((a, b) => a - b);
      return (high + 0.05) / (low + 0.05) < {CONTRAST};
    }}).map(it => it.textContent);
}}"""


def test_hostile_names_execute_nothing_and_stay_what_they_are(
    browser: Browser, hostile: Path
) -> None:
    shown = Shown(browser, page_of(hostile))
    assert shown.page.evaluate("window.executed") is None
    assert shown.said == []
    assert [url for url in shown.asked if not url.startswith(("blob:", "file:"))] == []
    names = shown.page.locator("table.threads tbody th").all_inner_texts()
    assert any(MARKS in name for name in names), names
    assert any("<b>bold</b>" in name for name in names)
    assert any("\\u202egnp.exe" in name for name in names)
    assert any("\\x1b[31mb" in name for name in names)
    assert shown.page.locator("main b >> text=bold").count() == 0
    shown.page.keyboard.press("/")
    shown.page.keyboard.type("script")
    shown.page.locator("#found button").first.click()
    shown.page.keyboard.press("Enter")
    shown.page.locator(".detail").wait_for()
    assert shown.page.evaluate("window.executed") is None


def test_many_findings_leave_room_for_the_rest_of_the_first_screen(
    browser: Browser, tmp_path: Path
) -> None:
    path = page_of(trace(tmp_path, "-c", FORKS).path)
    findings = json.loads(re.findall(r'id="ungil-summary">(.*?)</script>', path.read_text())[0])
    # Those of processes that are alike are told once.
    count = sum(it["same_as"] is None for it in findings["report"]["findings"])
    shown = Shown(browser, path)
    page = shown.page
    assert page.locator("#gil option").count() > 2
    if count > 3:
        assert page.locator(".finding:visible").count() == 3
        page.get_by_role("button", name="more findings").click()
    assert page.locator(".finding:visible").count() == count
    page.locator("#gil").select_option("1")
    shown.measured()
    assert "gil=1" in shown.hash


def test_it_can_be_read_aloud(browser: Browser, convoy: Path) -> None:
    page = Shown(browser, page_of(convoy)).page
    for role in ("banner", "main", "contentinfo", "search"):
        assert page.get_by_role(role).count() == 1, role  # pyright: ignore[reportArgumentType]
    levels = page.evaluate(
        "[...document.querySelectorAll('h1, h2, h3')].map(it => Number(it.tagName[1]))"
    )
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    words = page.locator("#timeline-words").inner_text()
    assert "cpu held" in words
    assert "io held" in words
    assert page.get_by_role("application").get_attribute("aria-describedby") == "timeline-words"
    for chart in page.locator("[role=img]").all():
        assert chart.get_attribute("aria-label")
    unnamed = page.evaluate(
        "[...document.querySelectorAll('button')]"
        ".filter(it => !it.textContent && !it.ariaLabel).length"
    )
    assert unnamed == 0
    # WCAG 2.5.3: who speaks to the page says what is written on a button.
    misnamed = page.evaluate(
        "[...document.querySelectorAll('button[aria-label]')]"
        ".filter(it => /\\w{2}/.test(it.textContent))"
        ".filter(it => !it.ariaLabel.includes(it.textContent.replace(/\\W+$/, '')))"
        ".map(it => it.textContent)"
    )
    assert misnamed == []


def test_the_moment_at_the_pointer_is_told_anew_when_keys_move_the_view(
    browser: Browser, convoy: Path
) -> None:
    page = Shown(browser, page_of(convoy)).page
    page.locator(".timeline").hover(position={"x": 500, "y": 40})
    cursor = page.locator(".cursor")
    before = cursor.inner_text()
    page.keyboard.press("w")
    page.keyboard.press("w")
    assert cursor.inner_text() != before


def test_a_page_says_first_that_most_events_were_lost(browser: Browser, tmp_path: Path) -> None:
    with Running(tmp_path, [PROGRAMS / "held_up.py", "50000"]) as running:
        recording = running.finish(lost=True)
    head = Shown(browser, page_of(recording.path)).page.locator(".title").inner_text()
    assert "% of all events were lost" in head


def test_what_scrolls_can_be_reached_with_keys_and_has_a_name(
    browser: Browser, convoy: Path
) -> None:
    page = Shown(browser, page_of(convoy)).page
    for selector in (".lanes", "pre"):
        assert page.locator(selector).count() > 0
        for place in page.locator(selector).all():
            assert place.get_attribute("tabindex") == "0"
            assert place.get_attribute("aria-label")
            assert place.get_attribute("role")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_places_in_the_flame_graph_can_be_read(
    browser: Browser, convoy: Path, scheme: Scheme
) -> None:
    page = Shown(browser, page_of(convoy), scheme=scheme).page
    page.wait_for_selector(".flame .user.frame .place")

    def luminance(*channels: float) -> float:
        linear = [it / 12.92 if it <= 0.04045 else ((it + 0.055) / 1.055) ** 2.4 for it in channels]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    # Painted and read back, because browsers write mixed colours in several ways.
    over, under = page.evaluate(
        """() => {
            const place = document.querySelector('.flame .user.frame .place');
            const style = getComputedStyle(place);
            const context = document.createElement('canvas').getContext('2d');
            const painted = colour => {
                context.fillStyle = colour;
                context.fillRect(0, 0, 1, 1);
                return [...context.getImageData(0, 0, 1, 1).data].slice(0, 3).map(it => it / 255);
            };
            const under = painted(getComputedStyle(place.parentElement).backgroundColor);
            context.globalAlpha = Number(style.opacity);
            return [painted(style.color), under];
        }"""
    )
    light, dark = sorted((luminance(*over), luminance(*under)), reverse=True)
    assert (light + 0.05) / (dark + 0.05) >= 4.5  # WCAG 1.4.3


def test_it_can_be_printed(browser: Browser, convoy: Path) -> None:
    page = Shown(browser, page_of(convoy), scheme="dark").page
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert not page.locator(".toolbar button").first.is_visible()
    page.set_viewport_size({"width": 780, "height": 1000})
    assert page.evaluate("document.documentElement.scrollWidth") == 780
    assert page.pdf().startswith(b"%PDF")


def test_what_is_drawn_is_there_when_the_browser_prints(browser: Browser, convoy: Path) -> None:
    page = Shown(browser, page_of(convoy)).page
    page.wait_for_selector(".chart canvas")
    # After the page's own listener, and before the browser lays out what it prints.
    page.evaluate(
        "matchMedia('print').addEventListener('change', ({ matches }) => {"
        " if (matches) window.printed = document.querySelectorAll('.chart canvas').length; })"
    )
    page.pdf()
    charts = page.locator(".chart").count()
    assert charts > 0
    assert page.evaluate("window.printed") == charts


@pytest.mark.parametrize(
    "words",
    [
        ["-c", "pass"],
        [
            "-c",
            "import threading; t = threading.Thread(target=len, args=('',)); t.start(); t.join()",
        ],
        ["-c", SUBINTERPRETERS],
        [PROGRAMS / "children.py", "spawn", "2", "20"],
        [PROGRAMS / "short_threads.py", "60", "6", "5"],
        ["/bin/true"],
    ],
    ids=["one-thread", "two-threads", "subinterpreters", "children", "short-threads", "no-python"],
)
def test_every_kind_of_program_has_a_page_that_complains_about_nothing(
    browser: Browser, tmp_path: Path, words: list[str | Path]
) -> None:
    recording = trace(tmp_path, *words)
    path = page_of(recording.path)
    context = browser.new_context(viewport=PHONE, offline=True)
    page = context.new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(path.as_uri())
    page.evaluate("window.ungil.ready")
    if page.locator("[aria-busy]").count() or page.locator(".timeline").count():
        page.wait_for_selector("[aria-busy=false]", state="attached")
    assert said == []
    assert page.locator(".finding").count() == len(recording.report["findings"])
    assert page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]
