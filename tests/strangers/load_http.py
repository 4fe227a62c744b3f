"""Asks a server of sums over HTTP, on four connections: load_http.py PORT.

It says "ready" after the first answer, and at the end of its input how many there were and how many
were wrong.
"""

import http.client
import json
import random
import sys
import threading
import time

port = int(sys.argv[1])
is_over = threading.Event()
answers, wrong = [0] * 4, []


def first():
    """The server may still be starting."""
    end = time.monotonic() + 60
    while True:
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            connection.request("GET", "/10")
            assert connection.getresponse().read() == b"45"
            return connection
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)


def ask(number, connection):
    """Ask until it is over."""
    chance = random.Random(number)
    while not is_over.is_set():
        below = chance.randrange(5000)
        try:
            connection.request("GET", "/%d" % below)
            response = connection.getresponse()
            body = response.read()
            if (response.status, body) != (200, str(sum(range(below))).encode()):
                wrong.append((response.status, body.decode(errors="replace")[:80]))
        except (http.client.HTTPException, OSError) as error:
            # Idle servers close connections that are kept alive.
            wrong.append(repr(error))
            connection.close()
        answers[number] += 1
        time.sleep(0.005)


threads = [threading.Thread(target=ask, args=(number, first())) for number in range(4)]
for thread in threads:
    thread.start()
print("ready", flush=True)
sys.stdin.read()
is_over.set()
for thread in threads:
    thread.join()
print(json.dumps({"answers": sum(answers), "wrong": len(wrong), "such as": wrong[:3]}))
