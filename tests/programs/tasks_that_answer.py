"""Functions whose answers `ungil fanout` prints."""


def version(host):
    return {"sw7": "1.9"}.get(host, "2.0")


def nothing(host):
    pass


def numbers(host):
    return [1, host]


def fails(host):
    if host == "sw1":
        raise TimeoutError("the host is asleep")
    if host == "sw2":
        raise ConnectionRefusedError(111, "Connection refused")
    return "fine"
