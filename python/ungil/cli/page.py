"""The page of a trace, for the commands that write one: `ungil report` and `ungil trace`."""

from __future__ import annotations

import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import click

from ungil.cli.advised import how_advised
from ungil.cli.completing import files
from ungil.cli.overwriting import STREAM
from ungil.cli.streams import end_with_reader, say
from ungil.cli.vanishing import removed_if_killed
from ungil.errors import Error, UsageError
from ungil.formatting import native_reason, reason, size, tally

html_option = click.option(
    "--html",
    "page",
    metavar="OUT.html",
    shell_complete=files,
    help="Write a page for a browser: one file, no network ('-': stdout).",
)


def writable(page: str) -> None:
    """UsageError if nothing can be written to `page`. It is found out before the work."""
    if page == STREAM:
        return
    path = Path(page)
    folder = path.parent
    if not folder.is_dir():
        raise UsageError(f"cannot write {page!r}: no such folder")
    if path.exists() and not stat.S_ISREG(path.stat().st_mode):
        # It is renamed to its name, which must not replace a device or a folder.
        raise UsageError(f"cannot write {page!r}: it is not a regular file")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise UsageError(f"cannot write {page!r}: permission denied")


def write(
    trace: str,
    page: str,
    blame_after: float,
    part: tuple[int, int] | None = None,
    advise: bool | None = None,
) -> str:
    """Write the page, say where it is, and return the report as JSON; `-` is standard output.

    `advise` is what was asked for, as in `advised.how_advised`. Raises what
    `ungil.report.page.write` does, but an Error, in one sentence, if the page cannot be written.
    """
    from ungil.report.page import write as write_page

    with _place(page) as path:
        try:
            how = how_advised(trace, advise)
            with _progress(how["simulate"]) as progress:
                report = write_page(trace, path, blame_after, part, progress, **how)
        except OSError as error:
            if error.filename is None or os.fspath(error.filename) != path:
                raise
            raise Error(f"cannot write {path!r}: {native_reason(reason(error))}") from error
    if page != STREAM:
        say(f"the page is {page!r} ({size(Path(page).stat().st_size)}); open it in a browser")
    return report


@contextmanager
def _place(page: str) -> Generator[str]:
    """Where to write: a page gets its name when it is whole, so one for a stream is copied to it.

    Error if that fails.
    """
    if page != STREAM:
        unfinished = _unfinished(page)
        with removed_if_killed(unfinished.unlink):
            yield page
        return
    folder = tempfile.mkdtemp(prefix="ungil-")
    with ExitStack() as place:
        place.enter_context(removed_if_killed(lambda: shutil.rmtree(folder)))
        place.callback(shutil.rmtree, folder, ignore_errors=True)
        whole = Path(folder, "page.html")
        yield str(whole)
        with whole.open("rb") as file:
            # It needs no name any more, and who reads it may end this process.
            place.close()
            end_with_reader()
            try:
                with open(1, "wb", closefd=False) as out:
                    shutil.copyfileobj(file, out)
            except OSError as error:
                raise Error(f"cannot write the page to standard output: {reason(error)}") from error


def _unfinished(page: str) -> Path:
    """The name that a page has until it is whole, as `temporary_name` of ungil-trace makes it."""
    target = Path(os.path.realpath(page))
    name = b".%b.%d-0.tmp" % (os.fsencode(target.name)[:200], os.getpid())
    return target.with_name(os.fsdecode(name))


@contextmanager
def _progress(advised: bool) -> Generator[Callable[[int], None] | None]:
    """A function that shows, on a terminal, how far it is; off a terminal there is none.

    To advise takes longer than to read, and tells nothing meanwhile.
    """
    if not sys.stderr.isatty():
        yield None
        return
    shown = 0
    if advised:
        print("\rsimulating ...", end="\x1b[K", file=sys.stderr, flush=True)

    def show(records: int) -> None:
        nonlocal shown
        # What is read in a moment needs no line.
        if records - shown >= 500_000:
            shown = records
            then = ", simulating ..." if advised else ""
            text = f"\r{tally(records)} records read{then}"
            print(text, end="\x1b[K", file=sys.stderr, flush=True)

    try:
        yield show
    finally:
        if shown or advised:
            print("\r", end="\x1b[K", file=sys.stderr, flush=True)
