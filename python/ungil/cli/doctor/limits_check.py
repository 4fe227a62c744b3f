"""What limits this process has: those of setrlimit, and those of its container."""

from __future__ import annotations

import resource
from collections.abc import Iterator, Mapping
from pathlib import Path

from ungil.cli.doctor.check import Check, Status
from ungil.cli.doctor.remedy import ADDRESSES, FILE_SIZE, FILES, Remedy
from ungil.cli.doctor.system_file import text_of
from ungil.formatting import MEBIBYTE

# A recorder has some 20 files open, and one more for each process that it records.
ENOUGH_FILES = 64
# The table of a process takes a gibibyte of addresses, most of which never get memory.
ENOUGH_ADDRESSES = 4 << 30
# That table is a file of that length.
ENOUGH_FILE_SIZE = 2 << 30
GROUPS = Path("/sys/fs/cgroup")


def check_limits(place: str | None) -> Check:
    """The limits of this process."""
    found = {name: resource.getrlimit(name)[0] for name in LIMITS}
    return judged(found, container_limits(GROUPS, text_of("/proc/self/cgroup")), place)


LIMITS: dict[int, tuple[int, str, Remedy]] = {
    resource.RLIMIT_FSIZE: (ENOUGH_FILE_SIZE, "a file may have at most {} bytes", FILE_SIZE),
    resource.RLIMIT_NOFILE: (ENOUGH_FILES, "at most {} files may be open", FILES),
    resource.RLIMIT_AS: (
        ENOUGH_ADDRESSES,
        "a process may have at most {} bytes of address space",
        ADDRESSES,
    ),
}


def judged(limits: Mapping[int, int], container: list[str], place: str | None) -> Check:
    """What these limits mean; `container` is what its container limits, in words."""
    short = [
        (words.format(f"{limits[name]:,}"), remedy)
        for name, (enough, words, remedy) in LIMITS.items()
        if limits[name] != resource.RLIM_INFINITY and limits[name] < enough
    ]
    text = "; ".join([*(words for words, _ in short), *container])
    if not short:
        return Check(Status.OK, "limits", text or "none below what ungil needs")
    advice = "; ".join(remedy.sentence(place) for _, remedy in short)
    return Check(Status.WARN, "limits", text, advice)


def container_limits(groups: Path, memberships: str) -> list[str]:
    """What the control groups below `groups` limit, version 1 or 2.

    `memberships` is /proc/self/cgroup. A container sees its own group as the root.
    """
    shares: list[float] = []
    sizes: list[int] = []
    for line in memberships.splitlines():
        _, _, rest = line.partition(":")
        controllers, _, group = rest.partition(":")
        root = groups / controllers.removeprefix("name=")
        for folder in _upwards(root, group):
            shares += _shares(folder)
            sizes += _sizes(folder)
    said: list[str] = []
    if shares:
        limit = f"the CPU is limited to {min(shares):g} processors"
        said.append(f"{limit}; reports say when the limit stopped a holder")
    if sizes:
        size = f"{min(sizes) // MEBIBYTE:,} MiB"
        said.append(f"memory is limited to {size}, including /dev/shm")
    return said


def _upwards(root: Path, group: str) -> Iterator[Path]:
    """The folder of a group and of all groups around it."""
    folder = root.joinpath(*(part for part in group.split("/") if part not in ("", "..")))
    while folder != root:
        yield folder
        folder = folder.parent
    yield root


def _shares(folder: Path) -> list[float]:
    """To how many processors a group is limited, if it is."""
    both = _words(folder / "cpu.max")
    if not both:
        quota, period = _words(folder / "cpu.cfs_quota_us"), _words(folder / "cpu.cfs_period_us")
        both = [*quota, *period]
    match both:
        case [quota, period] if quota.isdecimal() and period.isdecimal() and int(period):
            return [int(quota) / int(period)]
        case _:
            return []


def _sizes(folder: Path) -> list[int]:
    """To how many bytes of memory a group is limited, if it is."""
    said = [_words(folder / name) for name in ("memory.max", "memory.limit_in_bytes")]
    sizes = [int(words[0]) for words in said if len(words) == 1 and words[0].isdecimal()]
    # Version 1 has no word for none; it says the largest number of pages.
    return [size for size in sizes if size < 1 << 60]


def _words(path: Path) -> list[str]:
    return text_of(path).split()
