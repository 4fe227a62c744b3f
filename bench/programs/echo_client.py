"""Sends datagrams at fixed times and measures the answers.

Open loop: request k is due at k / rate. One that is due while its predecessor has no answer yet is
sent after it, but counted from when it was due, as the user who waits for it would. Closed loop: a
request is due 1 / rate after the answer to its predecessor. Prints the delays in milliseconds: from
due time for all that were due, from the sending for those served.
"""

import argparse
import gc
import os
import socket
import time
from pathlib import Path

import work
from echo import BEGIN, END

# Not measured, for the server to fall into its ways.
WARM_UP_S = 0.3
PATIENCE_S = 30.0


def main() -> None:
    """Measures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("port", type=int)
    parser.add_argument("--rate", type=float, required=True, help="requests a second")
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--closed", action="store_true", help="loop")
    parser.add_argument("--core", type=int)
    options = parser.parse_args()
    if options.core is not None:
        os.sched_setaffinity(0, {options.core})
    # The kernel may end a sleep 50 us late, to end several at once (proc_pid_timerslack_ns(5)).
    Path("/proc/self/timerslack_ns").write_text("1", encoding="ascii")
    channel = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    channel.settimeout(PATIENCE_S)
    channel.connect(("127.0.0.1", options.port))

    def exchange(message: bytes) -> None:
        channel.send(message)
        channel.recv(64)

    end_s = time.perf_counter() + WARM_UP_S
    while time.perf_counter() < end_s:
        exchange(b"warm up")
        time.sleep(0.01)
    gc.disable()
    exchange(BEGIN)
    from_due: list[float] = []
    from_sent: list[float] = []
    period_s = 1 / options.rate
    count = int(options.seconds * options.rate)
    began_s = time.perf_counter() + period_s
    now_s = began_s - period_s
    for number in range(count):
        due_s = now_s + period_s if options.closed else began_s + number * period_s
        left_s = due_s - time.perf_counter()
        if left_s > 0:
            time.sleep(left_s)
        sent_s = time.perf_counter()
        exchange(b"request")
        now_s = time.perf_counter()
        from_due.append((now_s - due_s) * 1e3)
        from_sent.append((now_s - sent_s) * 1e3)
        if now_s > began_s + options.seconds:
            break
    # Overloaded: what is due and was not sent has waited at least until now.
    late_ms = [
        max(0.0, (now_s - began_s - number * period_s) * 1e3)
        for number in range(len(from_sent), 0 if options.closed else count)
    ]
    exchange(END)
    work.say({"from_due_ms": from_due + late_ms, "from_sent_ms": from_sent})


if __name__ == "__main__":
    main()
