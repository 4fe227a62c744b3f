"""`ungil.gil.watch` and `snapshot`: a program that watches itself.

Each test runs a program of its own, because one process has one watch.
"""

from __future__ import annotations

import textwrap
from pathlib import Path

from suite import run_python
from tracing import compile_library

PREAMBLE = """
import ctypes, json, os, queue, sys, threading, time
from pathlib import Path
from ungil import errors, gil


keeping = ctypes.PyDLL(sys.argv[1])

def stall(milliseconds):
    keeping.hold(milliseconds * 1000, ctypes.byref(began), ctypes.byref(ended))

def answer():
    while True:
        time.sleep(0.0005)

began, ended = ctypes.c_uint64(), ctypes.c_uint64()
threading.Thread(target=answer, name="busy", daemon=True).start()
told = queue.SimpleQueue()
"""


def run(folder: Path, program: str) -> str:
    """Run `program`, which asserts what is to be true; what it said on stderr."""
    source = PREAMBLE + textwrap.dedent(program)
    done = run_python("-c", source, str(compile_library(folder)), cwd=folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    return done.stderr


def test_a_stall_is_told_with_its_holder_and_line(tmp_path: Path) -> None:
    run(
        tmp_path,
        """
        with gil.watch(wait_ms=200, call=told.put):
            for _ in range(2):
                stall(1_000)
                seen = told.get()
                assert (seen.kind, seen.thread, seen.holder) == ("wait", "busy", "MainThread")
                assert 200 < seen.ms and not seen.goes_on, seen
                assert seen.line.startswith("stall (<string>:"), seen
                assert seen.holder_tid == threading.get_native_id() != seen.tid
                assert seen.stalls >= 1
        """,
    )


def test_a_hold_is_told_although_nobody_is_watched_to_wait(tmp_path: Path) -> None:
    run(
        tmp_path,
        """
        with gil.watch(wait_ms=None, call=told.put, hold_ms=300):
            stall(1_000)
            seen = told.get()
            assert (seen.kind, seen.thread, seen.holder) == ("hold", "MainThread", "MainThread")
        """,
    )


def test_a_snapshot_is_written_where_it_shall_be_and_is_the_programs_own(tmp_path: Path) -> None:
    run(
        tmp_path,
        """
        from ungil import _native

        with gil.watch(call=None):
            stall(100)
            first, second = gil.snapshot(), gil.snapshot()
            names = [it.name for it in (first, second)]
            assert names == ["ungil--c-1.pftrace", "ungil--c-2.pftrace"]
            own = gil.snapshot("own.pftrace")
            assert own == Path("own.pftrace").absolute()
            (process,) = json.loads(_native.read_trace(str(own), 20.0))["processes"]
            assert process["pid"] == os.getpid()
            held = {it["name"]: it["held_s"] for it in process["gils"][0]["threads"]}
            assert held["MainThread"] >= 0.1
            try:
                gil.snapshot("own.pftrace")
            except FileExistsError:
                pass
            else:
                raise AssertionError
            try:
                gil.snapshot("nowhere/own.pftrace")
            except OSError as error:
                assert "no such file" in str(error)
            else:
                raise AssertionError
        """,
    )


def test_without_a_watch_there_is_nothing_to_write_and_two_at_once_are_refused(
    tmp_path: Path,
) -> None:
    run(
        tmp_path,
        """
        def kept():
            try:
                gil.snapshot("x.pftrace")
            except errors.NotInstalled as error:
                assert "call ungil.gil.watch()" in str(error)
                return False
            return True

        assert not kept()
        watch = gil.watch()
        try:
            gil.watch()
        except RuntimeError as error:
            assert "watched already" in str(error)
        else:
            raise AssertionError
        assert kept()
        watch.stop()
        watch.stop()
        os.remove("x.pftrace")
        assert not kept()
        with gil.watch():
            assert kept()
        for wrong in ({"wait_ms": 0}, {"hold_ms": -1}, {"last_s": float("nan")}):
            try:
                gil.watch(**wrong)
            except ValueError as error:
                assert "above zero" in str(error)
            else:
                raise AssertionError(wrong)
        """,
    )


def test_a_forked_child_is_not_watched_and_leaves_the_watch_alone(tmp_path: Path) -> None:
    run(
        tmp_path,
        """
        with gil.watch(wait_ms=200, call=told.put) as watch:
            child = os.fork()
            if child == 0:
                try:
                    gil.snapshot()
                except errors.NotInstalled:
                    watch.stop()
                    with gil.watch():
                        gil.snapshot("child.pftrace")
                    # As a program ends, with what it has.
                    sys.exit(0)
                os._exit(1)
            assert os.waitpid(child, 0)[1] == 0
            stall(1_000)
            assert told.get().holder == "MainThread"
            gil.snapshot("parent.pftrace")
        """,
    )
    assert (tmp_path / "child.pftrace").exists()
    assert (tmp_path / "parent.pftrace").exists()


def test_what_the_function_raises_is_said_and_the_next_stall_is_told(tmp_path: Path) -> None:
    said = run(
        tmp_path,
        """
        def call(seen):
            told.put(seen)
            raise LookupError("no pager")

        gil.watch(wait_ms=200, call=call)
        for _ in range(2):
            stall(1_000)
            told.get()
        # The watch ends with the program.
        """,
    )
    assert said.count("LookupError: no pager") == 2
