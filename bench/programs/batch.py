"""A batch: a pool of four works off jobs of a kind, and the main thread collects the results.

python bench/programs/batch.py KIND [threads | processes] [SWITCH_INTERVAL_US]
"""

import ast
import csv
import hashlib
import io
import json
import lzma
import re
import statistics
import sys
from collections.abc import Callable
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from xml.etree import ElementTree

LINES = "\n".join(f"{number},name {number},{number * 7 % 1000}" for number in range(6_000))
DOCUMENT = json.dumps([{"id": number, "name": f"name {number}"} for number in range(6_000)])
XML = "<r>" + "".join(f"<i id='{number}'>{number}</i>" for number in range(6_000)) + "</r>"
SOURCE = "\n".join(f"def f{number}(a, b=1):\n    return a + b * {number}" for number in range(400))
DATA = LINES.encode() * 2


def primes(start: int) -> int:
    """How many there are in a stretch of numbers."""
    numbers = range(start * 400 + 2, start * 400 + 402)
    return sum(all(it % by for by in range(2, int(it**0.5) + 1)) for it in numbers)


def parse_json(_: int) -> int:
    """In C, with the GIL."""
    return len(json.loads(DOCUMENT))


def search(_: int) -> int:
    """In C, with the GIL."""
    return len(re.findall(r"name (\d+)[^,]*,(\d*5)\b", LINES))


def average(_: int) -> float:
    """In C and Python."""
    return statistics.fmean(int(row[2]) for row in csv.reader(io.StringIO(LINES)))


def parse_xml(_: int) -> int:
    """In C and Python."""
    return sum(int(it.text or 0) for it in ElementTree.fromstring(XML).iter("i"))


def parse_source(_: int) -> int:
    """In C, with the GIL."""
    return len(ast.parse(SOURCE).body)


def compress(_: int) -> int:
    """In C, mostly without the GIL."""
    return len(lzma.compress(DATA, preset=0))


def digest(_: int) -> str:
    """In C, without the GIL."""
    return hashlib.pbkdf2_hmac("sha256", b"password", b"salt", 12_000).hex()


KINDS: dict[str, tuple[Callable[[int], object], int]] = {
    "primes": (primes, 700),
    "json": (parse_json, 400),
    "regex": (search, 500),
    "csv": (average, 400),
    "xml": (parse_xml, 250),
    "ast": (parse_source, 180),
    "lzma": (compress, 90),
    "pbkdf2": (digest, 300),
}


def main(kind: str, pool: str = "threads", interval_us: str = "") -> None:
    """Work it all off."""
    if interval_us:
        sys.setswitchinterval(float(interval_us) / 1e6)
    job, count = KINDS[kind]
    executor: Executor = ProcessPoolExecutor(4) if pool == "processes" else ThreadPoolExecutor(4)
    with executor:
        print(len(list(executor.map(job, range(count)))))


if __name__ == "__main__":
    main(*sys.argv[1:])
