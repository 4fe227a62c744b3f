"""docs/gallery.md, written from the results that are kept."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from string import Template

from cases import CASES
from gallery_results import LEAST_GAIN, LEAST_WORK, Cell, Found, Row
from gallery_runs import INTERVAL, UNGIL, VARIANTS, Case

TEMPLATE = Path(__file__).parent / "gallery_template.md"
COLUMNS = (
    *("program", "beside it", "delays", "stock", "50 us", "ungil"),
    *("gain", "work, 50 us", "work, ungil"),
)


def page(kept: Mapping[str, Found]) -> str:
    """The whole page."""
    found = {name: kept[name] for name in CASES if name in kept}
    rows = [(name, row) for name, it in found.items() for row in it.rows]
    return Template(TEMPLATE.read_text(encoding="utf-8")).substitute(
        doubts=_doubts(found),
        table=_lines(_table(rows)),
        summary=_lines(_summary(rows)),
        programs=_lines(_programs(found)),
    )


def _lines(lines: Iterable[str]) -> str:
    """One below the other."""
    return "\n".join(lines)


def _doubts(found: Mapping[str, Found]) -> str:
    """That figures are provisional, if some are."""
    doubtful = [name for name, it in found.items() if it.doubts()]
    if not doubtful:
        return ""
    which = "all figures" if len(doubtful) == len(found) else f"those of `{'`, `'.join(doubtful)}`"
    return f"**Provisional: {which}.** The section of each program says why.\n"


def _table(rows: list[tuple[str, Row]]) -> Iterator[str]:
    """The comparison: a line for each setting."""
    yield _table_line(COLUMNS)
    yield _table_line("---" for _ in COLUMNS)
    for name, row in rows:
        cells = [row.cells[variant.name] for variant in VARIANTS]
        _stock, interval, ungil = cells
        numbers = [f"{cell.delays:,}" for cell in cells]
        yield _table_line(
            (
                f"[`{name}`](#{name})",
                row.setting,
                numbers[0] if len(set(numbers)) == 1 else " / ".join(numbers),
                *map(_delay, cells),
                str(ungil.gain),
                str(interval.work),
                str(ungil.work),
            )
        )


def _table_line(cells: Iterable[str]) -> str:
    """A line of a table in Markdown."""
    return f"| {' | '.join(cells)} |"


def _delay(cell: Cell) -> str:
    """Both quantiles."""
    return f"{_ms(cell.p50_ms)} / {_ms(cell.p99_ms)}"


def _ms(value: float) -> str:
    """Two digits that count, and all of the whole number."""
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def _summary(rows: list[tuple[str, Row]]) -> Iterator[str]:
    """How many reach the goal, and who loses."""
    helped = [row for _name, row in rows if not row.is_beyond]
    reached = sum(row.reaches_the_goal() for row in helped)
    yield f"The goal is a p99 {LEAST_GAIN:.0f} times lower at {LEAST_WORK} of the work."
    yield f"{reached} of {len(helped)} settings reach it."
    for name, row in rows:
        if row.is_beyond:
            yield f"A control: no GIL scheduler can help much in `{name}`, {row.setting}."
    yield "\n## Where it loses, to stock or to 50 us\n"
    losses = [(f"* `{name}`, {row.setting}: ", list(_losses(row))) for name, row in rows]
    lines = [where + "; ".join(loss) for where, loss in losses if loss]
    yield from lines or ["* Nowhere in this run."]


def _losses(row: Row) -> Iterator[str]:
    """In what `ungil run` is worse than stock, or than the other cure."""
    cell, interval = row.cells[UNGIL.name], row.cells[INTERVAL.name]
    if not row.keeps_the_work():
        yield f"{cell.work} of stock's work per CPU second"
    if cell.gain.median < 1:
        yield f"stock's p99 is lower, {cell.gain} of ungil's"
    if interval.p99_ms < cell.p99_ms:
        yield (
            f"50 us has the lower p99, {_ms(interval.p99_ms)} ms; ungil has {_ms(cell.p99_ms)} ms"
        )


def _programs(found: Mapping[str, Found]) -> Iterator[str]:
    """What a reader has to know of each case."""
    for name, it in found.items():
        case, known = CASES[name], it.environment
        yield f"### `{name}`\n"
        yield f"{case.title} (`bench/cases/{_file(case)}.py`)."
        yield f"A delay is {case.measured}."
        if case.note:
            yield case.note
        yield ""
        versions = (word.split() for word in known["versions"].split(", "))
        used = [f"{package} {it}" for package, it in versions if package in case.packages]
        made_of = ", ".join([known["python"], *used, known["kernel"], known["cpu"]])
        yield f"* Versions: `{made_of}`"
        yield (
            f"* Run: {known['date']}, commit `{known['commit']}`, `{known['command']}`. "
            f"Rounds: {it.rounds} of {it.seconds:g} s. Load of the machine before: "
            f"{known['load'].split()[0]}"
        )
        if it.doubts():
            yield f"* Provisional: {', '.join(it.doubts())}"
        late_ms = [_ms(row.load_p99_ms) for row in it.rows if row.load_p99_ms]
        if late_ms:
            yield f"* Wake-ups of the load itself, p99: {', '.join(late_ms)} ms"
        for counted, words in case.counts.items():
            for row in it.rows:
                of = (f"{variant} {cell.counted[counted]}" for variant, cell in row.cells.items())
                yield f"* {words.capitalize()}, {row.setting}: {', '.join(of)}"
        yield ""


def _file(case: Case) -> str:
    """The module that has it."""
    return case.measure.__module__.rpartition(".")[2]
