"""The page of the lab: one file, nothing from elsewhere, every chart also in words."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from lab import HEADER, result, results

from ungil.errors import UsageError
from ungil.lab import charts
from ungil.lab.experiment import Chart, Kind, Series, Span
from ungil.lab.experiments import load
from ungil.lab.page import CSS, page
from ungil.lab.results import Header, Result, Results

VOID = {"meta", "br", "hr", "img", "link", "path", "rect", "use"}
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
    assert [attributes["id"] for tag, attributes in tags.found if tag == "section"] == ["countdown"]
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


def test_each_chart_says_in_words_what_it_shows() -> None:
    tags = parsed(page(load(()), some()))
    [drawing] = [attributes for tag, attributes in tags.found if tag == "svg"]
    assert drawing["role"] == "img"
    assert "1.85x in 2009; now, without ungil: 2.7 2.00x" in str(drawing["aria-label"])
    assert "width" not in drawing
    assert drawing["viewbox"]


def test_the_same_results_make_the_same_page() -> None:
    assert page(load(()), some()) == page(load(()), some())


KINDS: list[Kind] = ["published", "stock", "ungil"]
BARS = Chart("bars", "t", "w", series=[Series(k, ["a", "b"], [1.0, None], k) for k in KINDS])
LINES = Chart(
    "lines", "t", "w", series=[Series(k, [1, 2], [1.0, 2.0], k) for k in KINDS], log_y=True
)
TIMELINE = Chart("timeline", "t", "w", spans=[Span("x", "1", 0, 1), Span("y", "2", 1, 3)])


@pytest.mark.parametrize("chart", [BARS, LINES, TIMELINE], ids=["bars", "lines", "timeline"])
def test_a_chart_has_the_colours_of_the_page_in_the_light_and_in_the_dark(chart: Chart) -> None:
    drawn = charts.svg(chart)
    used = set(re.findall(r"var\((--[\w-]+)\)", drawn))
    assert "--ink" in used
    light, dark = CSS.read_text().split("@media (prefers-color-scheme: dark)")
    for variable in used:
        assert f"{variable}:" in light
        assert f"{variable}:" in dark
    # Black is what matplotlib draws what it was given no colour for.
    assert not re.findall(r"(?:fill|stroke): (#[0-9a-f]{6})", drawn)


def test_a_chart_without_a_figure_is_not_drawn() -> None:
    assert charts.svg(replace(BARS, series=[Series("a", ["x"], [None])])) == ""


def test_without_what_draws_there_is_a_sentence_on_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    with pytest.raises(UsageError, match=r"pip install 'ungil\[lab\]'"):
        charts.check()


def test_an_empty_file_makes_an_empty_page() -> None:
    assert "<section" not in page(load(()), results(header=replace(HEADER, machine=MACHINE)))
