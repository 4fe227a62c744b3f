"""`ungil.gil`: a program that asks for its own numbers.

Each test runs a program of its own, because the hook stays in a process once it is installed.
Known truth comes from calls by `ctypes.PyDLL`, which keep the GIL.
"""

import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import ungil
from ungil import _native, gil
from ungil.errors import HookError

PREAMBLE = """
import ctypes, os, sys, threading, time
from ungil import Error, HookError, errors, gil

keep = ctypes.PyDLL(None)           # calls that keep the GIL
assert not gil.installed()
"""


def run(program: str) -> None:
    """Run `program`, which asserts what is to be true. The timeout is a watchdog."""
    source = PREAMBLE + textwrap.dedent(program)
    done = subprocess.run(
        [sys.executable, "-c", source], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""


def test_nothing_can_be_asked_before_it_is_installed() -> None:
    run("""
        for ask in (gil.stats, gil.measure().__enter__):
            try:
                ask()
            except errors.NotInstalled as error:
                assert "call ungil.gil.install() first" in str(error)
                assert isinstance(error, Error)
            else:
                raise AssertionError(ask)
        assert not gil.installed()
    """)


def test_installing_twice_is_installing_once() -> None:
    run("""
        gil.install()
        time.sleep(0)
        holds = gil.stats()[threading.get_ident()].holds
        gil.install()
        assert gil.installed()
        assert gil.stats()[threading.get_ident()].holds == holds == 1
    """)


def test_a_block_that_keeps_the_gil_held_it_all_the_time() -> None:
    run("""
        gil.install()
        with gil.measure() as cost:
            keep.usleep(50_000)
        assert cost.held_ns == cost.wall_ns >= 50_000_000
        assert (cost.waits, cost.waited_ns, cost.holds, cost.forced) == (0, 0, 0, 0)
        assert cost.cpu_ns < cost.wall_ns
    """)


def test_each_release_of_a_block_is_counted_and_the_time_without_the_gil_is_no_hold() -> None:
    run("""
        gil.install()
        with gil.measure() as cost:
            for _ in range(20):
                time.sleep(0.002)
        assert cost.holds == 20
        assert cost.held_ns <= cost.wall_ns - 20 * 2_000_000
        assert (cost.waits, cost.forced) == (0, 0)
    """)


def test_a_wait_behind_a_known_hold_is_that_long() -> None:
    run("""
        sys.setswitchinterval(1000)     # so that the hog is never asked to let go
        gil.install()
        waiter = threading.get_ident()
        read, write = os.pipe()
        hog_cost = None

        def hog():
            global hog_cost
            with gil.measure() as hog_cost:
                keep.write(write, b"x", 1)
                # This thread keeps the GIL, so only a wait that goes on can add to that number.
                before = gil.stats()[waiter].waited_ns
                while gil.stats()[waiter].waited_ns == before:
                    pass
                keep.usleep(100_000)

        thread = threading.Thread(target=hog)
        with gil.measure() as cost:
            thread.start()
            os.read(read, 1)
        assert cost.waits >= 1
        assert 100_000_000 <= cost.waited_ns <= cost.wall_ns - cost.held_ns
        thread.join()
        assert hog_cost.held_ns == hog_cost.wall_ns >= 100_000_000
    """)


def test_forced_releases_are_told_from_voluntary_ones() -> None:
    run("""
        gil.install()
        over = False

        def compete():
            while not over:
                pass

        thread = threading.Thread(target=compete, name="competitor")
        thread.start()
        with gil.measure() as cost:
            while cost.forced < 3:
                pass
        mine, other = (gil.stats()[it] for it in (threading.get_ident(), thread.ident))
        over = True
        thread.join()
        # Each forced release was asked for by the competitor, and followed by a wait.
        assert 3 <= cost.forced and other.drop_requests >= 3
        assert cost.waits >= 3
        assert other.name == "competitor"
        assert mine.name == "MainThread" and mine.tid == os.getpid()
        assert mine.forced >= 3 and other.waits >= 3
    """)


def test_a_cost_is_final_once_its_block_has_ended_or_raised() -> None:
    run("""
        gil.install()
        try:
            with gil.measure() as cost:
                running = cost.wall_ns
                raise KeyError
        except KeyError:
            pass
        final = repr(cost)
        time.sleep(0)
        assert repr(cost) == final
        assert f"wall_ns={cost.wall_ns}" in final and cost.wall_ns > running > 0
    """)


def test_a_thread_that_has_ended_is_not_in_the_numbers() -> None:
    run("""
        gil.install()
        thread = threading.Thread(target=time.sleep, args=(0,))
        thread.start()
        tid = thread.native_id
        thread.join()
        # The kernel's thread may outlive join by a moment.
        while os.path.exists(f"/proc/self/task/{tid}"):
            time.sleep(0)
        assert tid not in {it.tid for it in gil.stats().values()}
    """)


def test_a_forked_child_is_not_counted() -> None:
    run("""
        gil.install()
        child = os.fork()
        if child == 0:
            # os._exit, so that a failure is told from the exit of a whole interpreter.
            refused = False
            try:
                gil.stats()
            except errors.NotInstalled:
                refused = not gil.installed()
            os._exit(0 if refused else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert gil.installed()
    """)


def test_importing_is_harmless_without_the_hook_library(tmp_path: Path) -> None:
    assert Path(_native.hook_path()).name == "libungil_hook.so"
    installed = Path(ungil.__file__).parent
    shutil.copytree(
        installed, tmp_path / "ungil", ignore=shutil.ignore_patterns("libungil_hook.so")
    )
    program = """
        from ungil import HookError, gil
        assert not gil.installed()
        try:
            gil.install()
        except HookError as error:
            print(error)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert done.stdout.startswith("the GIL of this process cannot be recorded: the hook library")
    assert "libungil_hook.so" in done.stdout


def test_a_refusal_of_the_hook_is_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> None:
        raise RuntimeError("this is a free-threaded Python, which has no GIL")

    monkeypatch.setattr(_native, "gil_install", refuse)
    with pytest.raises(HookError, match="cannot be recorded: this is a free-threaded Python"):
        gil.install()
