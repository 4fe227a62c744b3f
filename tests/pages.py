"""Reads what `ungil report --html` has written, as web/FORMAT.md says, without ungil's help."""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

Table = dict[str, list[int]]
# Anything that a page could load or send.
NETWORK = re.compile(
    r"""(?:src|href|action)\s*=\s*["']?(?:https?:)?//|url\(\s*["']?(?:https?:)?//"""
)


@dataclass(frozen=True)
class Hold:
    """A hold of one lane, in units."""

    lane: int
    begin: int
    end: int
    waited_from: int | None
    how: int


class Elements(HTMLParser):
    """The elements of a page: their names and attributes, and the text of those with an id."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.started: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, str] = {}
        self.title = ""
        self._inside: str | None = None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element."""
        known = dict(attrs)
        self.started.append((tag, known))
        self._inside = "title" if tag == "title" else known.get("id")

    def handle_endtag(self, tag: str) -> None:
        """Note its end."""
        self._inside = None

    def handle_data(self, data: str) -> None:
        """Note its text."""
        if self._inside == "title":
            self.title += data
        elif self._inside is not None:
            self.texts[self._inside] = self.texts.get(self._inside, "") + data


class PageFile:
    """A page, taken apart."""

    def __init__(self, path: Path) -> None:
        self.text = path.read_text(encoding="utf-8")
        self.elements = Elements(self.text)
        self.summary: dict[str, Any] = json.loads(self.elements.texts["ungil-summary"])

    @property
    def gils(self) -> list[dict[str, Any]]:
        """Those with data."""
        return self.summary["gils"]

    @cached_property
    def report(self) -> dict[str, Any]:
        """The whole report."""
        return self.json(self.summary["full_report"])

    def bytes(self, block: int) -> bytes:
        """What was deflated."""
        text = self.elements.texts[f"ungil-block-{block}"]
        return zlib.decompress(base64.b64decode(text, validate=True), wbits=-15)

    def json(self, block: Mapping[str, Any]) -> Any:
        """A block of JSON."""
        return json.loads(self.bytes(block["block"]))

    def table(self, table: Mapping[str, Any] | None) -> Table:
        """A block of columns."""
        if table is None:
            return defaultdict(list)
        data, rows, at = self.bytes(table["block"]), table["rows"], 0
        columns: Table = {}
        for name, width in table["columns"]:
            planes = [data[at + i * rows : at + (i + 1) * rows] for i in range(width)]
            at += width * rows
            columns[name] = (
                [int.from_bytes(value, "little") for value in zip(*planes, strict=True)]
                if planes
                else [0] * rows
            )
        assert at == len(data)
        return columns

    def holds(self, gil: Mapping[str, Any]) -> list[Hold]:
        """All holds of a GIL."""
        holds: list[Hold] = []
        for chunk in gil["chunks"]:
            table, at = self.table(chunk["holds"]), chunk["from"]
            rows = zip(*(table[it] for it in ("lane", "gap", "length", "wait", "end")), strict=True)
            for lane, gap, length, wait, how in rows:
                begin, at = at + gap, at + gap + length
                holds.append(Hold(lane, begin, at, begin - wait + 1 if wait else None, how))
            assert at == chunk["to"]
        return holds

    def waits(self, gil: Mapping[str, Any]) -> list[tuple[int, int, int]]:
        """All waits of a GIL: lane, begin and end."""
        held = self.holds(gil)
        waits = [(it.lane, it.waited_from, it.begin) for it in held if it.waited_from is not None]
        loose, at = self.table(gil["loose"]), 0
        for lane, begin, length in zip(loose["lane"], loose["begin"], loose["length"], strict=True):
            at += begin
            waits.append((lane, at, at + length))
        return waits

    def lanes(self, gil: Mapping[str, Any]) -> dict[str, list[Any]]:
        """Who the lanes are."""
        return self.json(gil["lanes"])

    def told(self, gil: Mapping[str, Any]) -> dict[str, Any]:
        """What the report tells of a GIL."""
        return self.report["processes"][gil["process"]]["gils"][gil["report"]]
