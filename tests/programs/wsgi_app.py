"""A WSGI application that says which process answers, and which page tells that its policy."""

import io
import os
import threading


def burn():
    while True:
        sum(range(10000))


# Not before the first request: uWSGI's master gives the GIL away before it forks, and a worker that
# is forked while a thread of the master holds the GIL waits for it forever, under ungil or not.
burner = threading.Thread(target=burn, name="burner", daemon=True)
asked = threading.Lock()


def application(environ, start_response):
    if asked.acquire(False):
        burner.start()
    with io.open("/proc/self/maps") as maps:
        pages = [line.split()[-1] for line in maps if "/ungil-policy-" in line]
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [("%d %s" % (os.getpid(), " ".join(pages))).encode()]
