"""What README, the map of the code and the results promise about themselves."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MOST_LINES = 150


def named_in(document: str) -> set[str]:
    """The files and folders that a document names in backticks: no NAME.rs, nothing built."""
    text = (ROOT / document).read_text(encoding="utf-8")
    endings = r"rs|py|pyi|md|toml|css|txt|weir"
    words = re.findall(rf"`((?:[\w.-]+/)*[\w.-]+(?:/|\.(?:{endings})))`", text)
    return {word.rstrip("/") for word in words if not re.search("NAME|^target/", word)}


def repository() -> set[str]:
    """Every file of the repository and every folder above one."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    files = {Path(line) for line in listed.stdout.splitlines() if (ROOT / line).exists()}
    return {str(path) for file in files for path in (file, *file.parents)}


@pytest.mark.parametrize("document", ["ARCHITECTURE.md", "CONTRIBUTING.md"])
def test_a_map_of_the_code_names_only_what_is_there(document: str) -> None:
    there = repository()
    ends = {path[start:] for path in there for start in starts(path)}
    assert not {name for name in named_in(document) if name not in ends}


def starts(path: str) -> list[int]:
    """Where the parts of a path begin."""
    return [0, *(found.end() for found in re.finditer("/", path))]


def test_a_stranger_can_finish_the_readme() -> None:
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= MOST_LINES


def test_a_cell_of_the_map_has_two_lines_at_most() -> None:
    rows = re.findall(r"^\|(.*)\|$", (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8"), re.M)
    cells = [cell.strip() for row in rows for cell in row.split("|")]
    assert cells
    assert not [cell for cell in cells if len(cell) > 160]


def test_results_are_of_clean_commits_and_the_newest_stands_on_top() -> None:
    text = (ROOT / "bench" / "RESULTS.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```\n(.*?)^```", text, re.M | re.S)
    dates = [re.findall(r"^date +(.*)$", block, re.M) for block in blocks]
    commits = [re.findall(r"^commit +(.*)$", block, re.M) for block in blocks]
    assert blocks
    assert all(re.fullmatch(r"[0-9a-f]{7,40}", *found) for found in commits)
    assert dates == sorted(dates, reverse=True)
