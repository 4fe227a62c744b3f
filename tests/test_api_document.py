"""docs/api.md is made from the docstrings, and leaves nothing out that is public."""

from __future__ import annotations

import importlib
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).parent.parent / "docs" / "api.py"
API: dict[str, Any] = runpy.run_path(str(SCRIPT))
MODULES: tuple[str, ...] = API["MODULES"]


def test_the_document_is_what_its_script_makes() -> None:
    done = subprocess.run(
        [sys.executable, SCRIPT, "--check"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("module", MODULES)
def test_everything_that_a_module_offers_is_there_and_has_a_heading(module: str) -> None:
    document = (SCRIPT.parent / "api.md").read_text()
    loaded = importlib.import_module(module)
    names = [*loaded.__all__, *API["NAMED_AS_BUILTINS"].get(module, ())]
    assert names
    for name in names:
        assert hasattr(loaded, name), name
        assert f" `{module}.{name}`\n" in document, name


def test_what_is_public_and_says_nothing_is_an_error(tmp_path: Path) -> None:
    package = tmp_path / "ungil"
    package.mkdir()
    (package / "__init__.py").write_text(
        '"""A package."""\n'
        "__all__ = ['Told', 'gone', 'untold']\n"
        "class Stranger:\n"
        '    """Not public."""\n'
        "class Told:\n"
        '    """Public."""\n'
        "    def method(self) -> Stranger: ...\n"
        "    def _private(self): ...\n"
        "def untold(): ...\n"
    )
    page = API["Page"](API["load"](tmp_path))
    with pytest.raises(API["Undocumented"]) as refused:
        page.text(("ungil",))
    assert str(refused.value).splitlines() == [
        "ungil.gone is in __all__, and is not there",
        "ungil.Told.method has no docstring",
        "ungil.untold has no docstring",
        "ungil.Stranger is in a signature, and is not public",
    ]
