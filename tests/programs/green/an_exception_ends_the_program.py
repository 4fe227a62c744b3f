"""An exception ends the program."""

import threading


def fail(number):
    return 1 / number


threading.Thread(target=print, args=("thread",)).start()
fail(0)
