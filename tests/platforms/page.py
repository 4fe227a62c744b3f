"""docs/platforms.md: the table of what was kept of each row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

from platforms.checks import CHECKS, HOLD_US, HOLDS, LEAST_TIMES, MOST_OFF_EMULATED_PERCENT
from platforms.checks import MOST_OFF_PERCENT as MOST_OFF

HEAD = """\
# Which platforms were tried

`make platforms` wrote this page: each cell is what came of a real use of ungil, on {when}, with the wheels of commit {commits}.
It makes a root of each Debian with debootstrap, has pip install the wheel in it, and tries what a user would.
The machine had {cpus} processors, Linux {kernel}, and other work to do.

{counts}
"""

COLUMNS = f"""\
| column | what is tried, and what has to come of it |
|---|---|
| linked | where the interpreter's own code is: in its executable or in `libpython`; and whether modules such as `ssl` are in there, too |
| doctor | `ungil doctor` records the interpreter, and names what the place lacks |
| known holds | a program keeps the GIL {HOLDS} times for {HOLD_US // 1000} ms of its own clock; each is one slice of the trace, and is wrong by at most {MOST_OFF:.0f} % (under qemu {MOST_OFF_EMULATED_PERCENT:.0f} %) |
| policy | how late a thread is that sleeps 2 ms at a time beside four that compute: the median of stock and of `--policy interactive`, which is at least {LEAST_TIMES} times less |
| share | two processes count in a dict of one heap, one by one and by a lock; one is killed with the lock, in a transaction, and leaves nothing half done |
| fanout | 300 items come out right in threads, with asyncio, and in the lean loop |
| attach | `ungil trace --pid` records a program that was started without ungil, `ungil policy` gives it a policy and leaves, and the program is well |

`ungil` itself needs Python 3.11.
Older programs are traced and scheduled by one that is installed for another interpreter of the same root; they cannot import `ungil.share` and `ungil.fanout`.
Debian 11 has no such interpreter: there `make platforms` builds 3.11 of the source of Debian 12.
pyenv's interpreters were built on the machine itself, and the roots see its folder.
Those of *Debian's source* come from `make built-pythons`.
"""

MACHINES = {"x86_64": "x86-64", "aarch64": "aarch64 under qemu"}


def written(rows: list[dict[str, Any]], path: Path, about: dict[str, str]) -> None:
    """Write the page, whole or not at all."""
    partial = path.with_suffix(".partial")
    partial.write_text("\n".join(_lines(rows, about)) + "\n", encoding="utf-8")
    partial.rename(path)


def _lines(rows: list[dict[str, Any]], about: dict[str, str]) -> Iterator[str]:
    when = " to ".join(dict.fromkeys([min(it["date"] for it in rows), max(it["date"] for it in rows)]))
    commits = ", ".join(f"`{it}`" for it in sorted({it["commit"] for it in rows}))
    yield HEAD.format(when=when, commits=commits, counts=counted(rows), **about)
    yield COLUMNS
    wide = [it for it in rows if not it["place"]]
    for title, group in groupby(sorted(wide, key=_order), key=_title):
        yield f"## {title}\n"
        yield from _table(list(group), ["interpreter", "built by", "linked"])
        yield ""
    narrow = [it for it in rows if it["place"]]
    if narrow:
        yield f"## Narrow places: {_title(narrow[0])}\n"
        yield from _table(narrow, ["place"])


def counted(rows: list[dict[str, Any]]) -> str:
    """How many rows there are, and what came of their checks, in a sentence."""
    states = Counter(cell["state"] for row in rows for cell in row["cells"].values())
    return (
        f"{len(rows)} rows: {states['passed']} checks passed, {states['impossible']} are not possible "
        f"there, {states['failed']} failed."
    )


def _title(row: dict[str, Any]) -> str:
    system = row["system"]
    suite = "" if system["suite"] == "sid" else f" ({system['suite']})"
    return f"{system['release']}{suite}, {system['libc']}, {MACHINES[system['machine']]}"


def _order(row: dict[str, Any]) -> tuple[Any, ...]:
    system, interpreter = row["system"], row["interpreter"]
    version = [int(it) for it in interpreter["version"].split("+")[0].split(".")[:2]]
    return (system["machine"] != "x86_64", system["number"], version, interpreter["origin"])


def _table(rows: list[dict[str, Any]], first: list[str]) -> Iterator[str]:
    yield f"| {' | '.join([*first, *CHECKS])} |"
    yield f"|{'---|' * (len(first) + len(CHECKS))}"
    for row in rows:
        interpreter = row["interpreter"]
        build = ", free-threaded, its GIL on" if interpreter["free_threaded"] else ""
        said = {
            "interpreter": f"{interpreter['version']}{build}",
            "built by": interpreter["origin"],
            "linked": interpreter["linked"],
            "place": row["place"],
        }
        cells = [said[it] for it in first] + [_cell(row["cells"][name]) for name in CHECKS]
        yield f"| {' | '.join(it.replace('|', '/') for it in cells)} |"


def _cell(cell: dict[str, str]) -> str:
    if cell["state"] == "failed":
        sentence = cell["text"].replace("`", "'").replace("\n", " ")
        return f"**failed**: `{sentence}`"
    return cell["text"] if cell["state"] == "passed" else f"*{cell['text']}*"
