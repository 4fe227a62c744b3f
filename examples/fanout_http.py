"""Many web pages at once, in a program that has an event loop: httpx.

Pages are printed as they arrive. There are never more than a few requests at once to one server,
however many of its pages are asked for; what failed because a server had too much to do is asked
for again.

    pip install ungil httpx
    python examples/fanout_http.py urls.txt
"""

import argparse
import asyncio
import sys
from pathlib import Path
from urllib.parse import urlsplit

try:
    import httpx
except ModuleNotFoundError as missing:
    sys.exit(f"{missing.name} is not installed: pip install httpx")

from ungil.fanout import Backoff, Fanout


def server(url: str) -> str:
    """Whose page it is."""
    return urlsplit(url).netloc


def worth_another(error: Exception) -> bool:
    """Whether it may go better next time: a page that does not exist will not."""
    if isinstance(error, httpx.HTTPStatusError):
        return error.response.status_code in (429, 502, 503, 504)
    return isinstance(error, httpx.TransportError)


async def main() -> int:
    """Reads the command line; 1 if a page did not come."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("urls", type=Path, help="file with a URL on each line")
    parser.add_argument("--timeout", type=float, default=30, help="seconds for each attempt [30]")
    parser.add_argument("--per-server", type=int, default=4, help="requests at once [4]")
    options = parser.parse_args()
    urls: list[str] = options.urls.read_text().split()

    # How many there may be at once is decided in one place, which is not the pool of connections.
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=100)
    failed = 0
    async with (
        httpx.AsyncClient(limits=limits, timeout=None) as client,
        Fanout(
            timeout=options.timeout,
            retries=3,
            retry_if=worth_another,
            backoff=Backoff(0.1),
            group=server,
            per_group=options.per_server,
        ) as f,
    ):

        async def get(url: str) -> int:
            answer = await client.get(url)
            answer.raise_for_status()
            return len(answer.content)

        async for outcome in f.stream(get, urls):
            if outcome.ok:
                print(f"{outcome.item}: {outcome.value} bytes")
            else:
                failed += 1
                reason = str(outcome.exception) or repr(outcome.exception)
                print(f"{outcome.item}: {reason.splitlines()[0]}", file=sys.stderr)
    print(f"{len(urls)} pages, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
