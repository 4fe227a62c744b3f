"""A program to be frozen: three threads, and the page that tells its policy, if there is one."""

import io
import sys
import threading


def work():
    for _ in range(20):
        with io.open("/dev/null") as file:
            file.read()


threads = [threading.Thread(target=work, name="worker-%d" % i) for i in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
with io.open("/proc/self/maps") as maps:
    pages = [line.split()[-1] for line in maps if "/ungil-policy-" in line]
print(sys.version_info[0], " ".join(pages))
