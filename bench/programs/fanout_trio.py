"""trio: a nursery with a task for each item, on its streams: see fanout_work.py."""

import trio
from fanout_work import QUESTION, Work, host, main


async def _all(work: Work) -> int:
    """A result for each item."""
    results: list[object] = []

    async def sleep(item: int) -> None:
        await trio.sleep(work.rtt_s)
        results.append(item)

    async def talk(item: int) -> None:
        async with await trio.open_tcp_stream(host(item), work.port) as stream:
            await stream.send_all(QUESTION)
            answer = b""
            while not answer.endswith(b"\n"):
                more = await stream.receive_some()
                if not more:
                    raise ConnectionError
                answer += more
        results.append(answer)

    async with trio.open_nursery() as nursery:
        for item in range(work.items):
            nursery.start_soon(talk if work.port else sleep, item)
    return len(results)


def nursery(work: Work) -> int:
    """In an event loop of its own."""
    return trio.run(_all, work)


if __name__ == "__main__":
    main({"nursery": nursery})
