"""Takes something out of each container of a heap, and says what that raised, and what is left.

share_removals.py HEAP
"""

import json
import sys

from ungil import share

root = share.Heap.open(sys.argv[1]).root
removals = [
    ("list", lambda found: found.pop()),
    ("list", lambda found: found.pop(0)),
    ("deque", lambda found: found.pop()),
    ("deque", lambda found: found.popleft()),
    ("dict", lambda found: found.pop("key")),
    ("dict", lambda found: found.pop("key", None)),
    ("dict", lambda found: found.popitem()),
    ("keys", lambda found: found.popitem()),
    ("set", lambda found: found.pop()),
]
for where, remove in removals:
    found = root.get(where)
    if found is None:
        continue
    before = len(found)
    try:
        remove(found)
    except Exception as error:
        print(json.dumps([where, type(error).__name__, before - len(found)]))
    else:
        print(json.dumps([where, None, before - len(found)]))
