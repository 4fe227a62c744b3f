"""The hook library is a guest in every program that a traced one starts, Python or not."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from pythons import Python, pythons

from ungil import _native

HOOK = _native.hook_path()
STUB = _native.preload_value(None)
EXPORTS = {
    # To notice an interpreter that is loaded later.
    "pthread_condattr_setclock",
    "sem_init",
    # To notice the first thread.
    "pthread_create",
    "thrd_create",
    # So that nothing inherits how the kernel runs the thread that starts it.
    "execv",
    "execve",
    "popen",
    "posix_spawn",
    "posix_spawnp",
    "system",
    "vfork",
    "ungil_attach_v1",
    "ungil_install_v1",
    "ungil_level_v1",
    "ungil_now_v1",
    "ungil_policy_v1",
    "ungil_request_v1",
    "ungil_set_level_v1",
    "ungil_set_policy_v1",
    "ungil_slot_v1",
    "ungil_table_v1",
}
# What every dynamically linked program has. musl's loader takes these names for its own library.
LIBRARIES = {"libc.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1", "libm.so.6"}


def symbols(*options: str) -> set[str]:
    """Names in the dynamic symbol table, without versions."""
    return {line.split()[0].split("@")[0] for line in named(HOOK, *options)}


def named(library: str | Path, *options: str) -> list[str]:
    """The lines of a dynamic symbol table: a name, with its version, and a letter."""
    command = ["nm", "-D", "--format=posix", *options, library]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def test_it_exports_its_functions_and_nothing_else() -> None:
    assert symbols("--defined-only") == EXPORTS


def test_it_needs_no_python() -> None:
    undefined = symbols("--undefined-only")
    assert "pthread_cond_timedwait" in undefined
    assert not [it for it in undefined if it.lstrip("_").startswith("Py")]


def test_it_needs_no_library_that_a_program_does_not_have_anyway() -> None:
    listed = subprocess.run(
        ["readelf", "--dynamic", "--wide", HOOK], capture_output=True, text=True, check=True
    ).stdout
    needed = {line.split("[")[1].rstrip("]") for line in listed.splitlines() if "(NEEDED)" in line}
    assert "libc.so.6" in needed
    assert needed <= LIBRARIES


def test_it_calls_nothing_that_musl_has_not() -> None:
    required = {
        line.split()[0].split("@")[0]
        for line in named(HOOK, "--undefined-only")
        if line.split()[1] == "U"
    }
    library = Path("/usr/lib/x86_64-linux-musl/libc.so")
    assert "pthread_cond_timedwait" in required
    there = {line.split()[0] for line in named(library, "--defined-only")}
    # Since 1.2.4 its loader alone knows glibc's names for long files.
    assert {it for it in required if it.removesuffix("64") not in there} <= there


@pytest.mark.parametrize("session", [None, "", "/nonexistent", "x" * 5000])
@pytest.mark.parametrize(
    "words",
    [["true"], ["env"], ["sh", "-c", "exit 0"], ["sh", "-c", "env true | cat"], ["ls", "/"]],
    ids=" ".join,
)
def test_other_programs_do_not_notice_it(words: list[str], session: str | None) -> None:
    program = shutil.which(words[0])
    assert program is not None
    without = {"PATH": os.environ["PATH"], "LC_ALL": "C"}
    if session is not None:
        without["UNGIL_SESSION"] = session
    with_it = {**without, "LD_PRELOAD": STUB}
    bare, hooked = (
        subprocess.run([program, *words[1:]], env=it, capture_output=True, text=True, check=True)
        for it in (without, with_it)
    )
    assert hooked.stderr == ""
    # `env` prints its environment.
    assert hooked.stdout.replace(f"LD_PRELOAD={STUB}\n", "") == bare.stdout


@pytest.mark.parametrize("python", pythons(), ids=str)
@pytest.mark.parametrize("session", [None, "", "/nonexistent", "x" * 5000])
def test_a_python_that_nobody_records_does_not_notice_it(
    python: Python, session: str | None
) -> None:
    code = "import threading; it = threading.Thread(target=int); it.start(); it.join(); print(1)"
    environment = {**os.environ, "LD_PRELOAD": STUB}
    if session is not None:
        environment["UNGIL_SESSION"] = session
    done = subprocess.run(
        [python.path, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("1\n", "")


def test_it_leaves_nothing_in_a_session_of_a_program_that_is_no_python(tmp_path: Path) -> None:
    environment = {**os.environ, "LD_PRELOAD": STUB, "UNGIL_SESSION": str(tmp_path)}
    subprocess.run(["true"], env=environment, check=True)
    assert not list(tmp_path.iterdir())
    # And in one of a Python it does, so that the above means something.
    subprocess.run([sys.executable, "-c", ""], env=environment, check=True)
    assert len(list(tmp_path.iterdir())) == 1
