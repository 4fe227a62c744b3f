"""Functions and values that `ungil fanout` is told to run."""

import time
from pathlib import Path

from ungil.fanout import sleep


def length(host):
    return len(host)


async def hello(host):
    await sleep(0)
    return f"hello {host}"


class Switch:
    @staticmethod
    def name(host):
        return host


def fields(host):
    return sorted(host.items())


def odd_fails(host):
    number = int(host[2:])
    if number % 4 == 1:
        raise ConnectionRefusedError(111, "Connection refused")
    if number % 4 == 3:
        raise ValueError(f"bad answer from {host}")


def hangs(host):
    time.sleep(1000)


async def waits(host):
    await sleep(1000)


tries = {}


def third_time(host):
    tries[host] = tries.get(host, 0) + 1
    if tries[host] < 3:
        raise ConnectionResetError("again")
    return tries[host]


def odd_value(host):
    return {"host": host, "what": object}


def nan(host):
    return float("nan")


def not_numbers(host):
    return {"a": [float("nan"), -float("inf"), 1.5], "b": {"c": float("inf")}}


def odd_keys(host):
    return {(1, 2): (1, object), 3: None}


def ring(host):
    it = []
    it.append(it)
    return it


def reads_gate(host):
    if host == "sw2":
        Path("gate").read_text()
    return host


async def first_ends(host):
    await sleep(0 if host == "sw1" else 1000)
    return host


def lines(host):
    return f"first of {host}\nsecond\x1b[31m"


def yields(host):
    yield host


number = 7
