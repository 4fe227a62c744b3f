"""Real programs from the registries: how late they are, and what they compute meanwhile.

    python bench/gallery.py [CASE...] [--rounds N] [--seconds S] [--markdown | --page] [--quick]

Each case of `bench/cases` is a program that its packages' users would write, beside threads that
compute. It runs as it is, with `sys.setswitchinterval(50e-6)`, and by `ungil run`, in turn. Work is
calls of a fixed function, per second of the processor and per second, as a ratio to stock's of the
same round. A gain is stock's 99th percentile divided by the other's of the same round.

`--markdown` puts the results into bench/gallery.json, in place of older ones of the same cases, and
writes docs/gallery.md from all that stands there. `--page` only writes the page.
"""

import argparse
import functools
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import gallery_page
from cases import CASES
from gallery_results import LEAST_GAIN, LEAST_WORK, Found, Row, keep, kept, row, write
from gallery_runs import UNGIL, VARIANTS, Case, measure
from interleaving import Measured, Runs, Target, columns, interleave, parse, parser, report
from peers import Variant
from rich.table import Table
from sampling import Failed
from surroundings import environment

PAGE = Path(__file__).parent.parent / "docs" / "gallery.md"


def main() -> None:
    """Measures, prints, and writes the page if asked to."""
    made = parser(__doc__, rounds=5)
    made.add_argument("case", nargs="*", metavar="CASE", help=f"[{' '.join(CASES)}]")
    made.add_argument("--seconds", type=float, default=5.0, help="of a measurement [5]")
    made.add_argument("--markdown", action="store_true", help="keep results, write docs/gallery.md")
    made.add_argument("--page", action="store_true", help="write docs/gallery.md, measure nothing")
    options = parse(made)
    if options.quick:
        options.rounds, options.seconds = 1, 1.0
    if options.page:
        write(PAGE, gallery_page.page(kept()))
        return
    for name in options.case:
        if name not in CASES:
            made.error(f"there is no case {name}; there are {', '.join(CASES)}")
    if options.rounds < 1 or options.seconds <= 0:
        made.error(f"{options.rounds} rounds of {options.seconds:g} s measure nothing")
    cases = [CASES[name] for name in options.case or CASES]
    packages = sorted({package for case in cases for package in case.packages})
    missing = [package for package in packages if not _is_there(package)]
    if missing:
        made.error(f"the cases need {' '.join(missing)}: pip install {' '.join(missing)}")
    known = environment(["ungil", *packages], options.python)
    found = {case.name: Found(known, options.rounds, options.seconds, []) for case in cases}
    failures: dict[str, str] = {}
    sections = _sections(options, cases, found, failures)
    report(options, ["ungil", *packages], sections, lambda _taken: _targets(found))
    if options.markdown:
        whole = {name: it for name, it in found.items() if name not in failures}
        write(PAGE, gallery_page.page(keep(whole)))
    for name, why in failures.items():
        print(f"not measured: {name}, {why}", file=sys.stderr)
    sys.exit(1 if failures else 0)


def _is_there(package: str) -> bool:
    """Whether a package is installed for this interpreter, on which the loads run."""
    try:
        metadata.version(package)
    except metadata.PackageNotFoundError:
        return False
    return True


def _sections(
    options: argparse.Namespace,
    cases: list[Case],
    found: dict[str, Found],
    failures: dict[str, str],
) -> Iterator[tuple[Runs, Table]]:
    """A table for each setting. What cannot be measured is told in the end."""
    for case in cases:
        for setting in case.settings:
            one = functools.partial(_measure, options, case, setting)
            try:
                runs = interleave(f"{case.name}, {setting}", VARIANTS, one, options)
            except Failed as failure:
                failures[case.name] = f"{setting}: {failure}"
                continue
            made = row(case, setting, runs)
            found[case.name].rows.append(made)
            yield runs, _table(case, made)


def _measure(options: argparse.Namespace, case: Case, setting: str, variant: Variant) -> Measured:
    """One measurement."""
    return measure(case, setting, variant, options.python, options.seconds)


def _table(case: Case, made: Row) -> Table:
    """A row of the page, with each variant on a line."""
    table = columns(
        f"{case.name}, {made.setting}: delays in ms, work as a ratio to stock's",
        *("", "delays", "p50", "p99", "stock p99 /"),
        *("work per CPU second", "work per second", *case.counts.values()),
    )
    for name, cell in made.cells.items():
        table.add_row(
            name,
            str(cell.delays),
            f"{cell.p50_ms:.2f}",
            f"{cell.p99_ms:.2f}",
            *(str(spread) for spread in (cell.gain, cell.work, cell.pace)),
            *(str(cell.counted[name]) for name in case.counts),
        )
    return table


def _targets(found: dict[str, Found]) -> Iterator[Target]:
    """The goal, of each setting in which a scheduler can help."""
    for name, it in found.items():
        for made in it.rows:
            if made.is_beyond:
                continue
            cell = made.cells[UNGIL.name]
            yield Target(
                f"{name}, {made.setting}: p99 {LEAST_GAIN:.0f} times better at {LEAST_WORK} of the "
                "work per CPU second",
                made.reaches_the_goal(),
                f"{cell.gain} times at {cell.work}",
            )


if __name__ == "__main__":
    main()
