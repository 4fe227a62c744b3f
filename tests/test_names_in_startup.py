"""What cannot import ungil's names, as it runs on other Pythons or is the hook, has the same."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from stubs import STUB

from ungil import _native, environment
from ungil.startup import ungil_thread_levels

PYTHON = Path(__file__).parent.parent / "python"
STARTUP = PYTHON / "ungil" / "startup"
# All but what ungil's own Python imports.
FOREIGN = sorted({*STARTUP.glob("*.py")} - {STARTUP / "__init__.py", STARTUP / "policy.py"})
PTH = PYTHON / "ungil.data" / "purelib" / "ungil_policy.pth"


def variables_in(path: Path) -> set[str]:
    """The variables of ungil's that a file names."""
    return set(re.findall(r"\bUNGIL_[A-Z]+\b", path.read_text(encoding="utf-8")))


def test_what_runs_on_other_pythons_names_the_variables_as_ungil_does() -> None:
    assert {path.name: variables_in(path) for path in [*FOREIGN, PTH]} == {
        "sitecustomize.py": {environment.PRIORITY, environment.GREEN},
        "ungil_green.py": {environment.PRIORITY, environment.GREEN},
        "ungil_green_pools.py": set(),
        "ungil_thread_levels.py": {environment.PRIORITY},
        "ungil_policy.pth": {environment.POLICY},
    }


def test_what_runs_on_other_pythons_imports_nothing_of_ungil() -> None:
    for path in FOREIGN:
        assert not re.search(r"^\s*(from|import) ungil\b", path.read_text(encoding="utf-8"), re.M)


@pytest.mark.parametrize(
    "variable",
    [
        environment.POLICY,
        environment.QUANTUM,
        environment.SLICE,
        environment.CHILDREN,
        environment.RUN,
    ],
)
def test_the_hook_names_the_variables_as_ungil_does(variable: str) -> None:
    assert variable.encode() in Path(_native.hook_path()).read_bytes()


def test_the_hook_is_recognised_by_the_name_of_its_file() -> None:
    hook = Path(_native.hook_path())
    assert f'b"/{hook.name}"' in (STARTUP / "sitecustomize.py").read_text(encoding="utf-8")
    said = '"/libungil_"'
    assert all(f'"/{it.name}'.startswith(said[:-1]) for it in (hook, STUB))
    assert said in PTH.read_text(encoding="utf-8")


def test_levels_of_threads_have_the_numbers_that_the_hook_knows() -> None:
    assert {level: number for number, level in enumerate(_native.LEVELS)} == (
        ungil_thread_levels.LEVELS
    )
