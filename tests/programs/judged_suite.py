"""Tests of which each does what its name says to the GIL: run by `test_pytest_plugin.py`."""

import asyncio
import ctypes
import gc
import os
import threading
import time

import pytest

LIBRARY = ctypes.PyDLL(None)  # its functions keep the GIL


def keeps(milliseconds=300):
    LIBRARY.usleep(milliseconds * 1000)


@pytest.fixture
def kept():
    keeps()
    yield
    keeps()


@pytest.mark.gil(max_hold="50ms", max_wait="1min")
def test_bytecode():
    until = time.thread_time() + 0.1
    while time.thread_time() < until:
        pass


@pytest.mark.gil(max_hold="50ms")
def test_keeps():
    keeps()


@pytest.mark.gil(max_hold="50ms")
def test_thread_keeps():
    thread = threading.Thread(target=keeps)
    thread.start()
    thread.join()


@pytest.mark.gil(max_wait="50ms")
def test_waits():
    begun = threading.Event()

    def wants():
        begun.set()
        for _ in range(100):
            time.sleep(0.001)

    thread = threading.Thread(target=wants)
    thread.start()
    begun.wait()
    keeps(300)
    thread.join()


@pytest.mark.asyncio
@pytest.mark.gil(max_hold="50ms")
async def test_asyncio_keeps():
    await asyncio.sleep(0)
    keeps()


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.gil(max_hold="50ms")
async def test_anyio_keeps(anyio_backend):
    await asyncio.sleep(0)
    keeps()


@pytest.mark.parametrize("milliseconds", [1, 300])
@pytest.mark.gil(max_hold="50ms")
def test_parameter(milliseconds):
    keeps(milliseconds)


@pytest.mark.gil(max_hold="50ms")
def test_fixture_of_others(kept):
    pass


@pytest.mark.gil(max_hold="50ms", fixtures=True)
def test_fixture_of_its_own(kept):
    pass


def test_block(gil):
    keeps()
    with gil.limits(max_hold="1min") as result:
        keeps()
    (judged,) = result
    assert [hold.name for hold in judged.holds] == ["MainThread"]
    with gil.limits(max_hold="50ms"):
        keeps()


@pytest.mark.gil(max_hold="50ms")
def test_forks():
    child = os.fork()
    if child == 0:
        os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


@pytest.mark.gil(max_hold="50ms")
def test_keeps_and_fails():
    keeps()
    raise LookupError("its own")


@pytest.mark.gil(max_hold="50ms")
def test_collects_garbage():
    kept = [[] for _ in range(2000000)]
    gc.collect()
    assert kept


def test_unmarked():
    keeps()


@pytest.mark.gil(max_hold="fast")
def test_wrong_duration():
    pass


@pytest.mark.gil("20ms")
def test_wrong_argument():
    pass


@pytest.mark.gil
def test_no_limit():
    pass
