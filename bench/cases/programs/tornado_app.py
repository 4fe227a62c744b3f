"""Tornado: small requests on the event loop, computing ones by its `run_in_executor`."""

import asyncio
import sys
from concurrent.futures import ThreadPoolExecutor

from computing import compute
from tornado.ioloop import IOLoop
from tornado.web import Application, RequestHandler

pool = ThreadPoolExecutor(max_workers=16)


class Small(RequestHandler):
    """Answered by the loop."""

    def get(self) -> None:
        """A small answer."""
        self.write({"status": "ok"})


class Computed(RequestHandler):
    """Computed in the pool."""

    async def get(self) -> None:
        """An answer that takes a while."""
        total = await IOLoop.current().run_in_executor(pool, compute)
        self.write({"total": total})


async def main() -> None:
    """Serves until it is ended."""
    Application([("/small", Small), ("/compute", Computed)]).listen(int(sys.argv[1]), "127.0.0.1")
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
