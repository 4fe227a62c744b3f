"""Sixteen threads hash without the GIL, and compute with it in between; argument: BLOCKS of each.

On one core they wait for the GIL while nobody has it: who is woken for it gets no processor.
"""

import hashlib
import sys
import threading

BLOCK = bytes(1 << 19)


def hashes(blocks):
    for _ in range(blocks):
        hashlib.sha256(BLOCK).hexdigest()
        sum(range(5_000))


threads = [threading.Thread(target=hashes, args=(int(sys.argv[1]),)) for _ in range(16)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
