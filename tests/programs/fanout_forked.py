"""An item of a fan-out forks, and the child goes on as if it were the parent."""

import os

from ungil.fanout import fanout, sleep


def say(*words):
    # A whole line, so that those of two processes do not mix.
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


async def task(item):
    try:
        if item == 1 and os.fork() == 0:
            say("forked")
        await sleep(0.1)
    finally:
        say("cleaned", item)
    return item


parent = os.getpid()
try:
    say([outcome.value for outcome in fanout(task, range(3), mode="lean")])
except RuntimeError as error:
    say(str(error).replace(str(parent), "PARENT"))
    os._exit(7)
say(os.wait()[1] >> 8)
