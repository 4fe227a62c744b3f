"""Which interpreters the lab runs on: named or found, and what each of them is."""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from lab import chosen
from pythons import Python, pythons

from ungil import interpreters
from ungil.errors import UsageError
from ungil.interpreters import choose


def script(folder: Path, name: str, text: str) -> Path:
    """An executable file."""
    path = folder / name
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("python", pythons(), ids=str)
def test_an_interpreter_says_what_it_is(python: Python) -> None:
    found = chosen(python.path)
    assert found.number == python.version
    assert found.implementation == "CPython"
    assert found.name == found.short
    assert found.short.startswith("{}.{}".format(*python.version))
    assert (found.not_scheduled is None) is (python.version >= (3, 7) and not found.free_threaded)


def test_a_wrapper_stands_for_the_interpreter_that_it_starts(tmp_path: Path) -> None:
    wrapper = script(tmp_path, "wrapper", f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    assert chosen(str(wrapper)).path == sys.executable


def test_one_that_is_named_twice_runs_once(tmp_path: Path) -> None:
    link = tmp_path / "mypython"
    link.symlink_to(sys.executable)
    assert len(choose([sys.executable, str(link)])) == 1


def test_a_version_names_the_first_interpreter_that_has_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(interpreters, "find_interpreters", lambda: [Path(sys.executable)])
    short = chosen().short
    assert [found.path for found in choose([short])] == [sys.executable]


def test_where_two_have_a_version_their_paths_tell_them_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    describe: Callable[[str], interpreters.Interpreter] = interpreters.describe

    def described(path: str) -> interpreters.Interpreter:
        found = describe(sys.executable)
        return dataclasses.replace(found, path=path)

    monkeypatch.setattr(interpreters, "describe", described)
    one, other = (str(script(tmp_path, name, "#!/bin/sh\n")) for name in ("one", "other"))
    short = describe(sys.executable).short
    assert [found.name for found in choose([one, other])] == [f"{short} {one}", f"{short} {other}"]


def test_of_those_found_the_first_of_each_version_is_taken_and_broken_ones_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = script(tmp_path, "python3", "#!/bin/sh\necho no library >&2\nexit 127\n")
    again = script(tmp_path, "python", f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    monkeypatch.setattr(
        interpreters, "find_interpreters", lambda: [broken, Path(sys.executable), again]
    )
    assert [found.path for found in choose([])] == [sys.executable]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("#!/bin/sh\necho no library >&2\nexit 127\n", "no library"),
        ("#!/bin/sh\nexit 3\n", "it ends with status 3"),
        (
            '#!/bin/sh\nprintf "what is %s?" "$2" | tr "\\n" " " >&2\nexit 2\n',
            "it ends with status 2",
        ),
        ("#!/bin/sh\necho hello\n", "it answers 'hello'"),
    ],
)
def test_one_that_does_not_start_is_told_with_what_it_says(
    tmp_path: Path, text: str, sentence: str
) -> None:
    path = script(tmp_path, "python3", text)
    with pytest.raises(UsageError, match=f"does not start as a Python: {sentence}"):
        choose([str(path)])


def test_one_that_is_not_there_is_a_mistake() -> None:
    with pytest.raises(UsageError, match="there is no interpreter 'no-such-python'"):
        choose(["no-such-python"])
    with pytest.raises(UsageError, match=r"there is no interpreter '9\.9'"):
        choose(["9.9"])


def test_what_would_change_how_a_python_runs_does_not_reach_a_workload(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from ungil.lab.conditions import STOCK

    for name in ("PYTHONPATH", "PYTHONMALLOC", "UNGIL_POLICY"):
        monkeypatch.setenv(name, "x")
    assert not {"PYTHONPATH", "PYTHONMALLOC", "UNGIL_POLICY"} & STOCK.environment().keys()
    assert "PATH" in STOCK.environment() or "PATH" not in os.environ
