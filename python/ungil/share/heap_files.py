"""The files that heaps are in, for whoever looks at heaps from outside, as `ungil heap` does.

A heap without a name is in a file that only the processes have which are attached to it: it is
found among the files that they have open, /proc/PID/fd.
"""

from pathlib import Path

from ungil.share._names import FOLDER, names, path_of

__all__ = ["FOLDER", "is_heap", "names", "path_of"]

# As ungil-heap's segment.rs calls the files of heaps without a name, and its header.rs MAGIC.
_ANONYMOUS = "/memfd:ungil-heap"
_MAGIC = b"ungil\0hp"


def is_heap(file: Path) -> bool:
    """Whether `file`, /proc/PID/fd/NUMBER, is a heap, be it one whose name was taken away.

    Raises OSError if it is not there or cannot be looked at.
    """
    target = str(file.readlink())
    if target.startswith(_ANONYMOUS):
        return True
    if not target.startswith(f"{FOLDER}/") or not file.is_file():
        return False
    with file.open("rb") as opened:
        return opened.read(len(_MAGIC)) == _MAGIC
