"""`ungil fanout`: a function or a command for every host of a file, many at once."""

from __future__ import annotations

import io
import os
import shlex
import stat
import sys
from typing import TYPE_CHECKING, Any, Unpack

import click

from ungil.cli.command import Command
from ungil.cli.completing import files
from ungil.cli.fanout.hosts import FORMATS, BadLine, Host, Hosts, NoHost, has_input
from ungil.cli.fanout.options import (
    COMMANDS_AT_ONCE,
    check_engine,
    check_mode,
    check_numbers,
    grouping,
    limit_of,
    per_second,
)
from ungil.cli.overwriting import spare
from ungil.errors import UsageError
from ungil.formatting import reason

if TYPE_CHECKING:
    from ungil.cli.fanout.outcomes import Printer
    from ungil.cli.fanout.targets import Target
    from ungil.fanout import Mode, Options, Outcomes
    from ungil.fanout.frontend import Display, Journal

EXAMPLES = """\
  ungil fanout --hosts hosts.txt -- ssh {host} uptime        a command for each host
  ungil fanout --hosts hosts.txt backups:save                save("sw1") of backups.py, and so on
  ungil fanout --hosts hosts.csv -- ssh -p {port} {host} df  fields of a CSV file
  ungil fanout --hosts hosts.txt --timeout 30 --retries 2 --journal done.jsonl backups:save
  grep -h sw *.txt | ungil fanout --json backups:save | jq 'select(.ok | not)'
"""


class FanoutCommand(Command):
    """A command whose words after `--` are another command."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put what comes after a `--` aside, then parse as usual."""
        words, command = args, []
        if "--" in args:
            place = args.index("--")
            words, command = args[:place], args[place + 1 :]
            if not command:
                raise click.UsageError("no command after --", ctx)
        ctx.meta["command"] = command
        return super().parse_args(ctx, words)


@click.command(
    cls=FanoutCommand,
    name="fanout",
    examples=EXAMPLES,
    options_metavar="[OPTIONS]",
)
@click.option(
    "--hosts",
    "paths",
    metavar="FILE",
    multiple=True,  # to refuse a second one
    shell_complete=files,
    help="The hosts: one per line, CSV or JSON lines [default: what is piped in, as '-'].",
)
@click.option(
    "--format",
    "format_",
    type=click.Choice(FORMATS),
    help="The format of the hosts [default: by the file's name and its first line].",
)
@click.option(
    "--limit",
    metavar="N|auto",
    help=f"How many run at once [default: auto; {COMMANDS_AT_ONCE} commands].",
)
@click.option("--timeout", type=float, metavar="S", help="Seconds that each try may take.")
@click.option("--retries", type=int, default=0, metavar="N", help="How many times to try again.")
@click.option(
    "--backoff",
    type=float,
    default=1.0,
    show_default=True,
    metavar="S",
    help="Seconds before the second try; each further pause is twice as long.",
)
@click.option("--group-by", metavar="FIELD", help="Group hosts by this field.")
@click.option(
    "--per-group", type=int, metavar="N", help="How many hosts of a group run at once, at most."
)
@click.option(
    "--rate",
    metavar="N[/s|/m|/h]",
    help="How many hosts start per second, minute or hour, at most.",
)
@click.option(
    "--mode",
    type=click.Choice(["auto", "lean", "asyncio", "threads", "green"]),
    default="auto",
    show_default=True,
    help="How a function runs; green patches it with gevent.",
)
@click.option(
    "--engine",
    metavar="NAME",
    help="Where it runs: processes, processes:N, dask, ray, or tcp:// or ray:// of a cluster.",
)
@click.option(
    "--journal",
    metavar="FILE",
    shell_complete=files,
    help="Record finished hosts in FILE, and skip those that it already has.",
)
@click.option(
    "--tag", is_flag=True, help="Print answers as they come, with the host before each line."
)
@click.option("--gather", is_flag=True, help="Print equal answers once, at the end.")
@click.option("--table", is_flag=True, help="Print a table of how hosts ended, at the end.")
@click.option("--all", "everything", is_flag=True, help="Print that table with every host.")
@click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object per line, as hosts finish."
)
@click.option("--outdir", metavar="DIR", help="Also write each host's output to a file in DIR.")
@click.option(
    "--plain", is_flag=True, help="Print a line per second on stderr instead of a progress bar."
)
@click.option("-q", "--quiet", is_flag=True, help="Show no progress.")
@click.argument("words", metavar="module:function | -- COMMAND...", nargs=-1, shell_complete=files)
@click.pass_context
def command(
    ctx: click.Context,
    paths: tuple[str, ...],
    format_: str | None,
    limit: str | None,
    timeout: float | None,
    retries: int,
    backoff: float,
    group_by: str | None,
    per_group: int | None,
    rate: str | None,
    mode: Mode,
    engine: str | None,
    journal: str | None,
    outdir: str | None,
    as_json: bool,
    tag: bool,
    gather: bool,
    table: bool,
    everything: bool,
    plain: bool,
    quiet: bool,
    words: tuple[str, ...],
) -> int:
    """Run a function or a command for every host, many at once.

    module:function is a function of a module in the current folder, or of an installed one. It may
    be async. ungil calls it with the host: a string, or a dict if the hosts are CSV or JSON lines.

    COMMAND runs without a shell. ungil fills in {host}, {} or another {field}; write {{field}} to
    get {field} itself.

    \b
    A hosts file has
      lines   one host each; # begins a comment
      CSV     names of fields in the first row, one of them host
      JSON    an object with "host", or a string, in each line
    A line that is no host fails and says why; the others run. A repeated host runs once.

    On a terminal, equal answers are printed once at the end, with their hosts (--gather).
    Elsewhere, each host's answer is printed when it has finished, with the host before each line
    (--tag). Answers go to stdout, everything else to stderr.

    The first Ctrl-C starts nothing more and lets running hosts finish; the second stops them.
    With --journal, the same command goes on where it was stopped or killed, and tries failed hosts
    again.

    Exit status: 0 if all is well, 1 if anything failed, 2 for wrong usage, 130 after Ctrl-C.
    """  # noqa: D301 (click keeps the lines of a paragraph that begins with a backspace)
    form = _form(
        {"--json": as_json, "--tag": tag, "--gather": gather, "--table": table}, everything
    )
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # Hosts say what they like, and a terminal may not know all of it.
            stream.reconfigure(errors="backslashreplace")
    from ungil.cli.fanout.targets import find_target

    # A mistake in the command is told before anybody waits for hosts.
    aimed = find_target(words, ctx.meta["command"])
    check_numbers(timeout=timeout, retries=retries, backoff=backoff, per_group=per_group)
    check_engine(engine, mode)
    if mode == "green":
        _patch()
    hosts = Hosts(_path(paths), format_, was_named=bool(paths))
    spare([hosts.path], "the file with the hosts", [journal])
    target = aimed(hosts)
    check_mode(mode, target)
    group = grouping(group_by, per_group, hosts)
    at_once = limit_of(limit, target)
    starts = None if rate is None else per_second(rate)
    outcomes = _outcomes(
        target,
        hosts,
        limit=at_once,
        mode="asyncio" if target.is_command else mode,
        timeout=timeout,
        retries=retries,
        seconds=backoff,
        rate=starts,
        group=group,
        per_group=per_group,
        engine=engine,
        display=None
        if quiet
        else _progress(hosts, plain=plain, streams=form in ("--json", "--tag")),
        opened=_journal(journal, target),
    )
    from ungil.cli.fanout.fanning import Fanning

    return Fanning(
        outcomes,
        hosts,
        _saving(outdir, _printer(form, everything), target),
        commands=target.is_command,
        engine=engine,
        journaled=journal is not None,
    ).run()


def _form(asked: dict[str, bool], everything: bool) -> str:
    """How to print, as the name of an option."""
    forms = [name for name, is_asked in asked.items() if is_asked]
    if len(forms) > 1:
        raise UsageError(
            f"{forms[0]} and {forms[1]} print the same outcomes in two ways; leave one out"
        )
    if everything and forms not in ([], ["--table"]):
        raise UsageError(f"--all needs the table, which {forms[0]} does not print")
    if everything:
        return "--table"
    return forms[0] if forms else "--gather" if sys.stdout.isatty() else "--tag"


def _path(paths: tuple[str, ...]) -> str:
    """The file with the hosts: by default stdin, if something is piped in."""
    if len(paths) > 1:
        raise UsageError(
            f"--hosts {shlex.quote(paths[0])} and --hosts {shlex.quote(paths[1])} are two files, "
            f"and one is read; pipe both in: cat {shlex.join(paths)} | ungil fanout ..."
        )
    if not paths and (not has_input() or sys.stdin.isatty()):
        raise UsageError("no hosts; name a file with --hosts, or pipe them in")
    path = paths[0] if paths else "-"
    if not path:
        raise UsageError("--hosts '' names no file; leave it out to read hosts that are piped in")
    return path


def _patch() -> None:
    """Patches this program with gevent, before anything of the user's is imported."""
    try:
        from gevent import monkey
    except ImportError as error:
        raise UsageError("--mode green needs gevent: pip install 'ungil[green]'") from error
    monkey.patch_all()


def _progress(hosts: Hosts, *, plain: bool, streams: bool) -> Display | None:
    """What shows the progress, if anything can."""
    from ungil.fanout.frontend import Bar, Calls

    if plain:
        hosts.count()
        return Calls(lambda progress: print(progress, file=sys.stderr, flush=True))
    # A bar and lines of output on one terminal would be in each other's way.
    if sys.stderr.isatty() and not (streams and _may_be_seen(1)):
        hosts.count()
        return Bar(keep=False)
    return None


def _may_be_seen(number: int) -> bool:
    """Whether what is written there may appear on a terminal: what reads a pipe may print it."""
    try:
        mode = os.fstat(number).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(number)


def _printer(form: str, everything: bool) -> Printer:
    from ungil.cli.fanout.outcomes import JsonLines, Tagged

    if form == "--json":
        return JsonLines()
    if form == "--tag":
        return Tagged()
    # With these comes rich, which is slow to import.
    if form == "--table":
        from ungil.cli.fanout.table import Table

        return Table(everything=everything)
    from ungil.cli.fanout.gathered import Gathered

    return Gathered()


def _saving(folder: str | None, printer: Printer, target: Target) -> Printer:
    if folder is None:
        return printer
    if not target.is_command:
        raise UsageError("--outdir saves the output of commands, and a function has none")
    from ungil.cli.fanout.saved import Saved

    try:
        return Saved(folder, printer)
    except OSError as error:
        raise UsageError(f"cannot write to the folder {folder!r}: {reason(error)}") from error


def _journal(path: str | None, target: Target) -> Journal | None:
    if path is None:
        return None
    from ungil.fanout.frontend import Journal

    try:
        return Journal(path, target.name, key_of)
    except OSError as error:
        raise UsageError(f"cannot write the journal {path!r}: {reason(error)}") from error
    except (ValueError, RuntimeError) as error:
        raise UsageError(str(error)) from error


def key_of(host: Host | NoHost) -> str:
    """What a host is known by in a journal."""
    return host.identity


def _outcomes(
    target: Target,
    hosts: Hosts,
    *,
    seconds: float,
    display: Display | None,
    opened: Journal | None,
    **options: Unpack[Options[Any]],
) -> Outcomes:
    from ungil.fanout import Backoff, Outcomes
    from ungil.fanout.frontend import Plan

    def is_worth_another(error: Exception) -> bool:
        return not isinstance(error, BadLine)

    try:
        options["backoff"] = Backoff(seconds)
        options["retry_if"] = is_worth_another
        plan = Plan(options, opening="hosts", journal=opened, display=display)
        return Outcomes(target.fn, hosts, plan, in_order=False)
    except (ValueError, TypeError) as error:
        raise UsageError(str(error)) from error
