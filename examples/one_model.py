"""One model for a machine, however many workers use it.

The model is a table of words with their weights, as large as you like. One process trains it and
freezes it into a file. Workers, which know nothing of each other, map the file: they are ready at
once, and all have the same memory. The same model as a pickle is read and kept by each of them.

    python examples/one_model.py
"""

import argparse
import json
import pickle
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from ungil import share

TEXTS = ["word 1 word 5 word 7", "word 2 word 2", "nothing that it knows"]


def train(words: int) -> dict[str, Any]:
    """The model: for each word a weight for each of two classes, and how often it was seen."""
    weights = {
        f"word-{number}": {"good": number % 7 - 3, "bad": number % 5 - 2, "seen": number}
        for number in range(words)
    }
    return {"version": 1, "weights": weights}


def score(model: Any, text: str) -> int:
    """How good a text is."""
    weights = model["weights"]
    known = [weights[word] for word in text.replace("word ", "word-").split() if word in weights]
    return sum(row["good"] - row["bad"] for row in known)


def work(path: Path) -> None:
    """What a worker does: it loads the model, scores texts, and waits to be looked at."""
    before = own_megabytes()
    began = time.perf_counter()
    model: Any = share.frozen(path) if path.suffix == ".frozen" else pickle.loads(path.read_bytes())
    scores = [score(model, text) for text in TEXTS]
    ready_ms = 1e3 * (time.perf_counter() - began)
    # All of it, as a worker comes to it after some time.
    scores.append(sum(row["good"] for row in model["weights"].values()))
    print("ready", flush=True)
    sys.stdin.readline()
    grown = own_megabytes() - before
    print(json.dumps({"scores": scores, "ready_ms": ready_ms, "grown": grown}), flush=True)
    sys.stdin.readline()


def own_megabytes() -> float:
    """Memory of this process: what it has alone, and its part of what it shares with others."""
    for line in Path("/proc/self/smaps_rollup").read_text(encoding="ascii").splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("smaps_rollup has no Pss")


def show(name: str, path: Path, workers: int) -> object:
    """Let workers use a model, print what that took, and return what they found."""
    words = [sys.executable, __file__, "--work", str(path)]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    crew: list[Any] = [subprocess.Popen(words, **pipes) for _ in range(workers)]
    for worker in crew:
        worker.stdout.readline()
    said: list[dict[str, Any]] = []
    for worker in crew:
        worker.stdin.write("\n")
        worker.stdin.flush()
        said.append(json.loads(worker.stdout.readline()))
    for worker in crew:
        worker.communicate("\n")
    ready_ms = sorted(worker["ready_ms"] for worker in said)[workers // 2]
    together = sum(worker["grown"] for worker in said)
    print(
        f"{name}: a file of {path.stat().st_size / 2**20:.0f} MB; {workers} workers had their "
        f"first results after {ready_ms:.1f} ms, and it takes {together:.0f} MB of all of them "
        "together",
        flush=True,
    )
    if any(worker["scores"] != said[0]["scores"] for worker in said):
        raise SystemExit("the workers do not agree")
    return said[0]["scores"]


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--words", type=int, default=200_000, help="[200000]")
    parser.add_argument("--workers", type=int, default=4, help="[4]")
    parser.add_argument("--work", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work is not None:
        work(options.work)
        return
    model = train(options.words)
    with tempfile.TemporaryDirectory() as folder:
        frozen, pickled = Path(folder) / "model.frozen", Path(folder) / "model.pickle"
        share.freeze(model, frozen)
        pickled.write_bytes(pickle.dumps(model))
        if show("frozen", frozen, options.workers) != show("pickle", pickled, options.workers):
            raise SystemExit("the two models do not agree")


if __name__ == "__main__":
    main()
