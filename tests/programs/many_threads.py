"""Many threads alive at once, each of which lets go of the GIL a known number of times.

Usage: many_threads.py THREADS TIMES; runs on Python 3.8 and later. Thread "many-N" calls os.write
once and os.read TIMES times. Prints "alive" when all have started; ends when stdin does.
"""

import os
import sys
import threading

count, times = int(sys.argv[1]), int(sys.argv[2])
ready, gate = os.pipe(), os.pipe()


def read_often():
    os.write(ready[1], b"x")
    for _ in range(times):
        os.read(gate[0], 1)  # waits until the gate is closed, then finds the end


threading.stack_size(256 * 1024)
threads = [threading.Thread(target=read_often, name="many-%d" % number) for number in range(count)]
for thread in threads:
    thread.start()
for _ in threads:
    os.read(ready[0], 1)
print("alive", flush=True)
sys.stdin.read()
os.close(gate[1])
for thread in threads:
    thread.join()
