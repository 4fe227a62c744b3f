"""Functions that raise what is no Exception."""

import asyncio
import sys

from ungil.fanout import sleep


class NotEvenAnError(BaseException):
    pass


def leaves(host):
    if host == "sw2":
        sys.exit("boom")


async def leaves_async(host):
    await sleep(0)
    leaves(host)


async def cancelled(host):
    async def gives_up():
        raise asyncio.CancelledError("gone")

    await asyncio.create_task(gives_up())


async def of_a_task(host):
    async def task():
        sys.exit(0)

    await asyncio.create_task(task())


def closes(host):
    raise GeneratorExit("of its own")


def raises_its_own(host):
    raise NotEvenAnError("why")


def interrupts(host):
    raise KeyboardInterrupt("not the user")


async def interrupts_async(host):
    raise KeyboardInterrupt("not the user")


def is_late(host):
    import gevent

    with gevent.Timeout(0.001):
        gevent.sleep(1000)


def ends_itself(host):
    import gevent

    raise gevent.GreenletExit("enough")
