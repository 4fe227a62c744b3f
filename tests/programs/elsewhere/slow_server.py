"""Answers each line with a line, a quarter of a second later, and prints its port."""

import socketserver
import time


class Slow(socketserver.StreamRequestHandler):
    """A connection."""

    def handle(self):
        """Answer until it is closed."""
        while line := self.rfile.readline():
            time.sleep(0.25)
            self.wfile.write(line)


with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Slow) as server:
    server.daemon_threads = True
    print(server.server_address[1], flush=True)
    server.serve_forever()
