"""A program that a thread starts when the main thread has ended."""

import subprocess
import threading


def run():
    threading.main_thread().join()
    print(subprocess.run(["echo", "started"], capture_output=True))


threading.Thread(target=run).start()
