"""aiohttp: small requests on the event loop, computing ones by `run_in_executor`."""

import asyncio
import sys
from concurrent.futures import ThreadPoolExecutor

from aiohttp import web
from computing import compute

pool = ThreadPoolExecutor(max_workers=16)


async def small(_request: web.Request) -> web.Response:
    """Answered by the loop."""
    return web.json_response({"status": "ok"})


async def computed(_request: web.Request) -> web.Response:
    """Computed in the pool."""
    total = await asyncio.get_running_loop().run_in_executor(pool, compute)
    return web.json_response({"total": total})


app = web.Application()
app.add_routes([web.get("/small", small), web.get("/compute", computed)])

if __name__ == "__main__":
    web.run_app(app, host="127.0.0.1", port=int(sys.argv[1]), print=None)
