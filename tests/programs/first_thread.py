"""Says whether this interpreter's calls go to the hook, before and after the first thread.

Usage: first_thread.py HOW, how the thread is created: python, pthread_create or thrd_create.
Prints the two answers. Needs binutils.
"""

import ctypes
import subprocess
import sys
import threading

CALL = "pthread_cond_signal"
native = ctypes.CDLL(None)


class Info(ctypes.Structure):
    """Dl_info of <dlfcn.h>."""

    _fields_ = [
        ("image", ctypes.c_char_p),
        ("base", ctypes.c_void_p),
        ("symbol", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
    ]


def image_at(address):
    info = Info()
    assert native.dladdr(ctypes.c_void_p(address), ctypes.byref(info))
    return info


def slot():
    """Where this interpreter keeps the address of CALL."""
    image = image_at(ctypes.cast(ctypes.pythonapi.Py_GetVersion, ctypes.c_void_p).value)
    path = sys.executable if image.image.decode() == sys.argv[0] else image.image.decode()
    if not path.startswith("/"):
        path = sys.executable
    listed = subprocess.check_output(["readelf", "--relocs", "--wide", path], text=True)
    offset = next(int(line.split()[0], 16) for line in listed.splitlines() if CALL in line)
    header = subprocess.check_output(["readelf", "--file-header", path], text=True)
    return offset if "EXEC (" in header else image.base + offset


def create_thread(how):
    if how == "python":
        thread = threading.Thread(target=int)
        thread.start()
        thread.join()
        return
    start = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(lambda _: None)
    thread = ctypes.c_ulong()
    if how == "pthread_create":
        assert not native.pthread_create(ctypes.byref(thread), None, start, None)
        assert not native.pthread_join(thread, None)
    else:
        assert not native.thrd_create(ctypes.byref(thread), start, None)
        assert not native.thrd_join(thread, None)


place = ctypes.c_void_p.from_address(slot())
for step in (int, lambda: create_thread(sys.argv[1])):
    step()
    print("libungil_hook" in image_at(place.value).image.decode())
