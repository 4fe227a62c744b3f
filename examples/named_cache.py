"""A cache that unrelated processes share, found by its name.

Each run of this program is a worker: it answers from the cache, and fills it.

    python examples/named_cache.py march     # computes the report
    python examples/named_cache.py march     # finds it: another process has computed it
    ungil heap stat named-cache              # what is in it
    ungil heap rm named-cache
"""

import os
import sys
from typing import Any

from ungil import share


def fill(heap: share.Heap) -> None:
    """What the first process makes; all others find it."""
    heap.root["reports"] = {}
    heap.root["computed"] = 0


def compute(month: str) -> str:
    """A report that takes a while."""
    return f"{month}: {sum(number * number for number in range(1_000_000))}"


heap = share.Heap.open("named-cache", create=True, max_size=1 << 26, init=fill)
reports: share.dict[str, Any] = heap.root["reports"]

month = sys.argv[1] if len(sys.argv) > 1 else "march"
with reports:  # The lock of the dict: one process computes, the others wait for it.
    found = reports.get(month)
    if found is None:
        found = reports[month] = (compute(month), os.getpid())
        heap.root.incr("computed")
report, author = found
who = "this process" if author == os.getpid() else f"process {author}"
print(f"{report}, computed by {who}; {heap.root['computed']} computed in all")
