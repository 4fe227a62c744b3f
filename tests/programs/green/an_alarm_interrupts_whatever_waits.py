"""An alarm interrupts whatever waits."""

import signal
import threading
import time


class Late(Exception):
    pass


def handle(number, frame):
    raise Late(number)


signal.signal(signal.SIGALRM, handle)
print(signal.getsignal(signal.SIGALRM) is handle)
sleeper = threading.Thread(target=time.sleep, args=(3600,), daemon=True)
sleeper.start()
for wait in (sleeper.join, threading.Event().wait, lambda: time.sleep(3600)):
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        wait()
    except Late as late:
        print("late", late)
print(signal.signal(signal.SIGALRM, signal.SIG_DFL) is handle)
print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)
