"""Becomes a program for which the kernel filters system calls, as services and containers have it.

filtered.py refused|killed CALL[,CALL]... PROGRAM [ARGUMENTS]...
"""

import ctypes
import errno
import os
import platform
import struct
import sys

NUMBERS = {
    "x86_64": {"process_vm_readv": 310, "ptrace": 101, "memfd_create": 319},
    "aarch64": {"process_vm_readv": 270, "ptrace": 117, "memfd_create": 279},
}[platform.machine()]
# What a filter of system calls says (<linux/seccomp.h>, <linux/bpf_common.h>).
OUTCOMES = {"refused": 0x00050000 | errno.EPERM, "killed": 0x80000000}
ALLOW = 0x7FFF0000
LOAD_NUMBER, RETURN, JUMP_IF_EQUAL = 0x20, 0x06, 0x15
NO_NEW_PRIVILEGES, SET_SECCOMP, FILTERED = 38, 22, 2

outcome, calls, *program = sys.argv[1:]
numbers = [NUMBERS[call] for call in calls.split(",")]
steps = [
    (LOAD_NUMBER, 0, 0, 0),
    *[(JUMP_IF_EQUAL, len(numbers) - at, 0, number) for at, number in enumerate(numbers)],
    (RETURN, 0, 0, ALLOW),
    (RETURN, 0, 0, OUTCOMES[outcome]),
]
held = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in steps))
filter_ = struct.pack("@HP", len(steps), ctypes.addressof(held))
libc = ctypes.CDLL(None, use_errno=True)
for words in ((NO_NEW_PRIVILEGES, 1, 0, 0, 0), (SET_SECCOMP, FILTERED, filter_, 0, 0)):
    if libc.prctl(*words):
        raise OSError(ctypes.get_errno(), "prctl")
os.execv(program[0], program)
