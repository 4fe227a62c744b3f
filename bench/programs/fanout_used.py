"""Runs a command and says in a last line what it used: `fanout_used.py WORD...`.

Wall seconds, CPU seconds (user and system, of it and of the children it waited for), peak resident
memory in KiB, and its status (that of a shell: 128 and more for a signal).

This is a process of its own, to be run with -I -S, because it has to be small: a process begins
with the peak of the one it was forked from (setmax_mm_hiwater_rss in Linux's fs/exec.c), and what
a benchmark itself takes would hide what a frugal program does.
"""

import os
import sys
import time


def main() -> None:
    """Runs the command."""
    began = time.perf_counter()
    pid = os.posix_spawnp(sys.argv[1], sys.argv[1:], os.environ)
    _, status, usage = os.wait4(pid, 0)
    wall_s = time.perf_counter() - began
    code = os.waitstatus_to_exitcode(status)
    print(
        wall_s, usage.ru_utime + usage.ru_stime, usage.ru_maxrss, code if code >= 0 else 128 - code
    )


if __name__ == "__main__":
    main()
