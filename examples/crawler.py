"""A crawler whose job queue survives kills: a worker that dies loses no page.

The web is a local server of linked pages. Workers lease a page from a shared queue, fetch it, put
what it links to into the queue, and acknowledge it. Each page that is marked kills the first worker
that fetches it, with SIGKILL, after half of its links; the page comes back into the queue, and
another worker fetches it again.

    python examples/crawler.py
"""

import argparse
import http.client
import http.server
import multiprocessing
import multiprocessing.connection
import os
import re
import signal
from typing import Any

from ungil import share

LINK = re.compile(r'href="([^"]+)"')


class Web(http.server.BaseHTTPRequestHandler):
    """Pages in a tree, each of which also links to the first one."""

    pages: int
    root: share.dict[str, Any]

    def do_GET(self) -> None:
        """Serve a page."""
        self.root.incr("fetched")
        number = int(self.path.removeprefix("/page/"))
        links = [child for child in range(3 * number + 1, 3 * number + 4) if child < self.pages]
        body = "".join(f'<a href="/page/{link}">' for link in [*links, 0]).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """The example prints enough."""


def fetch(port: int, path: str) -> list[str]:
    """The links of a page."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    try:
        connection.request("GET", path)
        return LINK.findall(connection.getresponse().read().decode())
    finally:
        connection.close()


def crawl(root: share.dict[str, Any], port: int) -> None:
    """What a worker does, until the queue is closed."""
    jobs: share.Queue[str] = root["jobs"]
    queued, found, deadly = root["queued"], root["found"], root["deadly"]
    while True:
        try:
            lease = jobs.lease()
        except share.ShutDown:
            return
        with lease as path:
            links = fetch(port, path)
            is_deadly = deadly.pop(path, False)
            for number, link in enumerate(links):
                if is_deadly and number == len(links) // 2:
                    os.kill(os.getpid(), signal.SIGKILL)
                # Whoever dies between these two has it put in twice, never lost.
                if link not in queued:
                    jobs.put(link)
                    queued[link] = True
            found[path] = len(links)


def close_when_done(root: share.dict[str, Any]) -> None:
    """End the workers when all pages are done that anybody has put into the queue."""
    root["jobs"].join()
    root["jobs"].close()


def keep_working(root: share.dict[str, Any], port: int, workers: int) -> int:
    """Run workers, and replace those that die; how many did."""
    context = multiprocessing.get_context("fork")

    def started() -> Any:
        worker = context.Process(target=crawl, args=(root, port))
        worker.start()
        return worker

    closer = context.Process(target=close_when_done, args=(root,))
    closer.start()
    crew = [started() for _ in range(workers)]
    died = 0
    while crew:
        multiprocessing.connection.wait([worker.sentinel for worker in crew])
        for worker in [worker for worker in crew if not worker.is_alive()]:
            worker.join()
            crew.remove(worker)
            if worker.exitcode != 0:
                died += 1
                crew.append(started())
    closer.join()
    return died


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pages", type=int, default=300, help="[300]")
    parser.add_argument("--workers", type=int, default=4, help="[4]")
    parser.add_argument("--deaths", type=int, default=10, help="pages that kill a worker [10]")
    options = parser.parse_args()
    root = share.Heap(max_size=1 << 26).root
    root["jobs"] = share.Queue()
    step = max(1, options.pages // options.deaths) if options.deaths else options.pages + 1
    deadly = {f"/page/{number}": True for number in range(0, options.pages, step)}
    deadly = dict(list(deadly.items())[: options.deaths])
    root.update(fetched=0, queued={"/page/0": True}, found={}, deadly=deadly)
    root["jobs"].put("/page/0")
    Web.pages, Web.root = options.pages, root
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Web)
    # In a process of its own, so that no thread of this one holds a lock when workers are forked.
    web = multiprocessing.get_context("fork").Process(target=server.serve_forever, daemon=True)
    web.start()
    died = keep_working(root, server.server_port, options.workers)
    web.terminate()
    web.join()
    server.server_close()
    again = root["fetched"] - options.pages
    print(
        f"{len(root['found'])} of {options.pages} pages were crawled by {options.workers} workers"
    )
    print(f"{died} workers were killed, and {again} pages were fetched again")


if __name__ == "__main__":
    main()
