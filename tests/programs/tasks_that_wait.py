"""Functions for `ungil fanout` that say when they begin, and wait.

What each prints is one write, for threads print at the same time.
"""

import time
from pathlib import Path

from ungil.fanout import sleep


async def cleans_up(host):
    print(f"begins {host}", flush=True)
    try:
        await sleep(1000)
    finally:
        print(f"cleaned up {host}", flush=True)


def waits_for_a_file(host):
    print(f"begins {host}", flush=True)
    while not Path("go").exists():
        time.sleep(0.01)
    return "went"


def sleeps(host):
    print(f"begins {host}", flush=True)
    time.sleep(1000)
