"""Every link of a document leads to a file that is there, and to a heading in it; no network."""

from __future__ import annotations

import runpy
import subprocess
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
LINKS: dict[str, Any] = runpy.run_path(str(ROOT / "docs" / "links.py"))


def documents() -> list[str]:
    """All Markdown of the repository, also what is not committed yet."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [name for name in listed.stdout.splitlines() if (ROOT / name).exists()]


def broken(document: Path) -> list[str]:
    """The links that lead nowhere, each with its line."""
    found: list[str] = []
    for line, path, anchor in LINKS["links"](document.read_text(encoding="utf-8"), document):
        target = path or document
        if not target.exists():
            found.append(f"line {line}: there is no {target}")
        elif (
            target.suffix == ".md"
            and anchor
            and anchor not in LINKS["anchors"](target.read_text(encoding="utf-8"))
        ):
            found.append(f"line {line}: {target} has no heading #{anchor}")
    return found


@pytest.mark.parametrize("name", documents())
def test_every_link_of_a_document_leads_to_something(name: str) -> None:
    assert broken(ROOT / name) == []


def test_a_link_to_nothing_is_found_and_one_in_code_is_none(tmp_path: Path) -> None:
    document = tmp_path / "page.md"
    (tmp_path / "other.md").write_text(
        "# What it is\n\n## `a.b`, and *c*\n\n## Twice\n\n## Twice\n"
    )
    document.write_text(
        "# Here\n"
        "[right](other.md) [right](other.md#what-it-is) [right](#here) [right](other.md#twice-1)\n"
        "[right](other.md#ab-and-c) `[code](nothing.md)` [elsewhere](https://example.org/x.md)\n"
        "[wrong](nothing.md)\n"
        "[wrong](other.md#why)\n"
        '<img src="picture.svg">\n'
        "```\n[code](nothing.md)\n```\n"
    )
    assert [it.partition(":")[0] for it in broken(document)] == ["line 4", "line 5", "line 6"]
