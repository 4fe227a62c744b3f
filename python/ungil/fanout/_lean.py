"""Mode `lean`: coroutines on a loop of ungil's own, without asyncio.

They may await the functions of `ungil.fanout`, and whatever awaits only those.
"""

from ungil._native import Lean


class Loop(Lean):
    """The loop of one fan-out."""

    __slots__ = ()

    def __del__(self) -> None:
        # Whoever leaves a fan-out in the middle does not wait for the rest, but their `finally`
        # blocks run, also those that have to await something.
        self.close()
