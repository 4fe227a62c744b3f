"""`ungil doctor`: what works here, and for what does not, the reason and the remedy."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ungil.cli.doctor import machine_checks as checks
from ungil.cli.doctor.check import Status
from ungil.interpreters import find_interpreters

Run = Callable[..., subprocess.CompletedProcess[str]]


def named(outcome: subprocess.CompletedProcess[str], name: str) -> list[dict[str, Any]]:
    return [check for check in json.loads(outcome.stdout)["checks"] if check["name"] == name]


def test_where_tracing_works_the_current_interpreter_is_ok(ungil: Run) -> None:
    outcome = ungil("doctor", sys.executable, "--json")
    assert (outcome.returncode, outcome.stderr) == (0, "")
    assert json.loads(outcome.stdout)["works"] is True
    [interpreter] = named(outcome, "interpreter")
    assert interpreter["status"] == "ok"
    version = ".".join(map(str, sys.version_info[:3]))
    assert interpreter["text"].startswith(f"{sys.executable}: {version}, recorded with ")


def test_the_table_has_a_line_for_each_check(ungil: Run) -> None:
    outcome = ungil("doctor", sys.executable)
    names = {line.split("  ")[1].strip() for line in outcome.stdout.splitlines() if line[0] != " "}
    assert {"platform", "native part", "preload", "LD_PRELOAD", "interpreter"} <= names
    assert "\x1b" not in outcome.stdout


def test_what_is_no_interpreter_fails_with_a_reason(ungil: Run) -> None:
    outcome = ungil("doctor", "/bin/true", "--json")
    assert outcome.returncode == 1
    assert json.loads(outcome.stdout)["works"] is False
    [interpreter] = named(outcome, "interpreter")
    assert interpreter["status"] == "fail"
    assert interpreter["text"] == "/bin/true: no interpreter was seen in it"


def test_a_script_that_starts_an_interpreter_is_as_good_as_one(ungil: Run, tmp_path: Path) -> None:
    script = tmp_path / "wrapper"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    script.chmod(0o755)
    outcome = ungil("doctor", str(script), "--json")
    assert (outcome.returncode, named(outcome, "interpreter")[0]["status"]) == (0, "ok")


def test_an_interpreter_that_is_not_there_is_a_mistake(ungil: Run) -> None:
    outcome = ungil("doctor", "no-such-python")
    assert (outcome.returncode, outcome.stdout) == (2, "")
    assert outcome.stderr == "ungil: there is no interpreter 'no-such-python'\n"


def test_a_preloaded_file_that_does_not_exist_is_a_warning() -> None:
    check = checks.check_foreign_preload("/no/such/library.so libplain.so")
    assert check.status is Status.WARN
    assert check.text == "names files that do not exist: /no/such/library.so"
    assert checks.check_foreign_preload("").status is Status.OK
    assert checks.check_foreign_preload("libm.so.6").status is Status.OK


def test_a_preloaded_name_that_the_loader_does_not_find_is_a_warning() -> None:
    check = checks.check_foreign_preload("libno-such-thing.so")
    assert check.status is Status.WARN
    assert "cannot open shared object file" in check.text


@pytest.mark.parametrize(
    ("system", "libc", "machine", "status"),
    [
        ("Linux", "glibc", "x86_64", Status.OK),
        ("Linux", "glibc", "aarch64", Status.OK),
        ("Linux", "glibc", "riscv64", Status.FAIL),
        ("Linux", "musl", "x86_64", Status.OK),
        ("Linux", "", "x86_64", Status.FAIL),
        ("Darwin", "", "arm64", Status.FAIL),
    ],
)
def test_a_platform_that_cannot_be_traced_fails_with_a_remedy(
    monkeypatch: pytest.MonkeyPatch, system: str, libc: str, machine: str, status: Status
) -> None:
    monkeypatch.setattr("platform.system", lambda: system)
    monkeypatch.setattr("platform.machine", lambda: machine)
    # Python does not know musl.
    known = "" if libc == "musl" else libc
    monkeypatch.setattr("platform.libc_ver", lambda: (known, ""))
    monkeypatch.setattr(checks, "_has_musl", lambda: libc == "musl")
    check = checks.check_platform()
    assert check.status is status
    assert bool(check.advice) is (status is Status.FAIL)


def test_a_machine_that_forbids_reading_a_child_loses_stacks_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(_pid: int, _address: int) -> OSError:
        return PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(checks, "_read_memory", refuse)
    check = checks.check_memory_of_others()
    assert check.status is Status.WARN
    assert check.text == "operation not permitted: long holds have no Python stacks"
    assert check.advice


def test_little_shared_memory_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "ENOUGH_SHARED_MEMORY", 1 << 62)
    assert checks.check_shared_memory().status is Status.WARN
    monkeypatch.setattr(checks, "SHARED_MEMORY", "/no/such/folder")
    assert checks.check_shared_memory().text.startswith("no such file or directory: the buffers")


def test_the_current_interpreter_comes_first_and_none_comes_twice() -> None:
    found = find_interpreters()
    assert found[0] == Path(sys.executable)
    assert len({path.resolve() for path in found}) == len(found)
