"""The ends of a way of iceoryx2's from one process to one other: a publisher and a subscriber.

Both are opened in the process that uses them. A subscriber that finds nothing sleeps until it is
told by an event, as the examples of iceoryx2 do.
"""

import ctypes
import importlib
from typing import Any

# How many items are on their way at most; then the publisher waits.
ON_THEIR_WAY = 1000


class Port:
    """What publishers and subscribers have in common."""

    def __init__(self, name: str) -> None:
        """Nothing is opened yet."""
        self._name = name

    def open(self) -> None:
        """Open the node, the service that carries items, and the one that tells of them."""
        # It has no types.
        self.library: Any = importlib.import_module("iceoryx2")
        self.library.set_log_level(self.library.LogLevel.Error)
        self._node = self.library.NodeBuilder.new().create(self.library.ServiceType.Ipc)
        name = self.library.ServiceName.new(self._name)
        carrying = self._node.service_builder(name).publish_subscribe(
            self.library.Slice[ctypes.c_uint8]
        )
        # With an overflow the oldest items would be lost.
        carrying = carrying.enable_safe_overflow(False).subscriber_max_buffer_size(ON_THEIR_WAY)
        self.items = carrying.open_or_create()
        self.events = self._node.service_builder(name).event().open_or_create()

    def close(self) -> None:
        """Close it all, or its files would be left."""
        del self.items, self.events, self._node


class Sender(Port):
    """Puts bytes in."""

    def open(self) -> None:
        """Open it."""
        super().open()
        waits = self.library.BackpressureStrategy.RetryUntilDelivered
        builder = self.items.publisher_builder().backpressure_strategy(waits)
        self._publisher = builder.initial_max_slice_len(1 << 16).create()
        self._notifier = self.events.notifier_builder().create()

    def __call__(self, item: bytes) -> None:
        """Put one in."""
        sample = self._publisher.loan_slice_uninit(len(item))
        ctypes.memmove(sample.payload_ptr, item, len(item))
        sample.assume_init().send()
        self._notifier.notify()

    def close(self) -> None:
        """Close it."""
        del self._publisher, self._notifier
        super().close()


class Receiver(Port):
    """Takes bytes out."""

    def open(self) -> None:
        """Open it."""
        super().open()
        self._subscriber = self.items.subscriber_builder().create()
        self._listener = self.events.listener_builder().create()

    def __call__(self) -> bytes:
        """Take one out."""
        while (sample := self._subscriber.receive()) is None:
            self._listener.blocking_wait()
        item = bytes(sample.payload().as_memory_view())
        sample.delete()
        return item

    def close(self) -> None:
        """Close it."""
        del self._subscriber, self._listener
        super().close()
