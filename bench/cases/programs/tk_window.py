"""A Tk window with a clock that moves every 10 ms, beside threads that compute.

    tk_window.py THREADS SECONDS

Only the window can know how late its timer is, so this program measures itself.
"""

import sys
import time
import tkinter

import computing
from says import begins, ends, say

PERIOD_MS = 10
WARM_UP_S = 0.7


class Window:
    """The window and its timer."""

    def __init__(self, seconds: float) -> None:
        """Begins to tick."""
        self._root = tkinter.Tk()
        self._label = tkinter.Label(self._root, width=20)
        self._label.pack()
        self._late_ms: list[float] = []
        self._begins_s = time.perf_counter() + WARM_UP_S
        self._ends_s = self._begins_s + seconds
        self._began = False
        self._wait()

    def _wait(self) -> None:
        """For the next tick."""
        self._due_s = time.perf_counter() + PERIOD_MS / 1e3
        self._root.after(PERIOD_MS, self._tick)

    def _tick(self) -> None:
        """Move the clock."""
        now_s = time.perf_counter()
        if self._began:
            self._late_ms.append((now_s - self._due_s) * 1e3)
        elif now_s >= self._begins_s:
            self._began = True
            begins()
        if now_s >= self._ends_s:
            ends()
            self._root.destroy()
            return
        self._label["text"] = f"{now_s:.2f} s"
        self._wait()

    def run(self) -> list[float]:
        """How late each tick was, in milliseconds."""
        self._root.mainloop()
        return self._late_ms


if __name__ == "__main__":
    window = Window(float(sys.argv[2]))
    computing.start(int(sys.argv[1]))
    say({"late_ms": window.run()})
