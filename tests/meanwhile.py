"""Threads that do something all the time while a test does something else."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Meanwhile:
    """Threads that do something again and again, as long as the block lasts."""

    def __init__(self, *works: Callable[[], object]) -> None:
        self._over = False
        self._failures: list[BaseException] = []
        self._began = threading.Barrier(len(works) + 1)
        self._threads = [threading.Thread(target=self._run, args=(work,)) for work in works]

    def _run(self, work: Callable[[], object]) -> None:
        self._began.wait()
        try:
            while not self._over:
                work()
        except BaseException as error:
            self._failures.append(error)

    def __enter__(self) -> None:
        for thread in self._threads:
            thread.start()
        self._began.wait()

    def __exit__(self, *_: object) -> None:
        self._over = True
        for thread in self._threads:
            thread.join()
        for failure in self._failures:
            raise failure
