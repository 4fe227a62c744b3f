"""docs/gallery.md, written from the results that are kept."""

from collections.abc import Iterator, Mapping

from cases import CASES
from gallery_results import LEAST_GAIN, LEAST_WORK, Cell, Found, Row
from gallery_runs import UNGIL, VARIANTS, Case

INTRODUCTION = """\
# Gallery: real programs beside threads that compute

<!-- bench/gallery_page.py writes this page from bench/gallery.json: `make gallery` -->

Each program here is what a user of its packages writes. It does something that should be quick, while other threads of it compute.
Nothing in it knows of ungil.
We measured each in three ways, in turn:

* **stock**: as it is
* **50 us**: with `sys.setswitchinterval(50e-6)`, the cure that everybody has
* **ungil**: started by `ungil run`, which schedules the GIL by its policy `interactive`

Run it yourself: `make gallery`, or one case with `make gallery GALLERY=aiohttp`.
"""

HOW_TO_READ = """\
## How to read it

* **Delay**: p50 and p99 in milliseconds, of all rounds together. What a delay is stands below, with each program.
* **Gain**: stock's p99 divided by that with ungil, of the same round. It is the median of the rounds, with the least and the greatest.
* **Work**: how often the computing threads called a fixed function, for each second of the processor, divided by stock's of the same round. Serving small requests sooner also takes a processor, and that is in it.
* A web server gets its requests from another process, at fixed times. A request counts from when it was sent until the kernel had the answer, so that process's own delays are not in the figures. The other loads ask one question after the other. Their own wake-up is in the figures, and the page says how late they woke up.
* The kernel places all threads. On a machine whose processors are all busy, a thread that has been given the GIL still waits for a processor.
"""

LEFT_OUT = """\
## What is not here

* **A Kafka consumer**: the heartbeat of kafka-python needs a broker that follows the protocol of consumer groups. A broker that we write would be most of the case, and would show what we put into it.
* **Kivy**: Tk stands for windows. Kivy needs OpenGL, which Xvfb has only in software, and that would take the processor that is measured.
"""


def page(kept: Mapping[str, Found]) -> str:
    """The whole page."""
    found = {name: kept[name] for name in CASES if name in kept}
    parts = [INTRODUCTION, *_doubts(found), _table(found), _summary(found), HOW_TO_READ]
    parts += ["## The programs\n", *(_program(CASES[name], it) for name, it in found.items())]
    return "\n".join([*parts, LEFT_OUT])


def _doubts(found: Mapping[str, Found]) -> Iterator[str]:
    """That figures are provisional, if some are."""
    doubtful = [name for name, it in found.items() if it.doubts()]
    if doubtful:
        what = "all figures" if len(doubtful) == len(found) else f"those of {', '.join(doubtful)}"
        yield (
            f"**Provisional: {what}.** The machine was busy with other work, or the run was short. "
            "Each program's part of this page says which.\n"
        )


def _table(found: Mapping[str, Found]) -> str:
    """The comparison: a line for each setting."""
    lines = [
        "| program | beside it | delays | stock | 50 us | ungil | gain | work, 50 us | work, ungil |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name, it in found.items():
        for row in it.rows:
            cells = [row.cells[variant.name] for variant in VARIANTS]
            interval, ungil = cells[1:]
            counts = {_number(cell.delays) for cell in cells}
            delays = counts.pop() if len(counts) == 1 else " / ".join(
                _number(cell.delays) for cell in cells
            )
            words = [f"[{name}](#{name})", row.setting, delays, *map(_delay, cells)]
            words += [str(ungil.gain), f"{interval.work.median:.2f}", str(ungil.work)]
            lines.append(f"| {' | '.join(words)} |")
    return "\n".join([*lines, ""])


def _delay(cell: Cell) -> str:
    """Both quantiles."""
    return f"{_ms(cell.p50_ms)} / {_ms(cell.p99_ms)}"


def _ms(value: float) -> str:
    """Two digits that count, and no fewer than the whole number has."""
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def _number(value: int) -> str:
    """With a comma after the thousands."""
    return f"{value:,}"


def _summary(found: Mapping[str, Found]) -> str:
    """How many reach the goal, and who loses."""
    rows = [(name, row) for name, it in found.items() for row in it.rows]
    helped = [(name, row) for name, row in rows if not row.is_beyond]
    reached = sum(row.reaches_the_goal() for _name, row in helped)
    lines = [
        f"The goal is a p99 that is {LEAST_GAIN:.0f} times better at {LEAST_WORK} of the work. "
        f"{reached} of {len(helped)} settings reach it.",
        f"In {len(rows) - len(helped)} more the GIL is not what delays the program, so no scheduler "
        "of it can help.",
        "",
        "## Where it loses",
        "",
    ]
    losing = [f"* {name}, {row.setting}: {_loss(row)}" for name, row in rows if row.loses()]
    beaten = [
        f"* {name}, {row.setting}: 50 us has the better p99, {_ms(row.cells[VARIANTS[1].name].p99_ms)} "
        f"ms beside {_ms(row.cells[UNGIL.name].p99_ms)} ms"
        for name, row in rows
        if row.cells[VARIANTS[1].name].p99_ms < row.cells[UNGIL.name].p99_ms
    ]
    return "\n".join([*lines, *(losing + beaten or ["* Nowhere in this run."]), ""])


def _loss(row: Row) -> str:
    """In what it is worse than stock."""
    cell = row.cells[UNGIL.name]
    words: list[str] = []
    if cell.work.median < LEAST_WORK:
        words.append(f"it does {cell.work} of stock's work per second of the processor")
    if cell.gain.median < 1:
        words.append(f"stock's p99 divided by ungil's is {cell.gain}")
    return "; ".join(words)


def _program(case: Case, found: Found) -> str:
    """What a reader has to know of one case."""
    versions = found.environment["versions"].split(", ")
    used = [it for it in versions if it.split()[0] in (*case.packages, "ungil")]
    known = found.environment
    lines = [
        f"### {case.name}",
        "",
        f"{case.title} (`bench/cases/{_file(case)}.py`).",
        f"A delay is the time {case.measured}.",
        *([case.note] if case.note else []),
        "",
        f"* {known['python']}, {', '.join(used)}; {known['cpu']}, {known['kernel']}",
        f"* {known['date']}, commit {known['commit']}, `{known['command']}`: {found.rounds} rounds "
        f"of {found.seconds:g} s, load {known['load'].split()[0]} at the start",
        *(f"* Provisional: {doubt}" for doubt in found.doubts()),
        *_load(found),
        *(f"* {_counted(case, name, row)}" for name in case.counts for row in found.rows),
    ]
    return "\n".join([*lines, ""])


def _file(case: Case) -> str:
    """The module that has it."""
    return case.measure.__module__.rpartition(".")[2]


def _load(found: Found) -> Iterator[str]:
    """How late the load was, where there is one."""
    late_ms = [row.load_p99_ms for row in found.rows if row.load_p99_ms]
    if late_ms:
        yield f"* The load woke up late itself: p99 {', '.join(map(_ms, late_ms))} ms"


def _counted(case: Case, name: str, row: Row) -> str:
    """What else was counted, of each variant."""
    of = ", ".join(f"{variant} {cell.counted[name]}" for variant, cell in row.cells.items())
    return f"{case.counts[name].capitalize()}, {row.setting}: {of}"
