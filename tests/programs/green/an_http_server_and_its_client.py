"""An HTTP server and its client."""

import http.server
import threading
import urllib.request


class Hello(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(self.path.encode())

    def log_message(self, *_):
        pass


with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hello) as server:
    threading.Thread(target=server.serve_forever).start()
    with urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/hello") as answer:
        print(answer.status, answer.read())
    server.shutdown()
