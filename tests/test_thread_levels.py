"""Levels by the names of threads, in programs and interpreters that know nothing of ungil."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest
from pythons import Python, pythons
from suite import PROGRAMS

import ungil
from ungil import _native
from ungil.startup import ungil_thread_levels

STARTUP = Path(ungil.__file__).with_name("startup")
STUB = _native.preload_value(None)
LOW, NORMAL, HIGH = (str(ungil_thread_levels.LEVELS[it]) for it in ("low", "normal", "high"))


def environment(rules: str, *, folders: tuple[Path, ...] = (), **more: str) -> dict[str, str]:
    """As `ungil run --priority` makes it, with further folders on PYTHONPATH."""
    return {
        **os.environ,
        "LD_PRELOAD": STUB,
        "UNGIL_POLICY": "fair",
        "UNGIL_PRIORITY": rules,
        "PYTHONPATH": os.pathsep.join(map(str, (STARTUP, *folders))),
        **more,
    }


def run(python: Python, *words: str, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a program to its end. The timeout is a watchdog."""
    return subprocess.run(
        [python.path, *words], env=env, capture_output=True, text=True, timeout=120, check=False
    )


def both(
    python: Python, tmp_path: Path, *words: str
) -> tuple[subprocess.CompletedProcess[str], subprocess.CompletedProcess[str]]:
    """A run without ungil and one with levels, each with `tmp_path` on PYTHONPATH."""
    bare = run(python, *words, env={**os.environ, "PYTHONPATH": str(tmp_path)})
    return bare, run(python, *words, env=environment("*=low", folders=(tmp_path,)))


@pytest.mark.parametrize("python", pythons(since=(3, 8)), ids=str)
def test_the_first_matching_pattern_gives_a_thread_its_level(python: Python) -> None:
    rules = "MainThread=high\nworker*=low\n*=b=low\nDummy-*=low\nwork*=high\nquick=high\n"
    done = run(python, str(PROGRAMS / "levels.py"), env=environment(rules))
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        f"MainThread {HIGH}",
        f"worker-1 {LOW}",
        f"WORKER-1 {NORMAL}",
        f"a=b {LOW}",
        f"quick {HIGH}",
        f"(nameless) {NORMAL}",
        f"worker_0 {LOW}",
        # A thread that renames itself, in the end to what no pattern matches.
        f"quick {HIGH}",
        f"worker-1 {LOW}",
        f"other {NORMAL}",
        f"Dummy-1 {LOW}",
        # Another thread renamed it.
        f"worker-1 {NORMAL}",
        f"MainThread {HIGH}",
    ]


@pytest.mark.parametrize("python", pythons("3.8", "3.11-debian", "3.13"), ids=str)
def test_a_low_thread_gets_a_fraction_of_the_time(python: Python) -> None:
    # Long quanta, so that the kernel's delays on a busy machine weigh little.
    env = environment("slow=low", UNGIL_QUANTUM="20")
    done = run(python, str(PROGRAMS / "sharing.py"), "200000", env=env)
    assert done.stderr == ""
    usual, slow = map(float, done.stdout.split())
    # A quarter, but for a quantum at either end and a holder that is asked late.
    assert 2 < usual / slow < 6


@pytest.mark.parametrize("python", pythons(), ids=str)
def test_the_programs_own_sitecustomize_runs_and_the_path_is_its_own(
    python: Python, tmp_path: Path
) -> None:
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.was_customized = __file__\n")
    code = "import sys, sitecustomize as it; print(sys.was_customized, it.__name__, sys.path)"
    bare, hooked = both(python, tmp_path, "-B", "-c", code)
    assert str(tmp_path) in bare.stdout
    assert (hooked.stdout, hooked.stderr) == (bare.stdout, bare.stderr)


@pytest.mark.parametrize("python", pythons(), ids=str)
@pytest.mark.parametrize("mistake", ["1 / 0", "import it_does_not_exist", "("])
def test_errors_of_the_programs_own_sitecustomize_are_reported_as_ever(
    python: Python, tmp_path: Path, mistake: str
) -> None:
    (tmp_path / "sitecustomize.py").write_text(mistake)
    bare, hooked = both(python, tmp_path, "-c", "print(1)")
    # 2.7 does not tell of imports.
    assert bool(bare.stderr) is (python.version >= (3, 0) or "import" not in mistake)
    assert (hooked.stdout, hooked.stderr) == (bare.stdout, bare.stderr)


@pytest.mark.parametrize("python", pythons(), ids=str)
def test_a_program_sees_nothing_of_it_in_stacks_and_tracebacks(
    python: Python, tmp_path: Path
) -> None:
    program = str(PROGRAMS / "traced_back.py")
    bare, hooked = both(python, tmp_path, program)
    assert "KeyError" in bare.stderr
    assert "in work" in bare.stderr
    assert (hooked.stdout, hooked.stderr) == (bare.stdout, bare.stderr)


@pytest.mark.parametrize("python", pythons(since=(3, 8)), ids=str)
@pytest.mark.parametrize("missing", ["LD_PRELOAD", "UNGIL_PRIORITY"])
def test_without_the_hook_or_the_rules_nothing_is_imported(python: Python, missing: str) -> None:
    code = "import sys; print('ungil_thread_levels' in sys.modules)"
    env = environment("*=low")
    assert run(python, "-c", code, env=env).stdout == "True\n"
    del env[missing]
    assert run(python, "-c", code, env=env).stdout == "False\n"


@pytest.mark.parametrize("rule", ["worker", "worker=", "=low", "worker=urgent", "worker=LOW"])
def test_a_rule_that_is_none_is_one_sentence_and_the_program_runs(rule: str) -> None:
    code = "import ctypes; print(ctypes.PyDLL(None).ungil_level_v1())"
    done = run(pythons()[-1], "-c", code, env=environment(f"MainThread=high\n{rule}"))
    assert done.stdout == f"{NORMAL}\n"
    assert done.stderr == (
        f"ungil: UNGIL_PRIORITY is ignored: {rule!r} is not "
        "PATTERN=low, PATTERN=normal or PATTERN=high\n"
    )


def test_what_runs_on_other_pythons_is_written_for_them() -> None:
    for file in ("sitecustomize.py", "ungil_thread_levels.py"):
        ast.parse((STARTUP / file).read_text(), feature_version=(3, 7))
    imported = {
        alias.name
        for node in ast.walk(ast.parse((STARTUP / "ungil_thread_levels.py").read_text()))
        if isinstance(node, ast.Import)
        for alias in node.names
    }
    assert imported <= set(sys.stdlib_module_names)
