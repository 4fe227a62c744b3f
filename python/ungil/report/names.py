"""What threads are called on the screen: whole where that fits, else cut in the middle.

They are cut in such a way that those of one table are told apart. Pools number their threads at
the end (`ThreadPoolExecutor-0_3`), so the end is kept as well as the beginning.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from unicodedata import category

from rich.cells import cell_len

from ungil.formatting import printable
from ungil.report.model import Gil, Thread, Who

CUT = "…"
TAIL_SHARE = 0.4
"""The part of a cut name that its end gets, unless another one tells more names apart."""


class Names:
    """What the threads of a GIL are called: their names, with the tid where two share one."""

    def __init__(self, gil: Gil) -> None:
        bearers = Counter(printable(thread["name"]) for thread in gil["threads"])
        self._shared = {name for name, count in bearers.items() if count > 1 or not name}
        # A thread may have the name that another one has with its tid.
        bearers = Counter(self.of_thread(thread) for thread in gil["threads"])
        self._shared |= {name for name, count in bearers.items() if count > 1}
        self._last = {thread["tid"]: thread["name"] for thread in gil["threads"]}
        self._tids = {self.of_thread(thread): thread["tid"] for thread in gil["threads"]}

    def _called(self, tid: int, name: str) -> str:
        name = printable(name)
        return f"{name or 'thread'} {tid}" if name in self._shared else name

    def of_thread(self, thread: Thread) -> str:
        """What to call a listed thread."""
        return self._called(thread["tid"], thread["name"])

    def of(self, who: Who, name: str | None = None) -> str:
        """What to call `who`, with `name` for a thread that is not listed.

        The kernel gives a tid out again, so a name that comes with it counts more than the tid.
        """
        if who is None:
            return "nobody"
        if isinstance(who, str):
            return who
        name = name or self._last.get(who)
        called = self._called(who, name) if name else f"thread {who}"
        self._tids.setdefault(called, who)
        return called

    def fitted(self, names: Iterable[str], width: int, widest: int | None = None) -> dict[str, str]:
        """Each of `names` in at most `width` cells, or in up to `widest` if that tells more apart.

        Names that no cut tells apart end with their tid.
        """
        names = list(dict.fromkeys(names))
        cut = {name: name for name in names}
        for cells in range(width, max(width, widest or 0) + 1):
            cut = told_apart(names, cells)
            if not _alike(cut):
                return cut
        for name in _alike(cut):
            mark = f"{CUT}{self._tids[name]}" if name in self._tids else CUT
            cut[name] = _head(name, max(widest or 0, width) - cell_len(mark)) + mark
        return cut


def _alike(cut: dict[str, str]) -> list[str]:
    """The names that are shown as another one is, too."""
    shown = Counter(cut.values())
    return [name for name, text in cut.items() if shown[text] > 1]


def told_apart(names: Collection[str], cells: int) -> dict[str, str]:
    """Each of `names` in at most `cells`, the ends as long as tells most of them apart."""
    long = [name for name in names if cell_len(name) > cells]
    whole = {name: name for name in names if cell_len(name) <= cells}
    room = max(cells - cell_len(CUT), 0)
    usual = round(room * TAIL_SHARE)

    def cut_with(tail: int) -> dict[str, str]:
        return whole | {name: shortened(name, cells, tail) for name in long}

    tails = sorted(range(room + 1), key=lambda tail: abs(tail - usual)) if long else [0]
    best, fewest = cut_with(tails[0]), len(names) + 1
    for tail in tails:
        cut = cut_with(tail)
        alike = len(_alike(cut))
        if alike < fewest:
            best, fewest = cut, alike
        if not alike:
            break
    return {name: best[name] for name in names}


def shortened(name: str, cells: int, tail: int | None = None) -> str:
    """`name` in at most `cells`, of which the end gets `tail`: `ThreadPoo…or-0_3`."""
    if cell_len(name) <= cells:
        return name
    room = max(cells - cell_len(CUT), 0)
    end = _tail(name, round(room * TAIL_SHARE) if tail is None else min(tail, room))
    return _head(name, room - cell_len(end)) + CUT + end


def _head(text: str, cells: int) -> str:
    """As much of the beginning as fits."""
    if text.isascii():
        return text[:cells]
    end = 0
    while end < min(len(text), _most(cells)) and cell_len(text[: end + 1]) <= cells:
        end += 1
    return text[:end]


def _tail(text: str, cells: int) -> str:
    """As much of the end as fits, without a mark that belongs to the character before."""
    if text.isascii():
        return text[len(text) - cells :]
    start = len(text)
    while start > max(len(text) - _most(cells), 0) and cell_len(text[start - 1 :]) <= cells:
        start -= 1
    while start < len(text) and category(text[start]) in {"Mn", "Me", "Mc", "Sk"}:
        start += 1
    return text[start:]


def _most(cells: int) -> int:
    """Characters looked at for that many cells: any number of marks can be put on one."""
    return 4 * cells
