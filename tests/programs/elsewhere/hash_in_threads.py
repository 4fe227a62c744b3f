"""A pool of two threads that compute in native code without the GIL.

There are so many pieces of work that the last one, for which the other thread waits, is small.
"""

import hashlib
from concurrent.futures import ThreadPoolExecutor

data = bytes(100_000_000)

with ThreadPoolExecutor(2) as pool:
    digests = list(pool.map(lambda _: hashlib.sha256(data).hexdigest(), range(24)))
assert len(set(digests)) == 1
