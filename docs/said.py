"""Writes what the programs say as Markdown, for `make prose`: one file a source, line for line.

    python docs/said.py FOLDER

What is said: errors, warnings, reports and labels, which are strings in Python, Rust and
TypeScript. Help and public docstrings are in docs/cli.md and docs/api.md. Each string is an item of
a list at the line where it begins, so that the linter names the line of the source. Placeholders
become code, which the linter leaves alone. A string of few words is not a sentence, and is left
out.
"""

from __future__ import annotations

import argparse
import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ("python/ungil/*.py", "crates/*/src/*.rs", "web/src/*.ts")
LEAST_WORDS = 5
WORD = re.compile(r"[A-Za-z]{2,}")
# SQL, HTML, Python and JSON in a string; paths and patterns.
PROGRAM = re.compile(
    r"\b(SELECT|CREATE|INSERT|PRAGMA|INTEGER|TEXT)\b|</?[a-z]+[ >]|\bimport \w|\n\s*def |::|\\[dsw]"
)
RUST = re.compile(
    r"//[^\n]*|/\*.*?\*/|r(?P<hashes>#*)\"(?P<raw>.*?)\"(?P=hashes)"
    r"|b?\"(?P<text>(?:\\.|[^\"\\])*)\"|'(?:\\.|[^'\\])'",
    re.DOTALL,
)
# What only a developer sees: why a panic cannot come, why a lint is off, a step of a model.
UNSAID = re.compile(
    r"(expect|expect_err|assert\w*!|panic!|unreachable!|debug_assert\w*!)\s*\([^\"]*$|reason\s*=\s*$|hit\($"
)
TYPESCRIPT = re.compile(
    r"//[^\n]*|/\*.*?\*/|\"(?P<text>(?:\\.|[^\"\\\n])*)\"|`(?P<raw>[^`]*)`", re.DOTALL
)


def main() -> None:
    """Write them below the folder of the command line."""
    parser = argparse.ArgumentParser(description="Write what ungil says, for the linter of prose.")
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    for source in sources():
        said = list(READERS[source.suffix]((ROOT / source).read_text(encoding="utf-8")))
        if said:
            path = folder / f"{source}.md"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(page(said), encoding="utf-8")


def sources() -> list[Path]:
    """The sources that speak, by their paths in the repository."""
    found = subprocess.run(
        ["git", "ls-files", *SOURCES], cwd=ROOT, capture_output=True, text=True, check=True
    )
    paths = map(Path, found.stdout.splitlines())
    return [path for path in paths if "tests" not in path.parts and path.stem != "tests"]


def of_python(code: str) -> Iterator[tuple[int, str]]:
    """Line and text of each string of a Python source that is a sentence, but no docstring."""
    left: set[int] = set()
    for node in ast.walk(ast.parse(code)):
        # A parent comes before its parts.
        if id(node) in left:
            continue
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            left.add(id(node.value))
        elif isinstance(node, ast.JoinedStr):
            left.update(map(id, ast.walk(node)))
            yield from said(node.lineno, "".join(map(_of_part, node.values)))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from said(node.lineno, node.value)


def _of_part(part: ast.expr) -> str:
    return str(part.value) if isinstance(part, ast.Constant) else "{}"


def of_rust(code: str) -> Iterator[tuple[int, str]]:
    """Line and text of each string of a Rust source that is a sentence."""
    code = re.split(r"\n#\[cfg\(test\)\]\nmod ", code)[0]
    for found in RUST.finditer(code):
        text = _text(found)
        if text is not None and not UNSAID.search(code[max(0, found.start() - 80) : found.start()]):
            yield from said(_line(code, found), re.sub(r"\\\n\s*", "", text))


def of_typescript(code: str) -> Iterator[tuple[int, str]]:
    """Line and text of each string of a TypeScript source that is a sentence."""
    for found in TYPESCRIPT.finditer(code):
        text = _text(found)
        if text is not None:
            yield from said(_line(code, found), re.sub(r"\$\{", "{", text))


READERS = {".py": of_python, ".rs": of_rust, ".ts": of_typescript}


def _text(found: re.Match[str]) -> str | None:
    """What stands in a string; None for a comment or a character."""
    return found["text"] if found["text"] is not None else found["raw"]


def _line(code: str, found: re.Match[str]) -> int:
    return code.count("\n", 0, found.start()) + 1


def said(line: int, text: str) -> Iterator[tuple[int, str]]:
    """The text, if it is one that people read."""
    text = text.replace('\\"', '"').replace("\\n", " ")
    words = re.sub(r"\{[^{}]*\}", " ", text)
    if len(WORD.findall(words)) >= LEAST_WORDS and not PROGRAM.search(text):
        yield line, re.sub(r"\{[^{}]*\}", "`x`", text)


def page(texts: list[tuple[int, str]]) -> str:
    """The texts as items of a list, each at its line."""
    lines: list[str] = []
    for first, text in sorted(texts):
        lines += [""] * (first - 1 - len(lines))
        rows = map(str.strip, text.split("\n"))
        lines += [("* " if not number else "  ") + row for number, row in enumerate(rows)]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
