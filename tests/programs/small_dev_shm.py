"""Who imports this has a /dev/shm of 64 MB for itself."""

import ctypes
import os
from pathlib import Path

CLONE_NEWNS, CLONE_NEWUSER, MS_REC, MS_PRIVATE = 0x20000, 0x10000000, 0x4000, 1 << 18
libc = ctypes.CDLL(None, use_errno=True)


def check(result):
    assert result == 0, os.strerror(ctypes.get_errno())


user = os.geteuid()
if libc.unshare(CLONE_NEWNS) != 0:
    # Without being root, as the root of a namespace of its own.
    check(libc.unshare(CLONE_NEWNS | CLONE_NEWUSER))
    Path("/proc/self/uid_map").write_text(f"0 {user} 1")
check(libc.mount(b"none", b"/", b"none", MS_REC | MS_PRIVATE, None))
check(libc.mount(b"tmpfs", b"/dev/shm", b"tmpfs", 0, b"size=64m"))
