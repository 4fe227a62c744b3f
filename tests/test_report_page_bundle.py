"""The page's front end: what is checked in is what its sources make."""

from __future__ import annotations

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILT = ROOT / "python" / "ungil" / "report" / "page" / "page.html"
LARGEST = 300_000


def test_the_page_that_is_checked_in_is_built_from_these_sources(tmp_path: Path) -> None:
    again = tmp_path / "page.html"
    subprocess.run(["node", ROOT / "web" / "build.mjs", again], check=True, capture_output=True)
    assert again.read_bytes() == BUILT.read_bytes(), "make page builds it again"


def test_the_page_is_small_and_names_no_place_of_a_machine() -> None:
    text = BUILT.read_text(encoding="utf-8")
    assert len(text) < LARGEST
    assert str(ROOT) not in text
    assert "http://" not in text
