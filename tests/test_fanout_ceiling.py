"""How many items may run at once where nobody says."""

import subprocess
import sys

LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (200, 200))
opened = [open("/dev/null") for _ in range(int(sys.argv[1]))]
from ungil.fanout._ceiling import ceiling
print(*ceiling(threads=False), sep="|")
"""


def ceiling_with(opened: int) -> tuple[int, str]:
    command = [sys.executable, "-c", LIMITED, str(opened)]
    most, why = subprocess.check_output(command, text=True).strip().split("|")
    return int(most), why


def test_no_more_items_run_than_there_are_descriptors_left() -> None:
    few, why = ceiling_with(opened=0)
    assert 100 < few < 200 - 64
    assert why == "200 file descriptors (ulimit -n)"
    fewer, _ = ceiling_with(opened=30)
    assert fewer == few - 30


def test_one_item_may_always_run() -> None:
    most, _ = ceiling_with(opened=150)
    assert most == 1


def test_threads_are_held_by_the_memory_that_their_stacks_take() -> None:
    from ungil.fanout._ceiling import ceiling

    assert 1 <= ceiling(threads=True)[0] <= ceiling(threads=False)[0]


def test_no_more_threads_run_than_can_wait_for_the_gil() -> None:
    from ungil.fanout._ceiling import ceiling

    assert ceiling(threads=True)[0] <= 2_000
