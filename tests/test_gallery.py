"""The gallery of real programs: that one runs in all three ways, and where its page comes from."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).parent.parent
BENCH = PROJECT / "bench"


def gallery(*words: str) -> subprocess.CompletedProcess[str]:
    """What `python bench/gallery.py WORDS` does."""
    command = [sys.executable, str(BENCH / "gallery.py"), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_web_server_answers_while_it_computes_stock_with_a_short_interval_and_under_ungil(
    tmp_path: Path,
) -> None:
    file = tmp_path / "measured.json"
    short = ("--rounds", "1", "--seconds", "1", "--repetitions", "0", "--json", str(file))
    done = gallery("tornado", *short)
    assert done.returncode == 0, done.stderr
    (setting,) = json.loads(file.read_text(encoding="utf-8"))["settings"]
    (measured,) = setting["rounds"]
    assert list(measured) == ["stock", "interval 50 us", "ungil run"]
    for it in measured.values():
        assert len(it["late_ms"]) == 50
        assert min(it["late_ms"]) > 0
        assert it["calls"] > 0
        assert it["cpu_s"] > 0


def test_a_case_that_is_unknown_is_one_sentence_with_those_that_are_known() -> None:
    done = gallery("django")
    assert done.returncode == 2
    assert "there is no case django; there are aiohttp, " in done.stderr
    assert "Traceback" not in done.stderr


def test_the_page_says_what_the_results_say_that_are_kept() -> None:
    words = "import gallery_page, gallery_results as kept; print(gallery_page.page(kept.kept()))"
    printed = subprocess.run(
        [sys.executable, "-c", words], cwd=BENCH, capture_output=True, text=True, check=True
    )
    page = (PROJECT / "docs" / "gallery.md").read_text(encoding="utf-8")
    assert printed.stdout == page + "\n"
