"""What the tutorials tell a reader to type prints what they say, and the programs are as shown."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from documented import Command, Shell, commands, everything_typed, missing, surroundings

ROOT = Path(__file__).parent.parent
TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.md"))
EXCERPT = re.compile(r"^```py\n(.*?)^```", re.MULTILINE | re.DOTALL)
# Named heaps outlive a tutorial that has failed.
REMOVED = re.compile(r"^\$ ungil heap rm (\S+)", re.MULTILINE)


@pytest.mark.parametrize("tutorial", TUTORIALS, ids=lambda path: path.stem)
def test_a_tutorial_runs_as_printed(tutorial: Path, tmp_path: Path) -> None:
    text = tutorial.read_text(encoding="utf-8")
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    environment = surroundings(Path(sys.executable))
    listed = commands(text)
    assert listed
    try:
        with Shell(tmp_path, environment) as shell:
            for command in listed:
                status, printed = shell.run(command.typed)
                assert (status, missing(command, printed)) == (command.status, []), (
                    f"{tutorial.name}, line {command.line}: $ {command.typed}\n{printed}"
                )
    finally:
        for heap in REMOVED.findall(text):
            words = [sys.executable, "-m", "ungil", "heap", "rm", heap]
            subprocess.run(words, capture_output=True, check=False)


@pytest.mark.parametrize("tutorial", TUTORIALS, ids=lambda path: path.stem)
def test_what_a_tutorial_shows_of_a_program_is_in_an_example(tutorial: Path) -> None:
    programs = [lines(path.read_text()) for path in (ROOT / "examples").glob("*.py")]
    for excerpt in EXCERPT.findall(tutorial.read_text(encoding="utf-8")):
        assert any(lines(excerpt) in program for program in programs), excerpt


def lines(program: str) -> str:
    """Its lines without what surrounds them, so that an excerpt need not be indented."""
    return "\n".join(line.strip() for line in program.splitlines() if line.strip())


DOCUMENT = """\
```console
$ echo 3 files in 4 ms
2 files in 1.5 s
$ echo one &&
> false
one
```
<!-- not run: it never ends -->
```console
$ sleep infinity
```
<!-- compare: b c -->
```console
$ printf 'a b\\nc d'
a b
c
```
<!-- exit: 3 -->
```console
$ sh -c 'exit 3'
```
"""


def test_commands_are_read_with_what_they_print_and_how_they_end() -> None:
    assert commands(DOCUMENT) == [
        Command(2, "echo 3 files in 4 ms", ["2 files in 1.5 s"], [], 0),
        Command(4, "echo one &&\nfalse", ["one"], [], 0),
        Command(14, "printf 'a b\\nc d'", ["a b", "c"], ["b c"], 0),
        Command(20, "sh -c 'exit 3'", [], [], 3),
    ]


README = """\
```
ungil trace app.py    # record it
# a comment alone
```
It needs `pip install waitress`, and `ungil trace` is no command that is typed.
```python
ungil = 1
```
```
a table that is printed
```
<!-- not run: it never ends -->
```console
$ sleep infinity
```
`python examples/one.py` is one.
"""


def test_what_a_reader_types_is_read_from_blocks_without_prompts_and_from_sentences_too() -> None:
    assert [(it.line, it.typed) for it in everything_typed(README)] == [
        (2, "ungil trace app.py    # record it"),
        (5, "pip install waitress"),
        (14, "sleep infinity"),
        (16, "python examples/one.py"),
    ]
    assert commands(README) == []


def test_other_numbers_are_no_difference_and_other_words_are_one() -> None:
    first, _, third, _ = commands(DOCUMENT)
    assert missing(first, "3 files in 4 ms\n") == []
    assert missing(first, "3 folders in 4 ms\n") == ["2 files in 1.5 s"]
    assert missing(third, "a b\nc d\n") == []
    assert missing(third, "a c b\n") == ["b c"]


def test_a_shell_keeps_its_variables_and_tells_the_status_of_each_command(tmp_path: Path) -> None:
    with Shell(tmp_path, surroundings(Path(sys.executable))) as shell:
        assert shell.run("name=value") == (0, "")
        assert shell.run("echo $name; false") == (1, "value\n")
        assert shell.run("printf no-newline") == (0, "no-newline")
