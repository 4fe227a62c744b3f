"""Mode `lean`: coroutines on a loop of ungil's own, without asyncio.

They may await the functions of `ungil.fanout`, and whatever awaits only those.
"""

from ungil._native import Lean


class Loop(Lean):
    """The loop of one fan-out."""

    def wake(self) -> None:
        """Nothing is to do: a signal lets `advance` look, and no wait is longer than a second."""

    def close(self, *, wait: bool = True) -> None:
        """Cancels what runs; there is nothing that cannot be cancelled."""
        super().close()

    def __del__(self) -> None:
        # Whoever leaves a fan-out in the middle does not wait for the rest, but their `finally`
        # blocks run, also those that have to await something.
        self.close()
