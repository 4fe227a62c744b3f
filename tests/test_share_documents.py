"""The programs in the guides to sharing print what these say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from suite import run_python
from typed_documents import BLOCK

DOCS = Path(__file__).parent.parent / "docs"


@pytest.mark.parametrize(
    ("document", "told_by"),
    [("sharing-queues.md", "class Level(enum.IntEnum)"), ("sharing-queues.md", "QueueListener")],
)
def test_a_program_of_a_guide_prints_what_its_comment_says(
    document: str, told_by: str, tmp_path: Path
) -> None:
    blocks = [found["code"] for found in BLOCK.finditer((DOCS / document).read_text("utf-8"))]
    (code,) = [block for block in blocks if told_by in block]
    (said,) = re.findall(r"\)  # (.*)", code)
    program = tmp_path / "program.py"
    program.write_text(code)
    done = run_python(program)
    assert (done.stdout, done.stderr) == (f"{said}\n", "")
