"""Answers datagrams in one thread while others compute.

    response.py THREADS [INTERVAL]

Sets the switch interval to INTERVAL seconds, where there is one. Prints {"port": P}. The datagrams
`begin` and `end` bound what is measured. Ends after `end`, with a line of JSON: how many rounds the
computing threads made meanwhile, in which wall and CPU time.

Runs on every Python since 2.7.
"""
from __future__ import print_function

import json
import os
import socket
import sys
import threading
import time

clock = getattr(time, "perf_counter", time.time)
ROUND = 1000
over = False


def compute(number, rounds):
    while not over:
        left = ROUND
        while left > 0:
            left -= 1
        rounds[number] += 1


def reading(rounds):
    used = os.times()
    return [clock(), used[0] + used[1], sum(rounds)]


def answer(channel, rounds):
    begun = reading(rounds)
    while True:
        message, sender = channel.recvfrom(64)
        if message == b"begin":
            begun = reading(rounds)
        if message == b"end":
            measured = [after - before for before, after in zip(begun, reading(rounds))]
        channel.sendto(message, sender)
        if message == b"end":
            return measured


threads = int(sys.argv[1])
if len(sys.argv) > 2:
    sys.setswitchinterval(float(sys.argv[2]))
channel = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
channel.bind(("127.0.0.1", 0))
# Against a client that is gone.
channel.settimeout(60)
rounds = [0] * threads
computing = [threading.Thread(target=compute, args=(n, rounds)) for n in range(threads)]
for thread in computing:
    thread.daemon = True
    thread.start()
print(json.dumps({"port": channel.getsockname()[1]}))
sys.stdout.flush()
wall_s, cpu_s, made = answer(channel, rounds)
over = True
for thread in computing:
    thread.join()
print(json.dumps({"wall_s": wall_s, "cpu_s": cpu_s, "rounds": made}))
