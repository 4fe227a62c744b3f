"""Asyncio beside threads."""

import asyncio
import threading


async def main():
    print(await asyncio.gather(asyncio.sleep(0.01, 1), asyncio.to_thread(int, "2")))
    process = await asyncio.create_subprocess_exec("echo", "three", stdout=-1)
    print(await process.communicate())


thread = threading.Thread(target=lambda: asyncio.run(main()))
thread.start()
thread.join()
