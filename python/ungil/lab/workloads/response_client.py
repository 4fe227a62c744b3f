"""Sends datagrams at fixed times and measures how long the answers take.

    response_client.py PORT RATE SECONDS

Open loop: request k is due at k / RATE. One that is due while its predecessor has no answer yet is
sent after it, but counted from when it was due, as whoever waits for it would. Prints a line of
JSON: the times in milliseconds, and how many requests were not even sent when SECONDS were over;
these count as late as they were then.
"""
from __future__ import print_function

import json
import socket
import sys
import time

# Not measured, for the server to fall into its ways.
WARM_UP = 10
clock = getattr(time, "perf_counter", time.time)
port, rate, seconds = int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3])
channel = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
channel.settimeout(60)
channel.connect(("127.0.0.1", port))


def exchange(message):
    channel.send(message)
    channel.recv(64)


for _ in range(WARM_UP):
    exchange(b"warm up")
    time.sleep(0.002)
exchange(b"begin")
taken_ms = []
count = int(seconds * rate)
begun = clock() + 1 / rate
for number in range(count):
    due = begun + number / rate
    left = due - clock()
    if left > 0:
        time.sleep(left)
    elif clock() > begun + seconds:
        break
    exchange(b"request")
    taken_ms.append((clock() - due) * 1e3)
now = clock()
late_ms = [(now - begun - number / rate) * 1e3 for number in range(len(taken_ms), count)]
exchange(b"end")
print(json.dumps({"taken_ms": taken_ms + late_ms, "unsent": len(late_ms)}))
