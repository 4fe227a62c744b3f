"""Functions, inputs and networks that misbehave: every item has an outcome, nothing hangs."""

# pyright: basic, reportArgumentType=false, reportAttributeAccessIssue=false
# (others' libraries have no types, and much here is wrong on purpose)

from __future__ import annotations

import asyncio
import itertools
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
import ssh_hosts
from ssh_hosts import SshHosts
from suite import PATIENCE_S, PROGRAMS

from ungil.fanout import Fanout, fanout

MODES = ("lean", "asyncio", "threads", "green")


def program(*words: str, status: int = 0) -> str:
    """What a program prints that ends with this status and complains of nothing."""
    ended = subprocess.run(
        [sys.executable, "-W", "error", *words],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
        cwd=Path(__file__).parent,
        # A name server that does not answer is asked once, for a second.
        env=os.environ | {"RES_OPTIONS": "timeout:1 attempts:1"},
    )
    assert (ended.stderr, ended.returncode) == ("", status)
    return ended.stdout


def in_mode(mode: str, code: str, status: int = 0) -> str:
    """Runs code after what the mode needs to come first."""
    first = "from gevent import monkey; monkey.patch_all()\n" if mode == "green" else ""
    return program("-c", f"{first}MODE = {mode!r}\n{code}", status=status)


def definition(mode: str) -> str:
    """How a function for this mode is defined."""
    return "async def" if mode in ("lean", "asyncio") else "def"


# Functions.


@pytest.mark.parametrize("mode", MODES)
def test_whatever_a_function_does_is_its_own_outcome_and_the_others_are_fine(mode: str) -> None:
    lines = [json.loads(line) for line in program("misbehaving.py", mode).splitlines()]
    cleaned_up = [line for line in lines if line == ["cleaned up"]]
    assert len(cleaned_up) == (mode in ("lean", "asyncio"))
    outcomes = [line for line in lines if line != ["cleaned up"]]
    assert outcomes[1::2] == [["fine", "value", "str"]] * (len(outcomes) // 2)
    seen = {deed: rest for deed, *rest in outcomes[::2]}
    if mode in ("threads", "green"):
        assert seen.pop("fanout") == ["value", "list"]
        stop_iteration = "StopIteration"
    else:
        stop_iteration = "RuntimeError"  # A coroutine cannot raise it, says Python.
    if mode == "green":
        assert seen.pop("GreenletExit") == ["exception", "GreenletExit", False]
    assert seen == {
        "ValueError": ["exception", "ValueError", False],
        "BaseException": ["exception", "NotEvenAnError", False],
        "SystemExit": ["exception", "SystemExit", False],
        "GeneratorExit": ["exception", "GeneratorExit", False],
        "StopIteration": ["exception", stop_iteration, False],
        "StopAsyncIteration": ["exception", "StopAsyncIteration", False],
        "CancelledError": ["exception", "CancelledError", False],
        "TimeoutError": ["exception", "TimeoutError", False],
        "MemoryError": ["exception", "MemoryError", False],
        "RecursionError": ["exception", "RecursionError", False],
        "group": ["exception", "ExceptionGroup", False],
        "unprintable error": ["exception", "UnprintableError", False],
        "unprintable value": ["value", "Unprintable"],
        "itself": ["value", "function"],
        "exception as a value": ["value", "ValueError"],
        "generator": ["value", "generator"],
        "lock": ["value", "LockType" if mode == "green" else "lock"],
        "nothing": ["value", "NoneType"],
        # Only a thread cannot be ended.
        "hangs": ["exception", "TimeoutError", mode == "threads"],
    }


@pytest.mark.parametrize("mode", MODES)
def test_a_keyboard_interrupt_from_a_function_ends_the_fan_out(mode: str) -> None:
    # A Ctrl-C is raised wherever the main thread is: in a coroutine, or in a green thread. What a
    # thread raises is no Ctrl-C.
    printed = in_mode(
        mode,
        f"""
from ungil.fanout import fanout

{definition(mode)} fn(number):
    if number == 3:
        raise KeyboardInterrupt
    return number

try:
    outcomes = list(fanout(fn, range(10), mode=MODE, limit=1))
except KeyboardInterrupt:
    print("interrupted")
else:
    print([type(outcome.exception).__name__ for outcome in outcomes if not outcome.ok])
""",
    )
    assert printed == ("['KeyboardInterrupt']\n" if mode == "threads" else "interrupted\n")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("death", "status"),
    [("os._exit(7)", 7), ("os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL)],
    ids=["exit", "kill"],
)
def test_a_function_that_kills_its_process_kills_the_fan_out_with_it(
    mode: str, death: str, status: int
) -> None:
    """All modes run in the caller's process: only an engine and commands survive this."""
    printed = in_mode(
        mode,
        f"""
import os, signal
from ungil.fanout import fanout

{definition(mode)} fn(number):
    if number == 3:
        {death}
    return number

for outcome in fanout(fn, range(10), mode=MODE, limit=1):
    pass
print("survived")
""",
        status=status,
    )
    assert printed == ""


def test_a_command_that_is_killed_is_only_its_own_outcome() -> None:
    async def run(deed: str) -> str:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", deed, stdout=subprocess.PIPE
        )
        output, _ = await process.communicate()
        if process.returncode != 0:
            raise ChildProcessError(f"status {process.returncode}")
        return output.decode().strip()

    deeds = ["print(1)", "import os; os.kill(os.getpid(), 9)", "import os; os._exit(3)", "print(2)"]
    outcomes = list(fanout(run, deeds, limit=2))
    assert [outcome.value for outcome in outcomes] == ["1", None, None, "2"]
    assert [str(outcome.exception) for outcome in outcomes[1:3]] == ["status -9", "status 3"]


def test_a_coroutine_that_blocks_the_loop_delays_the_others_but_loses_none() -> None:
    async def fn(number: int) -> int:
        if number == 3:
            time.sleep(1.5)
        await asyncio.sleep(0)
        return number

    outcomes = list(fanout(fn, range(10), limit=5, timeout=1))
    assert [outcome.index for outcome in outcomes] == list(range(10))
    # The time of those that ran beside it was over as well; of those after them it was not.
    assert [outcome.value for outcome in outcomes[5:]] == [5, 6, 7, 8, 9]


def test_a_coroutine_that_cancels_itself_takes_nobody_with_it() -> None:
    async def fn(number: int) -> int:
        if number == 3:
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
        await asyncio.sleep(0)
        return number

    for options in ({}, {"timeout": 60}):
        outcomes = list(fanout(fn, range(10), limit=2, **options))
        assert isinstance(outcomes.pop(3).exception, asyncio.CancelledError)
        assert [outcome.value for outcome in outcomes] == [0, 1, 2, 4, 5, 6, 7, 8, 9]


def test_tasks_that_a_coroutine_leaves_behind_are_cancelled_at_the_end() -> None:
    left: set[asyncio.Task[None]] = set()
    cancelled: list[int] = []

    async def background(number: int) -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            cancelled.append(number)

    async def fn(number: int) -> None:
        left.add(asyncio.create_task(background(number)))
        await asyncio.sleep(0.001)

    assert [outcome.ok for outcome in fanout(fn, range(3), mode="asyncio")] == [True] * 3
    assert sorted(cancelled) == [0, 1, 2]


def test_a_coroutine_whose_thread_does_not_end_does_not_keep_the_outcomes() -> None:
    printed = in_mode(
        "asyncio",
        """
import asyncio, os, threading
from ungil.fanout import fanout

async def fn(number):
    await asyncio.to_thread(threading.Event().wait)

outcomes = list(fanout(fn, range(3), timeout=0.1))
print([type(outcome.exception).__name__ for outcome in outcomes], flush=True)
# Python itself would wait for the threads of an executor.
os._exit(0)
""",
    )
    assert printed == "['TimeoutError', 'TimeoutError', 'TimeoutError']\n"


def test_a_coroutine_that_needs_another_fan_out_is_told_which_one() -> None:
    async def blocking(_: int) -> list[Any]:
        return list(fanout(abs, [1]))

    async def waiting(_: int) -> list[int]:
        async with Fanout() as f:
            return [outcome.unwrap() async for outcome in f.stream(abs, [-1, -2])]

    (outcome,) = fanout(blocking, [0])
    assert isinstance(outcome.exception, RuntimeError)
    assert "async with Fanout" in str(outcome.exception)
    (outcome,) = fanout(waiting, [0])
    assert sorted(outcome.value) == [1, 2]


# Input.


def test_input_that_is_none_is_refused_at_once() -> None:
    with pytest.raises(TypeError, match=r"^items=7 cannot be iterated over"):
        fanout(abs, 7)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("mode", ["asyncio", "threads"])
def test_input_that_is_interrupted_ends_the_fan_out(mode: str) -> None:
    def items() -> Generator[int]:
        yield 1
        raise KeyboardInterrupt

    async def later(number: int) -> int:
        return number

    def now(number: int) -> int:
        return number

    outcomes = fanout(later if mode == "asyncio" else now, items(), mode=mode)
    assert next(outcomes).value == 1
    with pytest.raises(KeyboardInterrupt):
        next(outcomes)
    assert list(outcomes) == []


def test_input_that_asks_for_its_own_outcomes_gets_an_error_and_no_hang() -> None:
    async def later(number: int) -> int:
        await asyncio.sleep(0)
        return number

    def items() -> Generator[int]:
        yield 1
        yield next(outcomes).unwrap()

    outcomes = fanout(later, items(), limit=2)
    with pytest.raises(RuntimeError, match="cannot wait for its own outcomes in its input"):
        list(outcomes)


@pytest.mark.parametrize("mode", ["asyncio", "threads"])
def test_a_function_that_asks_for_the_outcomes_gets_an_error_and_no_hang(mode: str) -> None:
    def now(_: int) -> int:
        return len(list(outcomes))

    async def later(_: int) -> int:
        await asyncio.sleep(0)
        return now(0)

    outcomes = fanout(later if mode == "asyncio" else now, [0], mode=mode)
    error = next(outcomes).exception
    assert isinstance(error, RuntimeError)
    assert "its own outcomes" in str(error)


@pytest.mark.parametrize("mode", ["asyncio", "threads"])
def test_a_function_that_closes_the_fan_out_ends_it(mode: str) -> None:
    def now(number: int) -> int:
        if number == 3:
            outcomes.close()
        return number

    async def later(number: int) -> int:
        await asyncio.sleep(0)
        return now(number)

    outcomes = fanout(later if mode == "asyncio" else now, itertools.count(), mode=mode, limit=1)
    assert [outcome.value for outcome in outcomes] == [0, 1, 2, 3]


# Networks.


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Generator[SshHosts]:
    """Hosts at all loopback addresses."""
    with ssh_hosts.running(tmp_path_factory.mktemp("ssh")) as running:
        yield running


@pytest.mark.parametrize("mode", MODES)
def test_names_that_do_not_exist_do_not_keep_the_others(mode: str, hosts: SshHosts) -> None:
    # RFC 6761: no resolver knows anything in .invalid.
    port = str(hosts.ports["hangs_up"])
    words = [str(PROGRAMS / "names_that_do_not_exist.py"), mode, port]
    found, failed, kinds = json.loads(program(*words))
    assert (found, failed) == (50, 50), kinds


@pytest.mark.parametrize("mode", MODES)
def test_twenty_thousand_hosts_are_reached_with_few_descriptors(mode: str, hosts: SshHosts) -> None:
    ports = [str(hosts.ports[name]) for name in ("hangs_up", "silent")]
    kinds = Counter(json.loads(program("few_descriptors.py", mode, "auto", *ports)))
    assert kinds.total() == 20_000
    # One in twenty says nothing; whether a loaded machine is in time for all others, nobody knows.
    assert set(kinds) <= {"NoneType", "TimeoutError"}
    assert kinds["NoneType"] >= 1
    assert kinds["TimeoutError"] >= 1_000
