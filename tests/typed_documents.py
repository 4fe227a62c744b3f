"""Checks the types of what users copy: the Python in the README and in docs, and the examples.

    python tests/typed_documents.py

A block of Python in a document is a module of its own. What it uses and does not define is declared
in a comment before it, which readers do not see:

    <!-- python: def handle_request() -> None: ... -->

mypy checks them in its strict mode, and so does pyright. Prints what they say, by document and
line.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(
    r"(?:<!-- python:(?P<given>.*?)-->\s*)?^```python\n(?P<code>.*?)^```", re.M | re.S
)
# Libraries without types, which no user of them can help.
UNTYPED = ["-m", "mypy", "--strict", "--ignore-missing-imports", "--no-error-summary"]


def blocks(document: Path) -> list[tuple[int, str, str]]:
    """The line before each block of a document, what it takes for granted, and its code."""
    text = document.read_text()
    return [
        (text.count("\n", 0, found.start("code")), found["given"] or "", found["code"])
        for found in BLOCK.finditer(text)
    ]


def written(folder: Path) -> dict[str, tuple[Path, int]]:
    """Write each block into a file; return the document of each, and its line 0 there."""
    places: dict[str, tuple[Path, int]] = {}
    for document in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        for line, given, code in blocks(document):
            file = folder / f"{document.stem.replace('-', '_')}_{line}.py"
            file.write_text(f"{given.strip()}\n{code}")
            places[file.name] = (document, line - given.strip().count("\n") - 1)
    for example in sorted((ROOT / "examples").glob("*.py")):
        # Programs to be looked at use nothing of ours, and libraries that have no types.
        if "ungil" not in re.findall(r"^(?:from|import) (\w+)", example.read_text(), re.M):
            continue
        (folder / example.name).write_text(example.read_text())
        places[example.name] = (example, 0)
    return places


def mypy(folder: Path) -> list[tuple[str, int, str]]:
    """What mypy has to say: file, line and sentence."""
    command = [sys.executable, *UNTYPED, "--explicit-package-bases", "."]
    said = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if said.stderr:
        sys.exit(said.stderr)
    found = re.findall(r"^(\w+\.py):(\d+): error: (.*)$", said.stdout, re.M)
    return [(file, int(line), f"mypy: {text}") for file, line, text in found]


def pyright(folder: Path) -> list[tuple[str, int, str]]:
    """What pyright has to say."""
    environment = Path(sys.prefix)
    (folder / "pyrightconfig.json").write_text(
        json.dumps(
            {
                "typeCheckingMode": "strict",
                "venvPath": str(environment.parent),
                "venv": environment.name,
                "reportMissingTypeStubs": False,
                "reportMissingModuleSource": False,
            }
        )
    )
    command = [sys.executable, "-m", "pyright", "--outputjson"]
    said = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return [
        (
            Path(found["file"]).name,
            found["range"]["start"]["line"] + 1,
            f"pyright: {found['message']}",
        )
        for found in json.loads(said.stdout)["generalDiagnostics"]
    ]


def main() -> None:
    """Check everything; the status is 1 if anything was found."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        places = written(folder)
        found = mypy(folder) + pyright(folder)
    for file, line, text in sorted(found):
        document, offset = places[file]
        print(f"{document.relative_to(ROOT)}:{offset + line}: {text}")
    if found:
        sys.exit(1)


if __name__ == "__main__":
    main()
