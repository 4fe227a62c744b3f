"""docs/platforms.md: the table of what was kept of each row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

from platforms import checks

TEMPLATE = Path(__file__).with_name("page.md")
MACHINES = {"x86_64": "x86-64", "aarch64": "aarch64 under qemu"}


def _codes(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted({*names}))


def written(rows: list[dict[str, Any]], path: Path, about: dict[str, str]) -> None:
    """Write the page, whole or not at all."""
    days = sorted({it["date"] for it in rows})
    text = TEMPLATE.read_text(encoding="utf-8").format(
        **about,
        when=" to ".join([days[0], *days[1:][-1:]]),
        commits=_codes(commit for it in rows for commit in it["commit"].split(" or ")),
        tags=_codes(tag for it in rows for tag in it["tag"].split(", ")),
        counts=counted(rows),
        holds=checks.HOLDS,
        parks=checks.PARKS,
        park_ms=checks.PARK_MS,
        most_off_parks=checks.MOST_OFF_PARKS_PERCENT,
        hold_ms=checks.HOLD_US // 1000,
        most_off=checks.MOST_OFF_PERCENT,
        most_off_emulated=checks.MOST_OFF_EMULATED_PERCENT,
        rounds=checks.MOST_ROUNDS,
        least_times=checks.LEAST_TIMES,
        tables="\n".join(_tables(rows)).strip(),
    )
    partial = path.with_suffix(".partial")
    partial.write_text(text, encoding="utf-8")
    partial.rename(path)


def _tables(rows: list[dict[str, Any]]) -> Iterator[str]:
    """A table for each system, and one for restricted environments."""
    wide = sorted((it for it in rows if not it["place"]), key=_order)
    for title, group in groupby(wide, key=_title):
        yield f"## {title}\n"
        yield from _table(list(group), ["interpreter", "built by", "linked"])
        yield ""
    narrow = [it for it in rows if it["place"]]
    if narrow:
        yield f"## Restricted environments: {_title(narrow[0])}\n"
        yield from _table(narrow, ["place"])


def counted(rows: list[dict[str, Any]]) -> str:
    """How many rows there are, and what came of their checks, in a sentence."""
    states = Counter(cell["state"] for row in rows for cell in row["cells"].values())
    return (
        f"{len(rows)} rows: {states['passed']} checks passed, "
        f"{states['impossible']} are not possible there, {states['failed']} failed."
    )


def _title(row: dict[str, Any]) -> str:
    system = row["system"]
    suite = "" if system["suite"] == "sid" else f" ({system['suite']})"
    return f"{system['release']}{suite}, {system['libc']}, {MACHINES[system['machine']]}"


def _order(row: dict[str, Any]) -> tuple[Any, ...]:
    system, interpreter = row["system"], row["interpreter"]
    version = [int(it) for it in interpreter["version"].split("+")[0].split(".")[:2]]
    is_off = interpreter["free_threaded"] and not interpreter["gil"]
    where = system["machine"] != "x86_64", system["number"]
    return (*where, version, interpreter["origin"], is_off)


def _table(rows: list[dict[str, Any]], first: list[str]) -> Iterator[str]:
    yield f"| {' | '.join([*first, *checks.CHECKS])} |"
    yield f"|{'---|' * (len(first) + len(checks.CHECKS))}"
    for row in rows:
        interpreter = row["interpreter"]
        build = ", musl" if interpreter["libc"] == "musl" else ""
        if interpreter["free_threaded"]:
            build += f", free-threaded, its GIL {'on' if interpreter['gil'] else 'off'}"
        said = {
            "interpreter": f"{interpreter['version']}{build}",
            "built by": interpreter["origin"],
            "linked": interpreter["linked"],
            "place": row["place"],
        }
        cells = [said[it] for it in first] + [_cell(row["cells"][name]) for name in checks.CHECKS]
        yield f"| {' | '.join(it.replace('|', '/') for it in cells)} |"


def _cell(cell: dict[str, str]) -> str:
    if cell["state"] == "failed":
        sentence = cell["text"].replace("`", "'").replace("\n", " ")
        return f"**failed**: `{sentence}`"
    return cell["text"] if cell["state"] == "passed" else f"*{cell['text']}*"
