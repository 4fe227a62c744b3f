"""Functions that `ungil fanout --engine` runs in workers."""

import os


def whose(host):
    return os.getppid()


async def hello(host):
    return f"hello {host}"


class Switch:
    @staticmethod
    def name(host):
        return host


def fails(host):
    raise ValueError(f"no {host}")


def dies(host):
    if host == "sw2":
        os._exit(3)
    return host


def fields(host):
    return sorted(host.items())
