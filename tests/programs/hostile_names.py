"""Threads whose names are HTML, control characters, Arabic, empty, very long, or the same.

Usage: hostile_names.py
"""

import threading
import time

# Long enough for a recorder to read the names.
SECONDS = 0.5

NAMES = [
    "<script>document.title = 'owned'</script>",
    "\u202eevil\u2066",
    "a;b c 12",
    '"quoted\\" {marker.name}',
    "\x1b[31mred\x1b]0;title\x07",
    "line\nbreak\r\ttab",
    "&lt;",
    "",
    " ",
    "' OR 1 = 1; DROP TABLE holds; --",
    "x" * 10_000,
    "same",
    "same",
]


def work():
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        sum(range(20_000))


threads = [threading.Thread(target=work, name=name) for name in NAMES]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
