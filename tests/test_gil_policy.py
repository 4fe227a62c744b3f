"""Scheduling from inside a program: `ungil.gil`, and UNGIL_POLICY without `ungil run`.

Each test runs a program of its own, because the hook stays in a process once it is installed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import textwrap
from pathlib import Path

import pytest
from pythons import Python, pythons
from stubs import copied
from suite import PROGRAMS

from ungil import _native

HOOK = _native.hook_path()
PREAMBLE = """
import os, sys, threading, time
from ungil import errors, gil

def refused(kind, call, *arguments, **options):
    try:
        call(*arguments, **options)
    except kind as error:
        return str(error)
    raise AssertionError((call, arguments, options))

def hooks_in_the_process():
    with open("/proc/self/maps") as maps:
        return {line.split()[-1] for line in maps if "libungil_hook" in line}
"""


def run(program: str, **variables: str) -> str:
    """Run `program`, which asserts what is to be true, and return its stderr."""
    source = PREAMBLE + textwrap.dedent(program)
    environment = {name: it for name, it in os.environ.items() if not name.startswith("UNGIL_")}
    done = subprocess.run(
        [sys.executable, "-c", source],
        env={**environment, **variables},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    return done.stderr


def test_without_the_hook_the_error_names_both_ways_to_it() -> None:
    run("""
        for call, *arguments in (
            (gil.policy,), (gil.set_policy, "fair"), (gil.priority, "low"), (gil.level,)
        ):
            message = refused(errors.NotInstalled, call, *arguments)
            assert "`ungil run`" in message and "ungil.gil.install()" in message
    """)


def test_a_policy_is_changed_at_once_and_read_back() -> None:
    run("""
        gil.install()
        assert gil.policy() == gil.Policy("stock", None)
        for options, policy in (
            ({"name": "interactive"}, gil.Policy("interactive", 5)),
            ({"name": "fair", "quantum_ms": 0.5}, gil.Policy("fair", 0.5)),
            ({"quantum_ms": 2}, gil.Policy("fair", 2)),
            ({"name": "batch"}, gil.Policy("batch", 100)),
            ({"name": "stock"}, gil.Policy("stock", None)),
        ):
            before = gil.policy()
            change = gil.set_policy(**options)
            assert (change.before, change.policy) == (before, policy)
            assert gil.policy() == policy
    """)


def test_the_end_of_a_block_restores_the_policy_and_its_quantum() -> None:
    run("""
        gil.install()
        gil.set_policy("fair", quantum_ms=3)
        try:
            with gil.set_policy("batch") as outer:
                assert (outer.before, outer.policy) == (gil.Policy("fair", 3), gil.policy())
                with gil.set_policy("stock"):
                    assert gil.policy() == gil.Policy("stock", None)
                assert gil.policy() == gil.Policy("batch", 100)
                raise KeyError
        except KeyError:
            pass
        assert gil.policy() == gil.Policy("fair", 3)
    """)


def test_what_there_is_not_is_a_value_error_that_changes_nothing() -> None:
    run("""
        gil.install()
        before = gil.set_policy("fair").policy
        message = refused(ValueError, gil.set_policy, "fifo")
        assert all(name in message for name in ("fifo", "stock", "interactive", "fair", "batch"))
        for quantum in (0, -1, float("nan"), float("inf")):
            message = refused(ValueError, gil.set_policy, "batch", quantum_ms=quantum)
            assert "milliseconds" in message
        assert "setswitchinterval" in refused(ValueError, gil.set_policy, "stock", quantum_ms=1)
        assert "needs the name of a policy" in refused(TypeError, gil.set_policy)
        message = refused(ValueError, gil.priority, "urgent")
        assert all(name in message for name in ("urgent", "low", "normal", "high"))
        assert gil.policy() == before and gil.level() == "normal"
    """)


def test_a_level_is_the_threads_own_and_a_block_restores_it() -> None:
    run("""
        gil.install()
        assert gil.level() == "normal"
        gil.priority("low")
        assert gil.level() == "low"
        try:
            with gil.priority("high") as outer:
                assert (gil.level(), outer.level, outer.before) == ("high", "high", "low")
                with gil.priority("normal"):
                    assert gil.level() == "normal"
                assert gil.level() == "high"
                others = []
                thread = threading.Thread(target=lambda: others.append(gil.level()))
                thread.start()
                thread.join()
                raise KeyError
        except KeyError:
            pass
        assert gil.level() == "low" and others == ["normal"]
    """)


def test_only_the_thread_itself_restores_its_level() -> None:
    stderr = run("""
        gil.install()
        given = gil.priority("high")
        thread = threading.Thread(
            target=lambda: refused(RuntimeError, given.__exit__, None, None, None)
            and sys.stderr.write(gil.level())
        )
        thread.start()
        thread.join()
        assert gil.level() == "high"
    """)
    assert stderr == "normal"


def test_under_fair_a_low_thread_has_the_gil_a_fraction_of_the_time() -> None:
    run("""
        gil.install()
        gil.set_policy("fair", quantum_ms=20)
        done = dict.fromkeys(("normal", "low"), 0)
        held = {}
        both = threading.Barrier(2)

        def work(level):
            gil.priority(level)
            both.wait()
            with gil.measure() as cost:
                while sum(done.values()) < 200_000:
                    for _ in range(1000):
                        pass
                    done[level] += 1
            held[level] = cost.cpu_ns

        threads = [threading.Thread(target=work, args=(level,)) for level in done]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        # A quarter, but for a quantum at either end and a holder that is asked late.
        assert 2 < held["normal"] / held["low"] < 6, held
    """)


@pytest.mark.parametrize("python", pythons(since=(3, 8)), ids=str)
def test_threads_that_already_run_and_wait_go_on_under_every_policy(python: Python) -> None:
    program = str(PROGRAMS / "installed_late.py")
    done = subprocess.run(
        [python.path, program, HOOK], capture_output=True, text=True, timeout=240, check=False
    )
    assert (done.stdout, done.stderr) == ("4\n", "")


def test_a_program_with_the_hook_preloaded_needs_no_install() -> None:
    run(
        """
        assert gil.policy() == gil.Policy("batch", 7)
        assert not gil.installed()          # It is scheduled, not counted.
        assert "ungil.startup" not in sys.modules
        refused(errors.NotInstalled, gil.stats)
        gil.set_policy("fair")
        gil.install()
        assert gil.policy().name == "fair" and gil.installed() and gil.stats()
        """,
        LD_PRELOAD=_native.preload_value(None),
        UNGIL_POLICY="batch",
        UNGIL_QUANTUM="7",
    )


def test_a_hook_that_was_preloaded_from_elsewhere_stays_the_only_one(tmp_path: Path) -> None:
    preloaded = copied(tmp_path)
    run(
        f"""
        assert gil.policy() == gil.Policy("batch", 100)
        gil.install()
        assert hooks_in_the_process() == {{{str(tmp_path / Path(HOOK).name)!r}}}
        """,
        LD_PRELOAD=preloaded,
        UNGIL_POLICY="batch",
    )


def test_variables_for_a_preloaded_hook_do_not_mislead_one_that_is_installed() -> None:
    run(
        """
        gil.install()
        time.sleep(0)
        assert gil.stats()[threading.get_ident()].holds == 1
        """,
        UNGIL_SESSION="/nonexistent",
    )


def test_a_forked_child_goes_on_under_the_policy() -> None:
    run("""
        gil.install()
        gil.set_policy("batch")
        gil.priority("low")
        child = os.fork()
        if child == 0:
            # os._exit, so that a failure is told from the exit of a whole interpreter.
            same = gil.policy().name == "batch" and gil.level() == "low"
            gil.set_policy("fair")
            os._exit(0 if same else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert gil.policy().name == "batch"
    """)


def test_the_variable_alone_schedules_a_program() -> None:
    # What reads it has been installed beside the package.
    assert Path(sysconfig.get_path("purelib"), "ungil_policy.pth").exists()
    run(
        """
        assert gil.policy() == gil.Policy("interactive", 2)
        assert gil.level() == "high"
        assert "threading" in sys.modules
        """,
        UNGIL_POLICY="interactive",
        UNGIL_QUANTUM="2",
        UNGIL_PRIORITY="Main*=high",
    )


@pytest.mark.parametrize("children", ["0", "1"])
def test_the_variable_reaches_children_unless_they_are_to_be_left_alone(children: str) -> None:
    run(
        f"""
        import subprocess
        code = "from ungil import gil; print(gil.policy().name)"
        child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert gil.policy().name == "fair"
        if {children} == 0:
            assert "NotInstalled" in child.stderr
        else:
            assert child.stdout == "fair\\n"
        """,
        UNGIL_POLICY="fair",
        UNGIL_CHILDREN=children,
    )


def test_without_the_variable_nothing_of_ungil_is_imported() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import sys; print([it for it in sys.modules if 'ungil' in it])"],
        env={name: it for name, it in os.environ.items() if not name.startswith("UNGIL_")},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert (done.stdout, done.stderr) == ("[]\n", "")


@pytest.mark.parametrize("words", [["-m", "ungil"], [str(Path(sys.executable).with_name("ungil"))]])
def test_the_command_line_passes_the_variable_on_and_is_not_scheduled_itself(
    words: list[str],
) -> None:
    done = subprocess.run(
        [sys.executable, *words, "--version"],
        env={**os.environ, "UNGIL_POLICY": "fifo"},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert _native.__version__ in done.stdout
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("variables", "sentence"),
    [
        ({"UNGIL_POLICY": "fifo"}, 'unknown policy "fifo"'),
        ({"UNGIL_POLICY": "fair", "UNGIL_QUANTUM": "soon"}, "not 'soon'"),
        ({"UNGIL_POLICY": "fair", "UNGIL_QUANTUM": "-1"}, "not -1"),
        ({"UNGIL_POLICY": "stock", "UNGIL_QUANTUM": "1"}, "sys.setswitchinterval()"),
    ],
)
def test_a_variable_without_sense_is_one_sentence_and_the_program_runs_unscheduled(
    variables: dict[str, str], sentence: str
) -> None:
    stderr = run("refused(errors.NotInstalled, gil.policy)", **variables)
    assert stderr.startswith("ungil: UNGIL_POLICY is ignored: ")
    assert sentence in stderr
    assert stderr.count("\n") == 1
