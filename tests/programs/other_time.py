"""Runs a program in a time namespace whose CLOCK_MONOTONIC is a day ahead.

Usage: other_time.py PROGRAM [ARGS]...; prints JSON: the program's exit status, and when it was
started and had ended, nanoseconds of this program's own CLOCK_MONOTONIC.
"""

import ctypes
import json
import os
import sys
import threading
import time
from pathlib import Path

CLONE_NEWTIME, CLONE_NEWUSER = 0x80, 0x10000000
DAY_S = 86_400

libc = ctypes.CDLL(None, use_errno=True)
if libc.unshare(CLONE_NEWTIME) != 0 and libc.unshare(CLONE_NEWTIME | CLONE_NEWUSER) != 0:
    raise OSError(ctypes.get_errno(), "unshare")
# It is the children that are in the namespace.
Path("/proc/self/timens_offsets").write_text(f"monotonic {DAY_S} 0\n", encoding="ascii")

# So that this process has a hold that begins and ends here.
thread = threading.Thread(target=time.sleep, args=(0,))
thread.start()
thread.join()
began = time.monotonic_ns()
status = os.spawnv(os.P_WAIT, sys.argv[1], sys.argv[1:])
ended = time.monotonic_ns()
json.dump({"status": status, "began": began, "ended": ended}, sys.stdout)
