"""The counters of a process: never falling, by groups of threads, with those that have ended."""

from __future__ import annotations

import json
import textwrap

import pytest
from suite import PROGRAMS, run_python

PREAMBLE = """
import ctypes, os, sys, threading, time
from ungil import gil
from ungil.metrics._process import ProcessCounters
keep = ctypes.PyDLL(None)           # calls that keep the GIL

def of(counters):
    return {it.threads: it for it in counters.read()}
"""


def run(program: str) -> None:
    """Run `program`, which asserts what is to be true."""
    done = run_python("-W", "error", "-c", PREAMBLE + textwrap.dedent(program))
    assert (done.returncode, done.stderr) == (0, "")


def test_no_counter_falls_when_threads_end_or_change_their_group() -> None:
    done = run_python(PROGRAMS / "metrics_never_fall.py")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["fell"] == []
    # Each group of threads has done something, and together they are the process.
    for field in ("holds", "held_ns", "voluntary"):
        assert all(group[field] > 0 for group in told["groups"].values()), told["groups"]
    before, after = told["process"]
    for field in before:
        parts = sum(group[field] for group in told["groups"].values())
        assert before[field] <= parts <= after[field], field


def test_a_thread_is_in_its_group_however_short_its_life_is() -> None:
    run("""
        counters = ProcessCounters({"brief": "brief-*"})
        for number in range(10):
            thread = threading.Thread(target=keep.usleep, args=(2_000,), name=f"brief-{number}")
            thread.start()
            thread.join()
        # The kernel's thread may outlive join by a moment.
        while of(counters)["brief"].running:
            time.sleep(0)
        brief = of(counters)["brief"]
        assert brief.holds >= 10 and brief.held_ns >= 20_000_000, brief
    """)


def test_a_thread_that_threading_has_forgotten_stays_in_its_group_until_it_ends() -> None:
    run("""
        counters = ProcessCounters({"workers": "worker"})
        reached, go_on = threading.Semaphore(0), threading.Semaphore(0)

        class Forgotten(threading.Thread):
            def _bootstrap_inner(self):
                super()._bootstrap_inner()
                # Now it is not enumerated any more.
                keep.usleep(10_000)
                reached.release()
                go_on.acquire()

        Forgotten(target=int, name="worker").start()
        reached.acquire()
        seen = of(counters)
        go_on.release()
        assert (seen["workers"].running, seen["other"].running) == (1, 1), seen
        assert seen["workers"].held_ns >= 10_000_000, seen
    """)


def test_a_thread_that_is_renamed_counts_in_its_new_group_from_then_on() -> None:
    run("""
        counters = ProcessCounters({"first": "first", "second": "second"})
        reached, go_on = threading.Semaphore(0), threading.Semaphore(0)

        def work():
            keep.usleep(30_000)
            reached.release()
            go_on.acquire()
            keep.usleep(20_000)
            reached.release()
            go_on.acquire()

        thread = threading.Thread(target=work, name="first")
        thread.start()
        reached.acquire()
        before = of(counters)
        assert before["first"].held_ns >= 30_000_000 and before["second"].held_ns == 0
        thread.name = "second"
        assert of(counters)["first"].held_ns == before["first"].held_ns
        go_on.release()
        reached.acquire()
        after = of(counters)
        go_on.release()
        thread.join()
        assert after["first"].held_ns == before["first"].held_ns
        assert 20_000_000 <= after["second"].held_ns
        assert (after["first"].running, after["second"].running) == (0, 1)
    """)


def test_a_thread_that_waits_is_told_while_it_waits() -> None:
    run("""
        sys.setswitchinterval(1000)     # so that nobody is asked to let go
        counters = ProcessCounters({"victim": "victim"})
        read, write = os.pipe()
        thread = threading.Thread(target=os.read, args=(read, 1), name="victim")
        thread.start()
        keep.usleep(1)
        while of(counters)["victim"].holds < 1:
            time.sleep(0)
        keep.write(write, b"x", 1)
        # This thread keeps the GIL from now on.
        while not of(counters)["victim"].waiting:
            pass
        first = of(counters)["victim"].waited_ns
        keep.usleep(20_000)
        assert of(counters)["victim"].waited_ns >= first + 20_000_000
        assert of(counters)["other"].waiting == 0
        thread.join()
    """)


def test_a_forked_child_counts_itself_anew() -> None:
    run("""
        counters = ProcessCounters(None)
        for _ in range(500):
            time.sleep(0)
        assert of(counters)["main"].holds >= 500
        child = os.fork()
        if child == 0:
            status = 1
            try:
                fresh = of(counters)["main"]
                keep.usleep(5_000)
                later = of(counters)["main"]
                if fresh.holds < 500 and later.held_ns >= fresh.held_ns + 5_000_000:
                    status = 0
            finally:
                os._exit(status)
        assert os.waitpid(child, 0)[1] == 0
    """)


@pytest.mark.parametrize(
    ("threads", "sentence"),
    [
        (
            {f"group{it}": "x" for it in range(9)},
            "threads has 9 groups, but at most 8 are possible",
        ),
        ({"other": "x"}, "threads names a group 'other', which is the group of all other threads"),
    ],
)
def test_impossible_groups_are_refused(threads: dict[str, str], sentence: str) -> None:
    run(f"""
        from ungil.errors import UsageError
        try:
            ProcessCounters({threads!r})
        except UsageError as error:
            assert str(error) == {sentence!r}, error
        else:
            raise AssertionError
    """)


def test_a_process_has_one_set_of_groups() -> None:
    run("""
        from ungil.errors import UsageError
        ProcessCounters({"a": "a*"})
        ProcessCounters({"a": "a*"})
        try:
            ProcessCounters({"b": "b*"})
        except UsageError as error:
            assert "are grouped as {'a': 'a*'} already" in str(error)
        else:
            raise AssertionError
    """)


@pytest.mark.parametrize(
    ("module", "package", "extra"),
    [
        ("prometheus", "prometheus_client", "ungil[prometheus]"),
        ("opentelemetry", "opentelemetry", "ungil[otel]"),
    ],
)
def test_a_missing_package_is_one_sentence(module: str, package: str, extra: str) -> None:
    run(f"""
        import ungil.metrics.wsgi, ungil.metrics.asgi
        sys.modules[{package!r}] = None
        try:
            import ungil.metrics.{module}
        except ModuleNotFoundError as error:
            assert str(error).endswith("pip install '{extra}'"), error
        else:
            raise AssertionError
    """)
