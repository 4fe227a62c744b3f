"""Which package of ungil imports which: the arrows point one way, and to public names only."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "python" / "ungil"

# What everybody may import: it knows nothing of the packages below.
FLOOR = {"_native", "console", "environment", "errors", "formatting", "interpreters", "recorder"}
PACKAGES: dict[str, set[str]] = {
    "report": set(),
    "gil": set(),
    "share": set(),
    "fanout": set(),
    "startup": set(),
    "lab": {"report"},
    "cli": {"report", "share", "fanout", "lab"},
}


def imported(path: Path) -> Iterator[list[str]]:
    """What a file imports of ungil: the parts of each name after `ungil`."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        for name in names:
            first, *parts = name.split(".")
            if first == "ungil" and parts:
                yield parts


def files(package: str) -> list[Path]:
    """The modules of a package; not the programs that the lab measures, which import little."""
    return [path for path in (PACKAGE / package).rglob("*.py") if path.parent.name != "workloads"]


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_imports_only_what_is_below_it(package: str) -> None:
    allowed = {package, *FLOOR, *PACKAGES[package]}
    found = {
        (str(path.relative_to(PACKAGE)), parts[0])
        for path in files(package)
        for parts in imported(path)
        if parts[0] not in allowed and not parts[0].startswith("__")
    }
    assert not found


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_imports_nothing_private_of_another(package: str) -> None:
    found = {
        (str(path.relative_to(PACKAGE)), ".".join(parts))
        for path in files(package)
        for parts in imported(path)
        if parts[0] not in (package, "_native") and any(it.startswith("_") for it in parts)
    }
    assert not found


def test_the_floor_imports_no_package() -> None:
    paths = [path for path in PACKAGE.glob("*.py") if path.stem in FLOOR]
    assert {path.stem for path in paths} == FLOOR - {"_native"}
    found = {
        (path.name, parts[0]) for path in paths for parts in imported(path) if parts[0] not in FLOOR
    }
    assert not found


def test_every_package_is_in_the_table() -> None:
    assert {path.parent.name for path in PACKAGE.glob("*/__init__.py")} == PACKAGES.keys()
