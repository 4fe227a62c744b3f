"""A thread asks dicts that another one has made, each of them twice."""

import sys
import threading

dicts = [{"key": number} for number in range(int(sys.argv[1]))]


def ask():
    for _ in range(2):
        for each in dicts:
            each.get("key")


thread = threading.Thread(target=ask, name="asks")
thread.start()
thread.join()
