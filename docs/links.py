"""Where Markdown of this repository links to: for the site, and for the test of all links."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

FENCED = re.compile(r"^( *)(`{3,}|~{3,})[^\n]*\n.*?^\1\2[^\n]*$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)", re.DOTALL)
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
# The target stands in brackets after a text or a picture, or is an attribute of HTML.
TARGET = re.compile(r"(?<=\]\()([^()\s]+)(?=\))|(?<=(?:ref|src)=\")([^\"]+)|(?<=srcset=\")([^\"]+)")
ELSEWHERE = re.compile(r"[a-z][a-z+.-]*:", re.IGNORECASE)
HEADING = re.compile(r"^#{1,6} +(.*?) *#*$", re.MULTILINE)


class Link(NamedTuple):
    """A link to a file of the repository."""

    line: int
    path: Path | None
    """Null for a place in the same document."""
    anchor: str


def links(text: str, document: Path) -> Iterator[Link]:
    """All links of a document that lead into the repository, with resolved paths."""
    prose = without_code(text)
    for found in TARGET.finditer(prose):
        target = found.group()
        if ELSEWHERE.match(target):
            continue
        path, _, anchor = target.partition("#")
        line = prose.count("\n", 0, found.start()) + 1
        yield Link(line, (document.parent / path).resolve() if path else None, anchor)


def replaced(text: str, change: Callable[[str], str]) -> str:
    """The text with each link that leads into the repository changed."""
    parts: list[str] = []
    end = 0
    for found in TARGET.finditer(without_code(text)):
        target = found.group()
        new = target if ELSEWHERE.match(target) else change(target)
        parts += [text[end : found.start()], new]
        end = found.end()
    return "".join([*parts, text[end:]])


def anchors(text: str) -> set[str]:
    """The names of a document's headings, as GitHub makes them."""
    seen: dict[str, int] = {}
    names: set[str] = set()
    for heading in HEADING.findall(_blank(text, FENCED)):
        name = slug(heading)
        count = seen.get(name, 0)
        seen[name] = count + 1
        names.add(f"{name}-{count}" if count else name)
    return names


def slug(heading: str) -> str:
    """The anchor of a heading: its words in small letters, a hyphen for each space."""
    said = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[^\w\- ]", "", said.strip().lower()).replace(" ", "-")


def without_code(text: str) -> str:
    """The text with blanks in the place of code and comments: each character keeps its place."""
    for pattern in (FENCED, COMMENT, CODE):
        text = _blank(text, pattern)
    return text


def _blank(text: str, pattern: re.Pattern[str]) -> str:
    return pattern.sub(lambda found: re.sub(r"[^\n]", " ", found.group()), text)
