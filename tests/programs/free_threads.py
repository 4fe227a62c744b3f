"""Three threads that let go 20 times each; before them an import, if one is named."""

import io
import sys
import threading

if sys.argv[1:]:
    __import__(sys.argv[1])


def work():
    for _ in range(20):
        with io.open("/dev/null") as file:
            file.read()


threads = [threading.Thread(target=work, name="worker-%d" % i) for i in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(sys._is_gil_enabled())
