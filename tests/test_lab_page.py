"""The page of the lab: one file, nothing from elsewhere, every chart also in words."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from lab import HEADER, result, results

from ungil.lab.experiments import load
from ungil.lab.findings import found
from ungil.lab.page import CSS, page
from ungil.lab.results import Header, Result, Results
from ungil.lab.results import load as results_of

DOCS = Path(__file__).parent.parent / "docs"
VOID = {"meta", "br", "hr", "img", "link", "input"}
MACHINE = {
    "cpu": "a <slow> one",
    "cores": 2,
    "memory_gb": 8.0,
    "kernel": "Linux 6",
    "libc": "glibc 2",
}


class Tags(HTMLParser):
    """Checks that tags match, and collects the attributes of each."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.found: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag


def some() -> Results:
    header = Header("1.2.3", MACHINE, quick=True)

    def counted(python: str, variant: str, wall_s: float) -> Result:
        switches = {"voluntary_switches": 10, "involuntary_switches": 20}
        made = result("countdown", python, variant, wall_s=wall_s, **switches)
        return replace(made, settings={"n": 3_000})

    return results(
        counted("2.7", "in sequence", 2.0),
        counted("2.7", "two threads", 4.0),
        replace(result("countdown", "3.11 <&>", "batch"), status="failed", why="a < b & c"),
        header=header,
    )


def parsed(text: str) -> Tags:
    tags = Tags()
    tags.feed(text)
    tags.close()
    assert tags.open == []
    return tags


def test_the_page_has_the_experiments_there_are_results_of_and_no_others() -> None:
    tags = parsed(page(load(()), some()))
    assert [attributes["id"] for tag, attributes in tags.found if tag == "section"] == [
        "summary",
        "countdown",
    ]
    assert [attributes["href"] for tag, attributes in tags.found if tag == "a"] == ["#countdown"]


def test_the_page_takes_nothing_from_elsewhere() -> None:
    text = page(load(()), some())
    tags = parsed(text)
    assert not {"script", "link", "img", "iframe"} & {tag for tag, _ in tags.found}
    for _, attributes in tags.found:
        for name in ("src", "href", "xlink:href", "style"):
            value = attributes.get(name) or ""
            assert "//" not in value
    assert not re.search(r"url\((?!#)|@import", text)


def test_what_is_published_is_beside_what_was_measured() -> None:
    text = page(load(()), some())
    for shown in ("24.6 s", "45.5 s", "1.85x", "2.00x", "3,300,000"):
        assert shown in text
    assert "<code>ungil lab countdown --quick</code>" in text


def test_what_others_wrote_is_text() -> None:
    text = page(load(()), some())
    assert "a &lt;slow&gt; one" in text
    assert "FAILED: 3.11 &lt;&amp;&gt; batch: a &lt; b &amp; c" in text
    assert "<slow>" not in text


def test_each_drawing_says_in_words_what_it_shows() -> None:
    text = page(load(()), some())
    drawings = re.findall(r'<svg role="img".*?</svg>', text, re.DOTALL)
    assert len(drawings) == 3
    for drawing in drawings:
        assert re.search(r"<title>[^<]+</title><desc>[^<]+</desc>", drawing)
    assert "<desc>as it is: 2.00x</desc>" in drawings[-1]


def test_every_title_is_what_the_results_say() -> None:
    run = results_of(DOCS / "lab.json")
    text = unescape(page(load(()), run)).replace("\N{NO-BREAK SPACE}", " ")
    for experiment in load(()):
        title = found(experiment.name, run.of(experiment.name)).title
        assert text.count(f">{title}<") == 2
        assert f'<a href="#{experiment.name}">{title}</a>' in text


def test_the_page_in_docs_is_made_of_the_run_in_docs() -> None:
    spec = spec_from_file_location("lab_page", DOCS / "lab_page.py")
    assert spec
    assert spec.loader
    made = module_from_spec(spec)
    spec.loader.exec_module(made)
    assert made.written() == (DOCS / "lab.html").read_text(encoding="utf-8"), "make lab-page"


def test_what_has_to_be_known_of_a_run_is_on_its_page() -> None:
    noted = Results(replace(HEADER, machine=MACHINE, note="read < back"))
    assert "read &lt; back" in page(load(()), noted)


def test_a_figure_and_its_unit_stay_on_one_line() -> None:
    run = results_of(DOCS / "lab.json")
    title = re.findall(r"<h2>(Ctrl-C.*?)</h2>", page(load(()), run))[0]
    assert re.search(r"\d&nbsp;ms on 3", title)


def test_every_colour_is_there_in_the_light_and_in_the_dark() -> None:
    style = CSS.read_text(encoding="utf-8")
    light, dark = style.split("@media (prefers-color-scheme: dark)", 1)
    for variable in set(re.findall(r"var\((--[\w-]+)\)", style)) - {"--margin"}:
        assert f"{variable}:" in light
        assert f"{variable}:" in dark.split("/* Text")[0]


def test_the_same_results_make_the_same_page() -> None:
    assert page(load(()), some()) == page(load(()), some())


def test_an_empty_file_makes_an_empty_page() -> None:
    assert "<section" not in page(load(()), results(header=replace(HEADER, machine=MACHINE)))
