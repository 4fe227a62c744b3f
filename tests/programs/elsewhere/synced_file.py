"""Three threads that write files and wait until the disk has them: synced_file.py FOLDER."""

import os
import sys
import threading
import time
from pathlib import Path

END = time.monotonic() + 3
BLOCK = bytes(1 << 25)


def store(path):
    """Written again and again."""
    with path.open("wb", buffering=0) as file:
        while time.monotonic() < END:
            file.seek(0)
            file.write(BLOCK)
            os.fsync(file.fileno())


folder = Path(sys.argv[1])
threads = [
    threading.Thread(target=store, args=(folder / str(number),), name=f"writer-{number}")
    for number in range(3)
]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
