"""What cannot import ungil's names, as it runs on other Pythons or is the hook, has the same."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ungil import _native, environment
from ungil.startup import ungil_thread_levels

PYTHON = Path(__file__).parent.parent / "python"
STARTUP = PYTHON / "ungil" / "startup"
PTH = PYTHON / "ungil.data" / "purelib" / "ungil_policy.pth"


def variables_in(path: Path) -> set[str]:
    """The variables of ungil's that a file names."""
    return set(re.findall(r"\bUNGIL_[A-Z]+\b", path.read_text(encoding="utf-8")))


@pytest.mark.parametrize(
    ("path", "variables"),
    [
        (STARTUP / "sitecustomize.py", {environment.PRIORITY, environment.GREEN}),
        (STARTUP / "ungil_green.py", {environment.PRIORITY, environment.GREEN}),
        (STARTUP / "ungil_green_pools.py", set[str]()),
        (STARTUP / "ungil_thread_levels.py", {environment.PRIORITY}),
        (PTH, {environment.POLICY}),
    ],
    ids=lambda it: it.name if isinstance(it, Path) else "",
)
def test_what_runs_on_other_pythons_names_the_variables_as_ungil_does(
    path: Path, variables: set[str]
) -> None:
    assert variables_in(path) == variables


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


def test_every_variable_begins_with_the_prefix() -> None:
    names = {
        value for name, value in vars(environment).items() if name.isupper() and name != "STARTUP"
    }
    others = {environment.PRELOAD}
    assert all(name.startswith(environment.PREFIX) for name in names - others)


def test_the_hook_is_recognised_by_the_name_of_its_file() -> None:
    hook = Path(_native.hook_path())
    assert f'b"/{hook.name}"' in (STARTUP / "sitecustomize.py").read_text(encoding="utf-8")
    assert f'"{hook.stem}"' in PTH.read_text(encoding="utf-8")


def test_levels_of_threads_have_the_numbers_that_the_hook_knows() -> None:
    assert {level: number for number, level in enumerate(_native.LEVELS)} == (
        ungil_thread_levels.LEVELS
    )
