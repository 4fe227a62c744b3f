"""Prints its stack in a thread, and what goes wrong there and before it."""

import threading
import traceback


def work():
    traceback.print_stack()
    threading.current_thread().name = "renamed"
    raise KeyError(1)


thread = threading.Thread(target=work, name="worker")
thread.start()
thread.join()
try:
    threading.Thread.__new__(threading.Thread).name  # noqa: B018
except AssertionError as error:
    print(error)
try:
    threading.Thread.__new__(threading.Thread).name = "early"
except AssertionError as error:
    print(error)
