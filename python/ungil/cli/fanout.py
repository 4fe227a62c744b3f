"""`ungil fanout`: a function or a command for every host of a file, many at once."""

from __future__ import annotations

import io
import re
import sys
from typing import TYPE_CHECKING, Any

import click

from ungil.cli.command import Command, reason
from ungil.cli.hosts import FORMATS, BadLine, Host, Hosts, NoHost
from ungil.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from ungil.cli.outcomes import Printer
    from ungil.cli.targets import Target
    from ungil.fanout import Outcomes
    from ungil.fanout._journal import Journal

EXAMPLES = """\
  ungil fanout --hosts hosts.txt -- ssh {host} uptime        a command for each host
  ungil fanout --hosts hosts.txt backups:save                save("sw1") of backups.py, and so on
  ungil fanout --hosts hosts.csv -- ssh -p {port} {host} df  fields of a CSV file
  ungil fanout --hosts hosts.txt --timeout 30 --retries 2 --journal done.jsonl backups:save
  grep -h sw *.txt | ungil fanout --json backups:save | jq 'select(.ok | not)'
"""

# Commands take their time in other processes, where nobody here can see what more would cost.
COMMANDS_AT_ONCE = 100

# A pipe for each of its two outputs, what the loop needs to see its end, and one to spare.
_FILES_OF_A_COMMAND = 4
_FILES_OF_UNGIL = 64

_PER_SECOND = {"": 1, "s": 1, "m": 60, "h": 3600}


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
    "path",
    metavar="FILE",
    help="Hosts, one a line, or CSV, or JSON lines; '-', and what is piped in, is stdin.",
)
@click.option(
    "--format",
    "format_",
    type=click.Choice(FORMATS),
    help="Of the hosts [default: by the file's name and first line].",
)
@click.option(
    "--limit",
    metavar="N|auto",
    help=f"How many at once [default: auto; {COMMANDS_AT_ONCE} commands].",
)
@click.option("--timeout", type=float, metavar="S", help="Seconds for each try.")
@click.option("--retries", type=int, default=0, metavar="N", help="How often more to try.")
@click.option(
    "--backoff",
    type=float,
    default=1.0,
    show_default=True,
    metavar="S",
    help="Seconds before the second try; doubled before each further one.",
)
@click.option("--group-by", metavar="FIELD", help="Hosts with the same FIELD are a group.")
@click.option("--per-group", type=int, metavar="N", help="How many of a group at once at most.")
@click.option("--rate", metavar="N[/s|/m|/h]", help="How many to start a second at most.")
@click.option(
    "--mode",
    type=click.Choice(["auto", "lean", "asyncio", "threads", "green"]),
    default="auto",
    show_default=True,
    help="How a function runs; green patches it with gevent.",
)
@click.option(
    "--journal",
    metavar="FILE",
    help="Write down what is done, and leave out what it says is done.",
)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object a line, as they finish.")
@click.option("--tag", is_flag=True, help="Print output as it comes, each line after its host.")
@click.option("--outdir", metavar="DIR", help="Write the output of each host to a file there, too.")
@click.option("--all", "everything", is_flag=True, help="Print every host in the table.")
@click.option("--plain", is_flag=True, help="A line a second on stderr in place of a bar.")
@click.option("-q", "--quiet", is_flag=True, help="No progress at all.")
@click.argument("words", metavar="module:function | -- COMMAND...", nargs=-1)
@click.pass_context
def command(
    ctx: click.Context,
    path: str | None,
    format_: str | None,
    limit: str | None,
    timeout: float | None,
    retries: int,
    backoff: float,
    group_by: str | None,
    per_group: int | None,
    rate: str | None,
    mode: str,
    journal: str | None,
    outdir: str | None,
    as_json: bool,
    tag: bool,
    everything: bool,
    plain: bool,
    quiet: bool,
    words: tuple[str, ...],
) -> int:
    """Run a function or a command for every host, many at once.

    module:function is of the current folder or installed, sync or async; it is called with the
    host: a string, or a dict of the fields of CSV and JSON lines. COMMAND runs without a shell;
    {host}, {} or another {field} in its words is filled in, and {{field}} is {field}.

    \b
    A hosts file has
      lines   one host each; # begins a comment
      CSV     names of fields in the first row, one of them host
      JSON    an object with "host", or a string, in each line
    A line that is no host fails, and says why; the others run. A repeated host runs once.

    Ctrl-C once: nothing more starts, and what runs may end. Twice: now.
    With --journal the same command goes on where it was stopped, or killed; what failed is tried
    again.

    Exit status: 0 if all is well, 1 if anything failed, 2 for wrong usage, 130 after Ctrl-C.
    """  # noqa: D301 (click keeps the lines of a paragraph that begins with a backspace)
    if as_json and tag:
        raise UsageError("--json and --tag are two ways to print the same; leave one out")
    if everything and (as_json or tag):
        raise UsageError("--all is for the table, which neither --json nor --tag prints")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # Hosts say what they like, and a terminal may not know all of it.
            stream.reconfigure(errors="backslashreplace")
    from ungil.cli.targets import find_target

    # A mistake in the command is told before anybody waits for hosts.
    aimed = find_target(words, ctx.meta["command"])
    if mode == "green":
        _patch()
    hosts = Hosts(_path(path), format_, was_named=path is not None)
    target = aimed(hosts)
    group = _grouping(group_by, per_group, hosts)
    at_once = _limit(limit, target)
    starts = None if rate is None else _per_second(rate)
    outcomes = _outcomes(
        target,
        hosts,
        limit=at_once,
        mode="asyncio" if target.is_command else mode,
        timeout=timeout,
        retries=retries,
        backoff=backoff,
        rate=starts,
        group=group,
        per_group=per_group,
        progress=None if quiet else _progress(hosts, plain=plain, streams=as_json or tag),
        journal=_journal(journal, target),
    )
    from ungil.cli.fanning import Fanning

    return Fanning(
        outcomes,
        hosts,
        _saving(outdir, _printer(as_json, tag, everything), target),
        commands=target.is_command,
        journaled=journal is not None,
    ).run()


def _path(path: str | None) -> str:
    """The file with the hosts: by default stdin, if something is piped in."""
    if path is None and (sys.stdin is None or sys.stdin.isatty()):  # pyright: ignore[reportUnnecessaryComparison]
        raise UsageError("no hosts; name a file with --hosts, or pipe them in")
    return path or "-"


def _patch() -> None:
    """Patches this program with gevent, before anything of the user's is imported."""
    try:
        from gevent import monkey
    except ImportError as error:
        raise UsageError("--mode green needs gevent: pip install 'ungil[green]'") from error
    monkey.patch_all()


def _limit(text: str | None, target: Target) -> int | str:
    if text not in (None, "auto"):
        if not text.isdecimal() or int(text) < 1:
            raise UsageError(f"--limit {text!r} is neither auto nor a number from 1 up")
        return _affordable(int(text)) if target.is_command else int(text)
    return COMMANDS_AT_ONCE if target.is_command else "auto"


def _affordable(commands: int) -> int:
    """So many commands, or as many as this process may have files open for."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = commands * _FILES_OF_A_COMMAND + _FILES_OF_UNGIL
    if needed > soft != resource.RLIM_INFINITY:
        soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        if needed > soft:
            commands = max(1, (soft - _FILES_OF_UNGIL) // _FILES_OF_A_COMMAND)
            print(
                f"ungil: {commands:,} commands at once is what {hard:,} open files allow "
                "(ulimit -Hn)",
                file=sys.stderr,
            )
    return commands


def _per_second(text: str) -> float:
    """A rate as people write it: 50, 50/s, 100/m, 0.5/s."""
    if not (parts := re.fullmatch(r"([\d.]+)(?:/([smh]?))?", text)):
        raise UsageError(f"--rate {text!r} is no rate such as 50, 50/s or 100/m")
    try:
        return float(parts[1]) / _PER_SECOND[parts[2] or ""]
    except ValueError:
        raise UsageError(f"--rate {text!r} is no rate such as 50, 50/s or 100/m") from None


def _progress(hosts: Hosts, *, plain: bool, streams: bool) -> Any:
    """What shows the progress, if anything can."""
    from ungil.fanout._progress import Bar, Calls

    if plain:
        hosts.count()
        return Calls(lambda progress: print(progress, file=sys.stderr, flush=True))
    # A bar and lines of output on one terminal would be in each other's way.
    if sys.stderr.isatty() and not (streams and sys.stdout.isatty()):
        hosts.count()
        return Bar(keep=False)
    return None


def _printer(as_json: bool, tag: bool, everything: bool) -> Printer:
    from ungil.cli.outcomes import JsonLines, Table, Tagged

    if as_json:
        return JsonLines()
    return Tagged() if tag else Table(everything=everything)


def _saving(folder: str | None, printer: Printer, target: Target) -> Printer:
    if folder is None:
        return printer
    if not target.is_command:
        raise UsageError("--outdir is for the output of commands, and a function has none")
    from ungil.cli.gathered import Saved

    try:
        return Saved(folder, printer)
    except OSError as error:
        raise UsageError(f"cannot write to the folder {folder!r}: {reason(error)}") from error


def _grouping(
    field: str | None, per_group: int | None, hosts: Hosts
) -> Callable[[Host | NoHost], str | None] | None:
    """What tells the group of a host."""
    if field is None:
        if per_group is not None:
            raise UsageError("--per-group needs --group-by, the field that tells a host's group")
        return None
    if hosts.fields is not None and field not in hosts.fields:
        raise UsageError(
            f"the hosts of {hosts.name} have no field {field!r} to group by, only "
            f"{', '.join(hosts.fields)}"
        )
    return lambda host: host.fields.get(field) if isinstance(host, Host) else None


def _journal(path: str | None, target: Target) -> Journal | None:
    if path is None:
        return None
    from ungil.fanout._journal import Journal

    try:
        return Journal(path, target.name, key_of)
    except OSError as error:
        raise UsageError(f"cannot write the journal {path!r}: {reason(error)}") from error
    except (ValueError, RuntimeError) as error:
        raise UsageError(str(error)) from error


def key_of(host: Host | NoHost) -> str:
    """What a host is known by in a journal."""
    return host.identity


def _outcomes(target: Target, hosts: Hosts, *, backoff: float, **options: Any) -> Outcomes:
    from ungil.fanout import Backoff, Outcomes
    from ungil.fanout._options import Options

    def is_worth_another(error: Exception) -> bool:
        return not isinstance(error, BadLine)

    try:
        checked = Options(
            backoff=Backoff(backoff),
            retry_if=is_worth_another,
            **options,
        )
        return Outcomes(target.fn, hosts, checked, in_order=False)
    except (ValueError, TypeError) as error:
        raise UsageError(str(error)) from error
