"""Computes in four threads while a timer interrupts them TIMES times.

Usage: interrupted.py TIMES; runs on Python 2.7 and later.
"""

import signal
import sys
import threading

times = int(sys.argv[1])
interrupted = 0


def interrupt(*_):
    global interrupted
    interrupted += 1


def compute():
    while interrupted < times:
        sum(range(1000))


signal.signal(signal.SIGALRM, interrupt)
signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
threads = [threading.Thread(target=compute) for _ in range(3)]
for thread in threads:
    thread.start()
compute()
signal.setitimer(signal.ITIMER_REAL, 0)
for thread in threads:
    thread.join()
