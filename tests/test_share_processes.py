"""Shared objects go to other processes: as handles, by every way that Python has."""

from __future__ import annotations

import copy
import multiprocessing
import os
import pickle
import pickletools
import subprocess
import sys
from collections.abc import Generator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing.context import BaseContext
from typing import Any

import loky  # pyright: ignore[reportMissingTypeStubs]
import pytest
import share_workers
from suite import PROGRAMS, run_python

from ungil import share
from ungil.share import _handle  # pyright: ignore[reportPrivateUsage]

SIZE = 1 << 26
METHODS = ("fork", "spawn", "forkserver")


@pytest.fixture
def heap() -> share.Heap:
    return share.Heap(max_size=SIZE)


@pytest.fixture(params=METHODS)
def context(request: pytest.FixtureRequest) -> BaseContext:
    method: str = request.param
    return multiprocessing.get_context(method)


def shared_dict(heap: share.Heap, **items: object) -> share.dict[Any, Any]:
    made: object = heap.share(items)
    assert isinstance(made, share.dict)
    return made


def contents(given: Any) -> list[object]:
    shared: share.list[Any] = given
    assert isinstance(shared, share.list)
    return shared.copy()


def python(code: str, *arguments: str, **options: Any) -> Any:
    """Run `code` in a Python that knows nothing of this one."""
    run: Any = subprocess.run
    words = [sys.executable, "-c", code, *arguments]
    return run(words, capture_output=True, check=False, **options)


def test_arguments_and_queues_of_processes_carry_objects(heap: share.Heap, context: Any) -> None:
    target = shared_dict(heap)
    answers = context.Queue()
    child = context.Process(target=share_workers.put_and_answer, args=(heap, target, answers))
    child.start()
    answer = answers.get(timeout=60)
    child.join()
    assert child.exitcode == 0
    assert contents(answer) == ["answer"]
    assert contents(target["child"]) == [child.pid]


def test_pipes_carry_objects_both_ways(heap: share.Heap, context: Any) -> None:
    here, there = context.Pipe()
    child = context.Process(target=share_workers.send_back, args=(there,))
    child.start()
    target = shared_dict(heap)
    here.send((heap, target))
    assert contents(here.recv())[0] is target
    here.send(None)
    child.join()
    assert child.exitcode == 0


def test_pools_take_objects_and_return_them(heap: share.Heap, context: Any) -> None:
    target = shared_dict(heap, count=0)
    with context.Pool(2) as pool:
        assert all(it is target for it in pool.map(share_workers.count, [target] * 40))
        made = pool.starmap(share_workers.made, [(heap, number) for number in range(40)])
    assert target["count"] == 40
    assert [contents(it) for it in made] == [[number] for number in range(40)]


def test_executors_take_objects_and_return_them(heap: share.Heap, context: Any) -> None:
    target = shared_dict(heap, count=0)
    with ProcessPoolExecutor(2, mp_context=context) as executor:
        assert all(it is target for it in executor.map(share_workers.count, [target] * 40))
        made = executor.submit(share_workers.made, heap, 7).result()
        assert contents(made) == [7]
    assert target["count"] == 40


def test_loky_takes_objects_and_returns_them(heap: share.Heap) -> None:
    target = shared_dict(heap, count=0)
    executor: Any = loky.ProcessPoolExecutor(1)
    with executor:
        assert all(it is target for it in executor.map(share_workers.count, [target] * 40))
        assert contents(executor.submit(share_workers.made, heap, 7).result()) == [7]
    assert target["count"] == 40


def test_a_handle_leads_a_process_of_its_own_to_the_object(heap: share.Heap) -> None:
    target = shared_dict(heap)
    code = "import pickle, sys; pickle.load(sys.stdin.buffer)['seen'] = [1, 2]"
    assert python(code, input=pickle.dumps(target)).stderr == b""
    assert contents(target["seen"]) == [1, 2]


def test_what_is_pickled_names_one_function_and_is_short(heap: share.Heap) -> None:
    target = shared_dict(heap, text="x" * 100_000)
    for given, function in ((target, "_handle received"), (heap, "_heap attached")):
        pickled = pickle.dumps(given, 3)
        named = [it for op, it, _ in pickletools.genops(pickled) if op.name == "GLOBAL"]
        assert named == [f"ungil.share.{function}"]
        assert len(pickled) < 200


def test_where_the_object_is_known_a_handle_leads_to_the_same_proxy(heap: share.Heap) -> None:
    target = shared_dict(heap)
    assert pickle.loads(pickle.dumps(target)) is target
    again = pickle.loads(pickle.dumps(heap))
    assert again == heap
    assert hash(again) == hash(heap)
    assert again.root is heap.root
    assert again != share.Heap(max_size=SIZE)


def test_a_handle_holds_its_object_until_it_is_used(heap: share.Heap) -> None:
    pickled = pickle.dumps(heap.share(["kept"]))
    heap.gc()
    received = pickle.loads(pickled)
    assert contents(received) == ["kept"]
    # Once more, while somebody has it.
    assert pickle.loads(pickled) is received
    del received
    with pytest.raises(ReferenceError, match="the object of this handle no longer exists"):
        pickle.loads(pickled)


def test_an_object_that_was_sent_is_there_when_its_heap_was_let_go_of() -> None:
    heap = share.Heap(max_size=SIZE)
    pickled = pickle.dumps(heap.share(["kept"]))
    del heap
    assert contents(pickle.loads(pickled)) == ["kept"]


def test_what_a_process_sent_is_there_when_it_has_ended(heap: share.Heap, context: Any) -> None:
    here, there = context.Pipe()
    child = context.Process(target=share_workers.pickled_then_gone, args=(heap, there))
    child.start()
    pickled = here.recv_bytes()
    child.join()
    assert contents(pickle.loads(pickled)) == ["left"]


def test_a_handle_of_a_heap_that_is_gone_says_so() -> None:
    code = (
        "import pickle, sys; from ungil import share; "
        "heap = share.Heap(max_size=1 << 20); "
        "sys.stdout.buffer.write(pickle.dumps((heap.root, heap)[int(sys.argv[1])]))"
    )
    for which in "01":
        pickled = python(code, which).stdout
        with pytest.raises(FileNotFoundError, match=r"process [0-9]+, which sent it, has ended"):
            pickle.loads(pickled)


def test_another_file_with_the_number_of_the_heap_is_not_taken_for_it(heap: share.Heap) -> None:
    code = (
        "import sys; from ungil.share import _handle\n"
        "try: _handle.received(sys.argv[1], bytes.fromhex(sys.argv[2]))\n"
        "except FileNotFoundError as error: print(error.strerror)"
    )
    function, (place, handle) = shared_dict(heap).__reduce__()
    assert function is _handle.received
    assert isinstance(place, str)
    assert isinstance(handle, bytes)
    other = share.Heap(max_size=SIZE)
    _, (_, others_place) = other.__reduce__()
    with open(os.devnull) as nothing:  # noqa: PTH123
        for number in (str(others_place), f"/proc/{os.getpid()}/fd/{nothing.fileno()}"):
            outcome = python(code, number, handle.hex(), text=True)
            assert "which sent it, has ended or closed the heap" in str(outcome.stdout), outcome
    with pytest.raises(ValueError, match="not a handle of a shared object"):
        _handle.received(place, b"short")


def test_a_copy_is_an_ordinary_object(heap: share.Heap) -> None:
    items: dict[str, Any] = {"list": [1, {"inner": ()}]}
    items["itself"] = items
    target: Any = heap.share(items)
    shallow = copy.copy(target)
    assert type(shallow) is dict
    assert shallow["itself"] is target
    deep: Any = copy.deepcopy(target)
    assert [type(it) for it in (deep, deep["list"], deep["list"][1])] == [dict, list, dict]
    assert deep["itself"] is deep
    assert deep["list"] == [1, {"inner": ()}]


def test_a_thousand_processes_attach_and_a_hundred_at_a_time() -> None:
    # In a process of its own: it is small, and so are its forks.
    outcome = run_python(PROGRAMS / "share_a_thousand.py")
    number = os.environ.get("UNGIL_PROCESSES", "1000")
    assert (outcome.stdout, outcome.stderr) == (f"{number} {number}\n", "")


def test_a_full_dev_shm_is_an_error_of_named_heaps_and_none_of_others() -> None:
    outcome = run_python(PROGRAMS / "share_small_dev_shm.py")
    error, *rest = outcome.stdout.splitlines()
    assert "bytes in the heap: its file system is full; make room in /dev/shm" in error, outcome
    assert rest == [
        "True",
        str(1 << 20),
        "No space left on device",
        "100",
    ], outcome


def test_a_limit_on_the_size_of_files_is_a_memory_error() -> None:
    code = (
        "import resource; from ungil import share\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 22, 1 << 22))\n"
        "try: share.Heap(max_size=1 << 30)\n"
        "except MemoryError as error: print(error)"
    )
    assert b"RLIMIT_FSIZE" in python(code).stdout


@pytest.fixture(autouse=True)
def _no_children_are_left() -> Generator[None]:  # pyright: ignore[reportUnusedFunction]
    yield
    assert [it for it in multiprocessing.active_children() if it.is_alive()] == []
