"""The page of `ungil diff`: one file, no script, nothing from elsewhere, readable on a phone."""

from __future__ import annotations

import re
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, ViewportSize
from shown_pages import DESK, PHONE, Scheme, chromium
from test_cli_diff import SECONDS, recorded
from test_diff_answer import compared, row
from test_lab_page import Tags

from ungil.comparison import compare, read_run
from ungil.comparison.matching import Threads
from ungil.comparison.page import detailed, html

HOSTILE = ["<script>document.title = 'owned'</script>", "&lt;", "\u202eevil", "\x1b[31m"]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page with a convoy that is gone, threads that are new, and hostile names.

    A busy recorder may be too late for a name, so the names are put into what was measured.
    """
    folder = tmp_path_factory.mktemp("page")
    before = recorded(folder, "before", "compared.py", SECONDS, "convoy")
    after = recorded(folder, "after", "hostile_names.py")
    later = read_run(after, 20.0)
    groups = later.whole["processes"][0]["gils"][0]["groups"]
    for group, name in zip(groups, HOSTILE, strict=False):
        group["name"] = group["pattern"] = name
    made = folder / "page.html"
    made.write_text(html(compare([read_run(before, 20.0)], [later])), "utf-8")
    return made


@pytest.fixture(scope="module")
def browser() -> Generator[Browser]:
    with chromium() as opened:
        yield opened


def looked_at(browser: Browser, path: Path, size: ViewportSize, scheme: Scheme) -> Page:
    shown = browser.new_context(viewport=size, color_scheme=scheme, offline=True).new_page()
    shown.goto(path.as_uri())
    return shown


def test_its_tags_match_and_nothing_is_loaded_or_executed(page: Path) -> None:
    tags = Tags()
    tags.feed(page.read_text(encoding="utf-8"))
    assert tags.open == []
    names = {name for name, _ in tags.found}
    assert not names & {"script", "img", "link", "iframe", "object", "form"}
    for _, attributes in tags.found:
        assert not {"src", "href", "style"} & attributes.keys()
        assert not any(name.startswith("on") for name in attributes)


def test_its_policy_allows_its_own_style_and_nothing_else(browser: Browser, page: Path) -> None:
    shown = browser.new_context(offline=True).new_page()
    complaints: list[str] = []
    shown.on("console", lambda message: complaints.append(message.text))
    shown.goto(page.as_uri())
    assert complaints == []
    colour = "getComputedStyle(document.querySelector('tr.command th')).fontWeight"
    assert shown.evaluate(colour) == "600"
    policy = shown.locator("meta[http-equiv]").get_attribute("content")
    assert policy is not None
    assert re.fullmatch(r"default-src 'none'; style-src 'sha256-[\w+/]+='", policy)


@pytest.mark.parametrize("size", [PHONE, DESK], ids=["phone", "desk"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_the_screen_and_begins_with_the_answer(
    browser: Browser, page: Path, size: ViewportSize, scheme: Scheme
) -> None:
    shown = looked_at(browser, page, size, scheme)
    shown.locator("details").first.evaluate("it => it.open = true")
    assert shown.evaluate("document.documentElement.scrollWidth") <= size["width"]
    assert shown.locator("h1").inner_text().startswith("Threads waited ")
    paper = shown.evaluate("getComputedStyle(document.body).backgroundColor")
    assert paper == {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 23, 26)"}[scheme]


def test_hostile_names_are_text(browser: Browser, page: Path) -> None:
    shown = looked_at(browser, page, DESK, "light")
    assert shown.title().startswith("ungil diff: threads waited")
    names = shown.locator("tbody th bdi").all_inner_texts()
    for name in (*HOSTILE[:2], "\\u202eevil", "\\x1b[31m"):
        assert any(shown.startswith(name) for shown in names), name


def test_each_table_has_a_name_and_heads_of_rows_and_columns(browser: Browser, page: Path) -> None:
    shown = looked_at(browser, page, DESK, "light")
    for table in shown.locator("table").all():
        assert table.locator("xpath=..").get_attribute("aria-label") is not None
        assert table.locator("th[scope=col]").count() > 0
        rows = table.locator("tbody tr").count()
        assert table.locator("tbody th[scope=row]").count() == rows


def test_it_can_be_printed(browser: Browser, page: Path) -> None:
    shown = looked_at(browser, page, DESK, "dark")
    assert shown.pdf(format="A4").startswith(b"%PDF")


def test_threads_of_one_name_are_told_apart_by_their_process() -> None:
    both = [row(Threads(it, 0, "MainThread"), "MainThread", 1.0, 1.0) for it in ("app", "worker")]
    alone = compared(both[:1], [])
    assert [name for name, _ in detailed(alone)] == ["all threads", "MainThread"]
    commands = [row(Threads(it), it, 1.0, 1.0) for it in ("app", "worker")]
    names = [name for name, _ in detailed(replace(compared(both, []), commands=commands))]
    assert names == ["all threads", "MainThread of app", "MainThread of worker"]
