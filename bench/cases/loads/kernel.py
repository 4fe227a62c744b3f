"""Asks a Jupyter kernel, as a notebook does, while a cell's threads compute in it.

    kernel.py CONNECTION_FILE --asks cell|heartbeat --threads N --seconds S --rate R

An answer counts when this process has read it.
"""

import argparse
from collections.abc import Callable

import pacing
import zmq
from jupyter_client.blocking.client import BlockingKernelClient

PATIENCE_S = 60.0


def cell(client: BlockingKernelClient) -> Callable[[], None]:
    """Executes a cell that does nothing."""

    def ask() -> None:
        execute(client, "pass")

    return ask


def heartbeat(client: BlockingKernelClient) -> Callable[[], None]:
    """Sends what a notebook sends to see whether its kernel lives."""
    channel: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.REQ)
    channel.rcvtimeo = int(PATIENCE_S * 1e3)
    channel.connect(f"tcp://{client.ip}:{client.hb_port}")

    def ask() -> None:
        channel.send(b"ping")
        channel.recv()

    return ask


def execute(client: BlockingKernelClient, code: str) -> None:
    """Run a cell, and wait until it is done."""
    asked = client.execute(code, store_history=False)
    while True:
        answer = client.get_shell_msg(timeout=PATIENCE_S)
        if answer["parent_header"].get("msg_id") == asked:
            break
    if answer["content"]["status"] != "ok":
        raise SystemExit(f"the cell {code!r} failed: {answer['content']}")


def main() -> None:
    """Measures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("connection_file")
    parser.add_argument("--asks", choices=["cell", "heartbeat"], required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--rate", type=float, required=True)
    options = parser.parse_args()
    client = BlockingKernelClient(connection_file=options.connection_file)
    client.load_connection_file()
    client.start_channels()
    client.wait_for_ready(timeout=PATIENCE_S)
    execute(client, f"import computing; computing.start({options.threads})")
    ask = {"cell": cell, "heartbeat": heartbeat}[options.asks](client)
    pacing.measure_blocking(ask, options.rate, options.seconds)


if __name__ == "__main__":
    main()
