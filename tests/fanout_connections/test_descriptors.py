"""Descriptors that are no connection of `ungil.fanout`, and what waits for them."""

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from fanout_connections.servers import Run, echo, value

from ungil.fanout import (
    connect,
    fanout,
    sleep,
    wait_readable,
    wait_writable,
)


def test_descriptors_of_others_can_be_waited_for(run: Run) -> None:
    readable, writable = os.pipe()
    os.set_blocking(writable, False)
    with suppress(BlockingIOError):
        while True:
            os.write(writable, bytes(1 << 16))

    async def task(item: str) -> int:
        if item == "writer":
            await wait_writable(writable)
            return os.write(writable, b"x")
        await sleep(0.001)
        await wait_readable(file)
        return len(file.read(1 << 20))

    with os.fdopen(readable, "rb", buffering=0) as file:
        written, read = (outcome.unwrap() for outcome in run(task, ["writer", "reader"]))
    os.close(writable)
    assert written == 1
    assert read >= 4096


def test_a_file_is_always_ready(tmp_path: Path) -> None:
    async def task(_: int) -> str:
        with (tmp_path / "file").open("w+") as file:
            await wait_writable(file)
            await wait_readable(file)
            return file.read()

    assert value(list(fanout(task, [1], mode="lean"))) == ""


def test_two_cannot_wait_for_the_same_descriptor() -> None:
    readable, writable = os.pipe()

    async def task(item: int) -> None:
        try:
            await wait_readable(readable)
        except RuntimeError:
            os.close(writable)
            raise

    outcomes = list(fanout(task, range(2), mode="lean"))
    os.close(readable)
    outcomes[0].unwrap()
    with pytest.raises(RuntimeError, match=f"another item already waits for descriptor {readable}"):
        outcomes[1].unwrap()


def test_a_connections_own_descriptor_cannot_be_waited_for(serve: Any) -> None:
    host, port = serve(echo)

    async def task(_: int) -> None:
        async with connect(host, port) as connection:
            await connection.write(b"x\n")
            await connection.read_line()
            await wait_readable(connection)

    with pytest.raises(RuntimeError, match="is a Connection's: use its read and write"):
        value(list(fanout(task, [1], mode="lean")))


def test_outside_of_an_event_loop_nothing_can_be_awaited() -> None:
    with pytest.raises(RuntimeError, match="no running event loop"):
        sleep(1).__await__().send(None)
