"""`ungil lab`: published experiments about the GIL, run again here, then and now."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

import ungil
from ungil.cli.command import Command
from ungil.cli.completing import files
from ungil.cli.overwriting import distinct, spare
from ungil.errors import UsageError
from ungil.formatting import reason

if TYPE_CHECKING:
    from ungil.interpreters import Interpreter
    from ungil.lab.experiment import Experiment
    from ungil.lab.results import Results

EXAMPLES = """\
  ungil lab list                          what there is
  ungil lab countdown --quick             one experiment, small, on every Python that is found
  ungil lab --python 2.7 --python 3.13    all of them, on two interpreters
  ungil lab --json lab.json               keep the results in a file of that name
  ungil lab --html lab.html               and make a page with charts of them
"""


@click.command(cls=Command, name="lab", examples=EXAMPLES, options_metavar="[OPTIONS]")
@click.option(
    "--python",
    "pythons",
    metavar="PATH|VERSION",
    multiple=True,
    help="Run on this interpreter [default: one of each version that ungil finds].",
)
@click.option("--quick", is_flag=True, help="Small sizes: a few seconds for each experiment.")
@click.option(
    "--json",
    "json_path",
    metavar="FILE",
    shell_complete=files,
    help="Keep the results in FILE [default: ~/.local/state].",
)
@click.option(
    "--html",
    "html_path",
    metavar="FILE",
    shell_complete=files,
    help="Also write a page with charts.",
)
@click.option("--fresh", is_flag=True, help="Measure everything anew.")
@click.option("--retry", is_flag=True, help="Try again what was missing before.")
@click.argument("names", metavar="[list | EXPERIMENT...]", nargs=-1)
def command(
    pythons: tuple[str, ...],
    quick: bool,
    json_path: str | None,
    html_path: str | None,
    fresh: bool,
    retry: bool,
    names: tuple[str, ...],
) -> int:
    """Run published experiments about the GIL again: then, now, and with ungil.

    Without EXPERIMENT, all of them run. ungil saves each result at once, so the same command goes
    on where you stopped it.

    Exit status: 0 if all is well, 1 if an experiment failed, 2 for wrong usage or if results cannot
    be saved, 130 after Ctrl-C. A missing interpreter or tool is no failure: a note says what to
    install, and --retry then measures it.
    """
    from ungil.lab.experiments import load

    if names == ("list",):
        _list(load(()))
        return 0
    experiments = load(names)
    if html_path is not None:
        _check_page(html_path, json_path)
    from ungil.lab.experiment import Plan
    from ungil.lab.machine import describe
    from ungil.lab.results import Header
    from ungil.lab.runs import Run
    from ungil.lab.watching import watching

    interpreters = _interpreters(pythons)
    paths = [interpreter.path for interpreter in interpreters]
    spare(paths, "an interpreter to run on", [json_path, html_path])
    plan = Plan(interpreters, quick)
    cells = [cell for experiment in experiments for cell in experiment.plan(plan)]
    path = Path(json_path) if json_path is not None else _state(quick)
    header = Header(ungil.__version__, describe(), quick)
    run = Run(path, header, cells, fresh=fresh, retry=retry, named=json_path is not None)
    with watching(run) as watcher:
        results = run.finish(watcher)
    from ungil.console import page_console
    from ungil.lab.text import show

    show(experiments, results, page_console(sys.stdout))
    if html_path is not None:
        _write_page(html_path, experiments, results)
    return 1 if any(result.status == "failed" for result in results) else 0


def _interpreters(named: Sequence[str]) -> list[Interpreter]:
    """Those to run on; UsageError if one that is named is none."""
    from ungil.interpreters import choose

    try:
        return choose(named)
    except UsageError as error:
        raise UsageError(f"--python: {error}") from error


def _check_page(path: str, json_path: str | None) -> None:
    """UsageError if a page cannot be written: nobody measures first to hear that."""
    distinct(("the results", json_path), ("their page", path))
    folder = Path(path).parent
    if Path(path).is_dir() or not folder.is_dir() or not os.access(folder, os.W_OK):
        raise UsageError(
            f"cannot write {path!r}: its folder does not exist, or ungil may not write to it"
        )


def _write_page(path: str, experiments: Sequence[Experiment], results: Results) -> None:
    from ungil.lab.files import write
    from ungil.lab.page import page

    try:
        write(Path(path), page(experiments, results))
    except OSError as error:
        raise UsageError(f"cannot write {path!r}: {reason(error)}") from error


def _state(quick: bool) -> Path:
    """Where results of this user are kept, as the XDG base directory specification has it."""
    folder = os.environ.get("XDG_STATE_HOME", "")
    home = Path(folder) if folder.startswith("/") else Path("~/.local/state").expanduser()
    return home / "ungil" / ("lab-quick.json" if quick else "lab.json")


def _list(experiments: Sequence[Experiment]) -> None:
    """The experiments, and where each is from."""
    from rich.table import Table

    from ungil.console import page_console

    grid = Table.grid(padding=(0, 2))
    for experiment in experiments:
        source = experiment.source
        grid.add_row(
            experiment.name, experiment.title, f"{source.author} {source.year}, {source.text}"
        )
    page_console(sys.stdout).print(grid)
