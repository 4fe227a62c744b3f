"""Checks who may use whom: the crates, the modules of a crate, and the packages of Python.

    python tests/arrows.py

Says each use that is not allowed, and exits with 1 if there is one. Which layers the packages of
Python make is for import-linter to check (`pyproject.toml`).
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parent.parent

# Each crate, and those of ours that it may use: the hook and the tracer share events and know
# nothing of each other, and the heap knows nothing of the GIL.
CRATES: dict[str, set[str]] = {
    "ungil-advise": {"ungil-core", "ungil-simulate", "ungil-trace"},
    "ungil-attach": {"ungil-core"},
    "ungil-control": {"ungil-core"},
    "ungil-core": set(),
    "ungil-export": {"ungil-core", "ungil-trace"},
    "ungil-fanout": set(),
    "ungil-frozen": {"ungil-heap"},
    "ungil-heap": set(),
    "ungil-hook": {"ungil-core"},
    "ungil-trace": {"ungil-control", "ungil-core", "ungil-unwind"},
    "ungil-unwind": {"ungil-attach"},
    "ungil-simulate": {"ungil-core", "ungil-trace"},
    "ungil-py": {
        "ungil-advise",
        "ungil-attach",
        "ungil-control",
        "ungil-core",
        "ungil-export",
        "ungil-fanout",
        "ungil-frozen",
        "ungil-heap",
        "ungil-simulate",
        "ungil-trace",
    },
}
# The crates whose `lib.rs` declares modules in the order of their dependencies.
ORDERED = [
    "ungil-advise",
    "ungil-core",
    "ungil-frozen",
    "ungil-heap",
    "ungil-simulate",
    "ungil-trace",
]

MODULE = re.compile(r"^(?:pub(?:\(\w+\))? )?mod (\w+);", re.MULTILINE)
REEXPORT = re.compile(r"^pub use (\w+)::(\w+);", re.MULTILINE)
COMMENT = re.compile(r"//.*")
# What is built for tests alone may use everything.
TESTS = re.compile(r"^#\[cfg\((?:all\()?test\b.*\nmod \w+ \{\n.*?^\}", re.MULTILINE | re.DOTALL)


def main() -> None:
    """Check everything."""
    wrong = list(
        chain(
            wrong_crates(PROJECT / "crates"),
            *(wrong_modules(PROJECT / "crates" / name / "src") for name in ORDERED),
            wrong_packages(PROJECT / "python" / "ungil"),
        )
    )
    for sentence in wrong:
        print(sentence, file=sys.stderr)
    sys.exit(bool(wrong))


def wrong_crates(folder: Path) -> Iterator[str]:
    """Say which crates use others that they may not use, by their Cargo.toml."""
    for file in sorted(folder.glob("*/Cargo.toml")):
        manifest = tomllib.loads(file.read_text())
        name = manifest["package"]["name"]
        if name not in CRATES:
            yield f"{name} is a new crate: say in tests/arrows.py which others it may use"
            continue
        for used in sorted(dependencies(manifest)):
            if used.startswith("ungil-") and used not in CRATES[name]:
                yield f"{name} may not use {used} (tests/arrows.py says what it may use)"


def dependencies(manifest: dict[str, Any]) -> set[str]:
    """Name what a crate depends on, on any target, also to be built or tested."""
    used: set[str] = set()
    for table in [manifest, *manifest.get("target", {}).values()]:
        for kind in ["dependencies", "build-dependencies", "dev-dependencies"]:
            used |= set(table.get(kind, {}))
    return used


def wrong_modules(source: Path) -> Iterator[str]:
    """Say which modules of a crate use some that its `lib.rs` declares below them."""
    library = (source / "lib.rs").read_text()
    order = MODULE.findall(library)
    exported = {name: module for module, name in REEXPORT.findall(library)}
    for number, module in enumerate(order):
        if module == "model":
            continue
        below = set(order[number + 1 :])
        for file in sorted([*source.glob(f"{module}.rs"), *source.glob(f"{module}/**/*.rs")]):
            # The parts of a model stand for what is there in their place.
            if file.stem == "model":
                continue
            for line, name in used_modules(file.read_text()):
                used = exported.get(name, name)
                if used in below:
                    where = f"{file.relative_to(source.parent)}:{line}"
                    yield f"{where}: {module} uses {used}, which stands below it in lib.rs"


def used_modules(text: str) -> Iterator[tuple[int, str]]:
    """Find what a source names right behind `crate::`, and in which line."""
    text = TESTS.sub(lambda tests: "\n" * tests[0].count("\n"), COMMENT.sub("", text))
    for found in re.finditer(r"\bcrate::(\w+|\{)", text):
        names = items(text, found.end()) if found[1] == "{" else [(found.start(1), found[1])]
        for at, name in names:
            yield text.count("\n", 0, at) + 1, name


def items(text: str, start: int) -> Iterator[tuple[int, str]]:
    """Find the first name of each item of a list in braces, which begins at `start`."""
    depth, is_first = 1, True
    for token in re.finditer(r"[{},]|\w+", text[start:]):
        if token[0] == "{":
            depth += 1
        elif token[0] == "}":
            depth -= 1
            if depth == 0:
                return
        elif token[0] == ",":
            is_first = is_first or depth == 1
        elif is_first:
            yield start + token.start(), token[0]
            is_first = False


def wrong_packages(folder: Path) -> Iterator[str]:
    """Say which packages of Python import what begins with an underscore in another one."""
    for file in sorted(folder.rglob("*.py")):
        home = file.relative_to(folder).parts[0].removesuffix(".py")
        for line, name in imports(file.read_text()):
            _, *parts = name.split(".")
            # What is right below `ungil` is of no package.
            if len(parts) > 1 and parts[0] != home and is_private(parts[1:]):
                where = f"{file.relative_to(folder.parent.parent)}:{line}"
                yield f"{where}: {name} is private to ungil.{parts[0]}"


def imports(text: str) -> Iterator[tuple[int, str]]:
    """Find what a source imports of ungil, with all dots, and in which line."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        yield from ((node.lineno, name) for name in names if name.startswith("ungil."))


def is_private(parts: list[str]) -> bool:
    """Whether something is reached by a name with an underscore."""
    return any(part.startswith("_") and not part.endswith("__") for part in parts)


if __name__ == "__main__":
    main()
