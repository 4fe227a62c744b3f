"""Frozen files, and frozen structures on their way to other processes."""

from __future__ import annotations

import multiprocessing
import pickle
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import share_workers
from suite import PATIENCE_S

from ungil import share

TABLE: dict[Any, Any] = {
    "rows": [{"id": number, "name": f"the name of number {number}"} for number in range(200)],
    "by name": {f"name {number}": (number, [number]) for number in range(100)},
    "sets": {1, "two"},
    3: None,
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file with TABLE."""
    share.freeze(TABLE, tmp_path / "table.frozen")
    return tmp_path / "table.frozen"


def refused(path: Path, **options: bool) -> str:
    """Why a file is not mapped."""
    with pytest.raises((OSError, ValueError)) as caught:
        share.frozen(path, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value).replace(str(path), "PATH")


def test_a_file_is_read_as_it_was_written(path: Path) -> None:
    assert share.frozen(path) == TABLE
    assert share.frozen(str(path), verify=True) == TABLE
    share.freeze([1], path)
    assert share.frozen(path) == [1]
    assert [*path.parent.iterdir()] == [path]


def test_who_has_the_old_file_keeps_it_when_a_new_one_takes_its_place(path: Path) -> None:
    old = share.frozen(path)
    share.freeze({"new": True}, path)
    assert old == TABLE
    # Also on its way: the name means another file by now.
    code = "import pickle, sys; print(len(pickle.load(sys.stdin.buffer)['rows']))"
    ended = subprocess.run(
        [sys.executable, "-c", code],
        input=pickle.dumps(old),
        capture_output=True,
        timeout=PATIENCE_S,
    )
    assert (ended.stdout, ended.stderr) == (b"200\n", b"")


def test_what_is_no_frozen_file_is_refused_in_one_sentence(path: Path) -> None:
    whole = path.read_bytes()
    path.write_bytes(b"PK\3\4 and more")
    assert refused(path) == "PATH: this is not a frozen file: its first bytes are different"
    path.write_bytes(b"")
    assert refused(path) == "PATH: this is not a frozen file: its first bytes are different"
    path.write_bytes(whole[:-1])
    assert refused(path) == (
        f"PATH: this frozen file is cut off: it has {len(whole) - 1} bytes of {len(whole)}"
    )
    path.write_bytes(whole[:8] + b"\2" + whole[9:])
    assert refused(path) == (
        "PATH: this file has format 2, but this ungil reads format 1: freeze the data again, or "
        "use the ungil that made the file"
    )
    path.write_bytes(whole[:40] + bytes([whole[40] ^ 1]) + whole[41:])
    assert refused(path) == (
        "PATH: this frozen file is damaged: the checksum of its header is wrong"
    )
    path.write_bytes(whole[:500] + bytes([whole[500] ^ 1]) + whole[501:])
    assert refused(path, verify=True) == (
        "PATH: this frozen file is damaged: the checksum of its contents is wrong"
    )
    assert "No such file" in refused(path.with_name("missing"))
    assert refused(path.parent).endswith("this is not a frozen file: its first bytes are different")


def test_a_file_that_cannot_be_written_says_so_and_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="No such file or directory"):
        share.freeze(TABLE, tmp_path / "no" / "such" / "folder")
    with pytest.raises(TypeError, match="cannot be frozen"):
        share.freeze([[1], object()], tmp_path / "table")
    assert [*tmp_path.iterdir()] == []


def test_a_full_disk_is_an_error_and_leaves_the_old_file(path: Path) -> None:
    code = (
        "import resource, signal, sys\n"
        "from ungil import share\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))\n"
        "try:\n"
        "    share.freeze([[number] for number in range(200_000)], sys.argv[1])\n"
        "except OSError as error:\n"
        "    print(error)\n"
    )
    words = [sys.executable, "-c", code, str(path)]
    ended = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE_S)
    assert ended.stderr == ""
    assert ended.stdout.startswith("[Errno 27] writing a frozen structure: File too large: ")
    assert share.frozen(path, verify=True) == TABLE
    assert [*path.parent.iterdir()] == [path]


def test_a_writer_that_is_killed_leaves_the_old_file(path: Path) -> None:
    code = (
        "import os, signal, sys\n"
        "from ungil import share\n"
        "share.freeze([[number] for number in range(1_000_000)], sys.argv[1],\n"
        "             progress=lambda _: os.kill(os.getpid(), signal.SIGKILL))\n"
    )
    ended = subprocess.run([sys.executable, "-c", code, str(path)], timeout=PATIENCE_S)
    assert ended.returncode == -signal.SIGKILL
    assert share.frozen(path, verify=True) == TABLE


def test_progress_is_told_in_bytes() -> None:
    told: list[int] = []
    share.freeze([[number] for number in range(400_000)], progress=told.append)
    assert len(told) > 1
    assert told == sorted(told)
    with pytest.raises(ZeroDivisionError):
        share.freeze([[number] for number in range(400_000)], progress=lambda _: 1 // 0)


def _use(frozen: Any, levels: int = 4) -> None:
    """Reads what can be reached; damage makes errors, or other values."""
    try:
        repr(frozen)
        items = list(frozen.values()) if hasattr(frozen, "values") else list(frozen)
        print(frozen == TABLE)
        frozen.thaw()
    except (ValueError, KeyError, TypeError, RuntimeError, ImportError, MemoryError):
        return
    for item in items[:20] if levels else []:
        if hasattr(item, "thaw"):
            _use(item, levels - 1)


def test_a_damaged_file_makes_errors_or_wrong_values_and_nothing_worse(path: Path) -> None:
    whole = path.read_bytes()
    chance = random.Random(5)
    for number in range(300):
        damaged = bytearray(whole)
        for _ in range(chance.choice([1, 1, 4])):
            at = chance.randrange(128, len(damaged))
            damaged[at] = chance.choice([0, 255, damaged[at] ^ 1 << chance.randrange(8), 20, 21])
        file = path.with_name(f"damaged {number}")
        file.write_bytes(damaged)
        try:
            frozen = share.frozen(file)
        except ValueError:
            continue
        _use(frozen)


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
@pytest.mark.parametrize("has_path", [True, False])
def test_frozen_structures_are_arguments_of_processes(
    method: str, has_path: bool, tmp_path: Path
) -> None:
    frozen = share.freeze(TABLE, tmp_path / "table" if has_path else None)
    part = share.freeze([*range(10)])[2:8]
    context: Any = multiprocessing.get_context(method)
    ours, theirs = context.Pipe()
    worker = context.Process(target=share_workers.read_frozen, args=(frozen, part, theirs))
    worker.start()
    theirs.close()
    assert ours.recv() == ["the name of number 7", [2, 3, 4, 5, 6, 7]]
    worker.join()


def test_frozen_structures_can_be_put_into_a_heap(path: Path) -> None:
    heap = share.Heap(max_size=1 << 22)
    heap.root["table"] = share.frozen(path)
    heap.root["list"] = [share.freeze([1, 2, 3])[1:]]
    assert heap.root["table"] == TABLE
    assert heap.root["list"][0] == [2, 3]
    # Equal is what is the same.
    assert heap.root["table"]["rows"] == TABLE["rows"]


def test_what_was_frozen_without_a_path_ends_with_the_last_process_that_has_it() -> None:
    code = (
        "import pickle, sys\n"
        "from ungil import share\n"
        "sys.stdout.buffer.write(pickle.dumps(share.freeze([1])))"
    )
    left = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, timeout=PATIENCE_S, check=True
    ).stdout
    with pytest.raises(FileNotFoundError, match="the process that sent it has ended; freeze with"):
        pickle.loads(left)


def test_eight_readers_have_one_copy_of_it(tmp_path: Path) -> None:
    rows = [{"id": number, "text": f"some text about number {number}"} for number in range(200_000)]
    path = tmp_path / "rows"
    share.freeze(rows, path)
    size = path.stat().st_size
    del rows
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "from ungil import share\n"
        "rows = share.frozen(sys.argv[1])\n"
        "assert sum(row['id'] for row in rows) == 19_999_900_000\n"
        "print('read', flush=True)\n"
        "sys.stdin.readline()\n"
        "maps = Path('/proc/self/smaps').read_text().split(sys.argv[1])[1]\n"
        "print(*(maps.split(name + ':')[1].split()[0] for name in ('Pss', 'Private_Dirty')))\n"
    )
    words = [sys.executable, "-c", code, str(path)]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    readers = [subprocess.Popen(words, **pipes) for _ in range(8)]
    for reader in readers:
        assert reader.stdout is not None
        assert reader.stdout.readline() == "read\n"
    # One after the other, while all of them have it.
    seen: list[tuple[int, int]] = []
    for reader in readers:
        assert reader.stdin is not None
        assert reader.stdout is not None
        reader.stdin.write("\n")
        reader.stdin.flush()
        shared, own = map(int, reader.stdout.readline().split())
        seen.append((shared, own))
    for reader in readers:
        reader.communicate(timeout=PATIENCE_S)
    assert [own for _, own in seen] == [0] * 8
    # All have read all of it, so that each has an eighth as long as the others are there.
    assert seen[0][0] * 1024 <= size / 8 * 1.1
