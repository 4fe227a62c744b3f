"""What this interpreter is, and what it runs on, as JSON. Runs on Python 2.7 and later."""

import io
import json
import os
import platform
import struct
import sys
import sysconfig

# Of <unistd.h>; Python 2.7 does not know its name.
CS_GNU_LIBC_VERSION = 2
with io.open("/proc/self/maps") as file:
    maps = file.read()


def libc():
    """The C library, as it says itself; musl has no word for it."""
    try:
        return os.confstr(CS_GNU_LIBC_VERSION)
    except OSError:
        return "musl"


def is_static():
    """Whether the executable asks for no loader (PT_INTERP of <elf.h>, in ELF of 64 bits)."""
    with io.open(os.path.realpath(sys.executable), "rb") as file:
        header = file.read(64)
        begins, _, _, _, size, count = struct.unpack_from("<QQIHHH", header, 32)
        file.seek(begins)
        kinds = [struct.unpack_from("<I", file.read(size))[0] for _ in range(count)]
    return 3 not in kinds


def linked():
    # Debian says that it has a library, and does not use it.
    if "/libpython" in maps:
        return "shared library"
    if is_static():
        return "static executable"
    return "executable, modules in it" if "_ssl" in sys.builtin_module_names else "executable"


gil = getattr(sys, "_is_gil_enabled", None)
print(
    json.dumps(
        {
            "version": platform.python_version(),
            "linked": linked(),
            "free_threaded": bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
            "gil": gil() if gil else True,
            "libc": libc(),
            "machine": platform.machine(),
        }
    )
)
