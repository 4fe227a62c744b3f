"""No command writes over what it reads, nor over the program that it starts."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]

PROGRAM = "print('it ran')\n"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    trace = tmp_path_factory.mktemp("recorded") / "t.pftrace"
    command = [sys.executable, "-m", "ungil", "trace", "-q", "-o", str(trace), "-c", "pass"]
    subprocess.run(command, check=True)
    return trace


@pytest.fixture
def trace(recorded: Path, tmp_path: Path) -> Path:
    """A trace with a soft and a hard link to it, and another one."""
    for name in ("t.pftrace", "other.pftrace"):
        shutil.copy(recorded, tmp_path / name)
    (tmp_path / "soft").symlink_to("t.pftrace")
    os.link(tmp_path / "t.pftrace", tmp_path / "hard")
    return tmp_path / "t.pftrace"


def refuse(ungil: Run, folder: Path, sentence: str, *words: str) -> None:
    """`ungil WORDS` must say `sentence` and leave everything in `folder` as it is."""

    def everything() -> dict[str, bytes]:
        found = (path for path in folder.rglob("*") if path.is_file())
        return {str(path): path.read_bytes() for path in found}

    before = everything()
    outcome = ungil(*words)
    assert (outcome.returncode, outcome.stderr) == (2, f"ungil: {sentence}\n")
    assert outcome.stdout == ""
    assert everything() == before


@pytest.mark.parametrize("output", ["t.pftrace", "./t.pftrace", "soft", "hard"])
@pytest.mark.parametrize("name", ["firefox", "speedscope", "collapsed", "sqlite"])
def test_an_export_never_replaces_its_trace(
    ungil: Run, tmp_path: Path, trace: Path, name: str, output: str
) -> None:
    sentence = f"cannot write {output!r}: that is the trace; name another file"
    refuse(ungil, tmp_path, sentence, "export", trace.name, "--format", name, "-o", output)


def test_a_page_never_replaces_a_trace(ungil: Run, tmp_path: Path, trace: Path) -> None:
    sentence = "cannot write 'hard': that is the trace; name another file"
    refuse(ungil, tmp_path, sentence, "report", trace.name, "--html", "hard")
    for page in ("soft", "other.pftrace"):
        sentence = f"cannot write {page!r}: that is a trace that is compared; name another file"
        refuse(ungil, tmp_path, sentence, "diff", trace.name, "other.pftrace", "--html", page)


@pytest.mark.parametrize("program", [["app.py"], ["-m", "app"], ["-mapp"], ["python", "app.py"]])
@pytest.mark.parametrize("option", ["--json", "--html", "-fo"])
def test_a_recording_never_replaces_its_program(
    ungil: Run, tmp_path: Path, option: str, program: list[str]
) -> None:
    (tmp_path / "app.py").write_text(PROGRAM)
    sentence = "cannot write 'app.py': that is the program; name another file"
    refuse(ungil, tmp_path, sentence, "trace", option, "app.py", *program)


@pytest.mark.parametrize("program", [["package"], ["-m", "package"], ["-m", "package.__main__"]])
def test_a_package_is_its_main_program(ungil: Run, tmp_path: Path, program: list[str]) -> None:
    main = tmp_path / "package" / "__main__.py"
    main.parent.mkdir()
    main.write_text(PROGRAM)
    (main.parent / "__init__.py").touch()
    sentence = "cannot write 'package/__main__.py': that is the program; name another file"
    refuse(ungil, tmp_path, sentence, "trace", "--json", "package/__main__.py", *program)


@pytest.mark.parametrize("option", ["--json", "-o"])
def test_a_check_never_replaces_its_program(ungil: Run, tmp_path: Path, option: str) -> None:
    (tmp_path / "app.py").write_text(PROGRAM)
    sentence = "cannot write 'app.py': that is the program; name another file"
    refuse(ungil, tmp_path, sentence, "check", "--max-hold", "9s", option, "app.py", "app.py")


def test_a_journal_is_not_the_list_of_hosts(ungil: Run, tmp_path: Path) -> None:
    (tmp_path / "hosts").write_text("sw1")
    sentence = "cannot write 'hosts': that is the file with the hosts; name another file"
    refuse(
        ungil,
        tmp_path,
        sentence,
        *("fanout", "--hosts", "hosts", "--journal", "hosts", "--", "echo", "{host}"),
    )


def test_a_device_can_be_named_twice(ungil: Run) -> None:
    outcome = ungil("trace", "-q", "--json", "/dev/null", "-c", "1", "/dev/null")
    assert (outcome.returncode, outcome.stderr) == (0, "")


def test_a_trace_without_a_name_leaves_that_of_the_page_free(ungil: Run, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(PROGRAM)
    assert ungil("trace", "-q", "--html", "ungil-app.pftrace", "app.py").returncode == 0
    assert (tmp_path / "ungil-app.pftrace").read_bytes().startswith(b"<!DOCTYPE html>")
    assert ungil("report", "ungil-app-2.pftrace").returncode == 0


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ("-o", "x", "--json", "./x"),
            "the trace and the JSON cannot both be written to './x'",
        ),
        (
            ("--html", "x", "--json", "x"),
            "the page and the JSON cannot both be written to 'x'",
        ),
        (
            ("--html", "-", "--json", "-"),
            "the page and the JSON cannot both be written to '-'",
        ),
    ],
)
def test_two_outputs_are_two_files(
    ungil: Run, tmp_path: Path, words: tuple[str, ...], sentence: str
) -> None:
    refuse(ungil, tmp_path, sentence, "trace", *words, "-c", "1/0")
