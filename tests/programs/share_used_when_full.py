"""Uses a heap that is full: reads, takes out, and puts in again.

share_used_when_full.py HEAP
"""

import json
import sys

from ungil import share

root = share.Heap.open(sys.argv[1]).root
said = {"seen": sum(len(inner) for inner in root["lists"].copy())}
said["nested"] = root["by name"]["one"]["two"]
said["popped"] = root["many"].pop(0), root["ring"].popleft(), root["names"].pop("name 3")
del root["many"][10:400]
root["members"].remove(7)
with root["lock"]:
    root["ring"].rotate(3)
said["left"] = len(root["many"]), len(root["ring"]), len(root["names"]), len(root["members"])
del root["filling"]
root["again"] = ["there is room", {"once": "more"}]
print(json.dumps(said))
