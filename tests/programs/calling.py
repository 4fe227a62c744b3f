"""One thread calls a C function that keeps the GIL while another wants it, until a file is there.

Ten times at least: once may be no more than one long hold.

Usage: calling.py FUNCTION OVER, where FUNCTION is one of those below; runs on Python 3.
"""

import json
import re
import sys
import threading
from pathlib import Path

function, over = sys.argv[1:]
NUMBERS = [] if function == "parse_line" else [n * 7919 % 1000003 for n in range(1500000)]
TEXT = json.dumps(NUMBERS) if function == "load" else ""


def parse_line():
    re.match("(a+)+$", "a" * 21 + "b")


def load():
    json.loads(TEXT)


def rank():
    sorted(NUMBERS)


def call():
    called = 0
    while called < 10 or not Path(over).exists():
        globals()[function]()
        called += 1


def want():
    while calling.is_alive():
        pass


calling = threading.Thread(target=call, name="calling")
calling.start()
threading.Thread(target=want, name="wanting").start()
