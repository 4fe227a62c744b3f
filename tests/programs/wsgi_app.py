"""A WSGI application that says which process answers, and which page tells that its policy."""

import io
import os
import threading


def burn():
    while True:
        sum(range(10000))


threading.Thread(target=burn, name="burner", daemon=True).start()


def application(environ, start_response):
    with io.open("/proc/self/maps") as maps:
        pages = [line.split()[-1] for line in maps if "/ungil-policy-" in line]
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [("%d %s" % (os.getpid(), " ".join(pages))).encode()]
