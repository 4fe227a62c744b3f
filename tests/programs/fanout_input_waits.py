"""Fans out over an input in which the third item never comes; ended by Ctrl-C, says what it had."""

import threading
from collections.abc import Iterator

from ungil.fanout import fanout

taken: list[int] = []


def items() -> Iterator[int]:
    yield 0
    yield 1
    threading.Event().wait()


outcomes = fanout(abs, items(), mode="threads")
try:
    for outcome in outcomes:
        taken.append(outcome.unwrap())
        print(outcome.item, flush=True)
except KeyboardInterrupt:
    print("interrupted", taken)
