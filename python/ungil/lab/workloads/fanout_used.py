"""Runs a command and says what it used: `fanout_used.py WORD...`.

Prints a line of JSON: wall seconds, CPU seconds of the user and of the system (of it and of the
children that it waited for), peak resident memory in bytes, and the lines that it printed. Ends
with the status of the command (that of a shell: 128 and more for a signal), without a line unless
it is 0.

This is a process of its own, to be run with -I -S, because it has to be small: a process begins
with the peak of the one it was forked from (setmax_mm_hiwater_rss in Linux's fs/exec.c), and what
measures would hide what a frugal program takes. What it needs afterwards it imports afterwards.
"""

import os
import sys
import time


def main():
    """Runs the command."""
    ours, its = os.pipe()
    os.set_inheritable(its, True)
    began = time.perf_counter()
    to_pipe = [(os.POSIX_SPAWN_DUP2, its, 1), (os.POSIX_SPAWN_CLOSE, its)]
    pid = os.posix_spawnp(sys.argv[1], sys.argv[1:], os.environ, file_actions=to_pipe)
    os.close(its)
    with open(ours) as output:
        said = output.read()
    _, status, usage = os.wait4(pid, 0)
    wall_s = time.perf_counter() - began
    code = os.waitstatus_to_exitcode(status)
    if code != 0:
        sys.exit(code if code > 0 else 128 - code)

    import json

    print(json.dumps({
        "wall_s": wall_s,
        "user_s": usage.ru_utime,
        "system_s": usage.ru_stime,
        "peak_bytes": usage.ru_maxrss * 1024,
        "said": said.splitlines(),
    }))


if __name__ == "__main__":
    main()
