"""A data loader with many workers over a big dataset, without a copy for each.

The dataset is a list of records, made before the workers are forked. A worker that looks at records
in random order writes the reference count of each, so that page after page of an ordinary list is
copied, in every worker. A frozen one has no counts. With torch it is torch's DataLoader; without it
a plain loop over forked workers does the same.

    python examples/data_loader.py --rows 2000000 --workers 8
"""

import argparse
import importlib
import importlib.util
import multiprocessing
import os
import random
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from ungil import share

HAS_TORCH = importlib.util.find_spec("torch") is not None
BATCH = 500


def records(count: int) -> list[dict[str, Any]]:
    """The dataset, of some 200 bytes for each row."""
    return [
        {"id": number, "text": f"some text about number {number}, " * 3, "label": number % 10}
        for number in range(count)
    ]


class Dataset:
    """What a DataLoader asks for items."""

    def __init__(self, rows: Sequence[dict[str, Any]]) -> None:
        """Of these records."""
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> tuple[int, int]:
        row = self.rows[index]
        return len(row["text"]), row["label"]


def own_megabytes(process: int) -> float:
    """Memory of a process: what it has alone, and its part of what it has together with others."""
    for line in Path(f"/proc/{process}/smaps_rollup").read_text(encoding="ascii").splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("smaps_rollup has no Pss")


_dataset: Dataset


def _load(batch: list[int]) -> list[tuple[int, int]]:
    """What a worker of the plain loop does; it has the dataset from its parent."""
    return [_dataset[index] for index in batch]


def batches(dataset: Dataset, workers: int, epoch: int) -> Iterator[list[tuple[int, int]]]:
    """All items in random order, loaded by workers."""
    global _dataset
    order = random.Random(epoch).sample(range(len(dataset)), len(dataset))
    parts = [order[start : start + BATCH] for start in range(0, len(order), BATCH)]
    if HAS_TORCH:
        data: Any = importlib.import_module("torch.utils.data")
        yield from data.DataLoader(
            dataset,
            batch_sampler=parts,
            num_workers=workers,
            collate_fn=list,
            multiprocessing_context="fork",
        )
        return
    _dataset = dataset
    with multiprocessing.get_context("fork").Pool(workers) as pool:
        yield from pool.imap(_load, parts)


def train(name: str, rows: Sequence[dict[str, Any]], workers: int) -> None:
    """Go through the dataset, and print what memory that took."""
    dataset = Dataset(rows)
    before = own_megabytes(os.getpid())
    after, labels = 0.0, 0
    for epoch in range(2):
        seen = 0
        for batch in batches(dataset, workers, epoch):
            labels += sum(label for _, label in batch)
            seen += len(batch)
            if seen == len(dataset):
                crew = [worker.pid or 0 for worker in multiprocessing.active_children()]
                after = sum(map(own_megabytes, [os.getpid(), *crew]))
    if labels != 2 * sum(number % 10 for number in range(len(dataset))):
        raise SystemExit("the workers did not read what they should")
    print(
        f"{name}: {before:.0f} MB with the dataset, {after:.0f} MB in all {workers + 1} processes "
        f"after all {len(dataset)} rows",
        flush=True,
    )


def with_list(count: int, workers: int) -> None:
    """With an ordinary list."""
    train("list", records(count), workers)


def freeze_into(path: Path, count: int) -> None:
    """Make the file of the dataset."""
    share.freeze(records(count), path)


def in_process(work: Callable[..., None], *arguments: object) -> None:
    """Do something in a process of its own, whose memory ends with it."""
    process = multiprocessing.get_context("fork").Process(target=work, args=arguments)
    process.start()
    process.join()
    if process.exitcode != 0:
        raise SystemExit(f"{work.__name__} failed")


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=200_000, help="[200000]")
    parser.add_argument("--workers", type=int, default=8, help="[8]")
    options = parser.parse_args()
    print(
        f"loaded by {'torch' if HAS_TORCH else 'a plain loop: torch is not installed'}", flush=True
    )
    in_process(with_list, options.rows, options.workers)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "dataset.frozen"
        in_process(freeze_into, path, options.rows)
        train("share.freeze", share.frozen(path), options.workers)


if __name__ == "__main__":
    main()
