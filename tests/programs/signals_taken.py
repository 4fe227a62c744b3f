"""Prints each signal that it gets: number, si_code, sender, value. SIGRTMAX ends it.

The signals are blocked and taken one by one, so that none is merged by a handler that comes late.
"""
import ctypes
import os
import signal
import struct
import sys

libc = ctypes.CDLL(None)
# The kernel's own numbers: the C library leaves 32 and 33 out of masks.
RT_SIGPROCMASK = {"x86_64": 14, "aarch64": 135}[os.uname()[4]]
ALL = ctypes.create_string_buffer(b"\xff" * 8, 8)
libc.syscall(RT_SIGPROCMASK, signal.SIG_BLOCK, ALL, None, 8)
RT_SIGTIMEDWAIT = {"x86_64": 128, "aarch64": 137}[os.uname()[4]]

print("ready %d" % os.getpid())
sys.stdout.flush()
while True:
    info = ctypes.create_string_buffer(128)
    if libc.syscall(RT_SIGTIMEDWAIT, ALL, info, None, 8) <= 0:
        continue
    number, _, code = struct.unpack_from("iii", info)
    pid, _, value = struct.unpack_from("iIi", info, 16)
    if number == signal.SIGRTMAX:
        break
    print("%d %d %d %d" % (number, code, pid, value))
    sys.stdout.flush()
