"""A thread asks dicts that another one has made, each of them twice."""

import sys
import threading

# Of a value that is not immortal 3.13 locks the dict once more.
dicts = [{"key": None} for _ in range(int(sys.argv[1]))]


def ask():
    for _ in range(2):
        for each in dicts:
            each.get("key")


thread = threading.Thread(target=ask, name="asks")
thread.start()
thread.join()
