"""A stranger's ten minutes: types every command of README and the tutorials on a fresh machine.

    python tests/stranger.py WHEEL [--suite trixie] [--roots FOLDER] [--keep]

The machine is a copy of a root that `make platforms` makes, with Debian's Python and nothing of
this folder but the wheel. An unprivileged user of it reads README and the tutorials from top to
bottom and types what they say, exactly as printed. A table tells of each command how long it took,
how it ended and whether it printed what the document shows, other numbers aside. What needs more
than such a machine has is named with the reason. All that was printed is in target/stranger.

Exits with 1 if a command failed or printed something else, and with 2 if there is no such machine.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import reader
from documented import Command, Shell, everything_typed, missing
from platforms import systems
from platforms.room import Place, Room
from platforms.systems import System, Unmade
from rich.console import Console
from rich.table import Table

PROJECT = Path(__file__).resolve().parent.parent
ROOTS = PROJECT / "target/platforms/roots"
KEPT = PROJECT / "target/stranger"
DOCUMENTS = ("README.md", *(f"docs/tutorials/{name}.md" for name in reader.TUTORIALS))
HER_UID = 1000
HOME = "/home/stranger"
# What she has before she has ungil: the Python of her system, and certificates for pip.
PACKAGES = ("python3", "python3-venv", "ca-certificates")
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
# How this machine reaches the registries, if that needs anything.
WAY_OUT = re.compile(r"(?i)(?:https?|no|all)_proxy|PIP_(?:(?:EXTRA_)?INDEX_URL|DEFAULT_TIMEOUT)")
GOAL_MIN = 10


@dataclass
class Done:
    """What came of a command."""

    document: str
    command: Command
    status: int | None = None
    """None if it was not typed."""
    took_s: float = 0
    printed: str = ""
    reason: str = ""
    """Why it was not typed."""
    lacking: list[str] = field(default_factory=list[str])
    """What it should have printed."""

    @property
    def is_right(self) -> bool:
        """Whether it did what the document says, or is one that she cannot type."""
        return self.status is None or (self.status == self.command.status and not self.lacking)


def machine(suite: str, roots: Path, wheel: Path) -> Path:
    """A fresh root with her home in it, and the wheel there; `Unmade` if that is not possible."""
    every = [it for it in vars(systems).values() if isinstance(it, System) and not it.is_emulated]
    known = {it.suite: it for it in every}
    if suite not in known:
        raise Unmade(f"--suite: there is no {suite!r} here, but {', '.join(known)}")
    made = equipped(known[suite], roots)
    root = KEPT / "root"
    shutil.rmtree(root, ignore_errors=True)
    copy(made, root)
    shutil.copy("/etc/resolv.conf", root / "etc/resolv.conf")
    if CERTIFICATES.exists():
        shutil.copy(CERTIFICATES, root / CERTIFICATES.relative_to("/"))
    added = Room(root, {}).run("useradd", "--create-home", f"--uid={HER_UID}", "stranger")
    if added.status:
        raise Unmade(f"there is no user in the root: {added.said}")
    her = root / HOME.lstrip("/")
    (her / "dist").mkdir()
    shutil.copy(wheel, her / "dist")
    for name, text in reader.FILES.items():
        (her / name).write_text(text)
    for path in [her, *her.rglob("*")]:
        os.chown(path, HER_UID, HER_UID)
    return root


def equipped(system: System, roots: Path) -> Path:
    """A root of a system with what she has before she has ungil; made once."""
    base = system.root(roots)
    own = replace(system, packages=PACKAGES)
    kept = KEPT / "roots"
    kept.mkdir(parents=True, exist_ok=True)
    if not (kept / own.name).exists():
        with systems.changing(base):
            copy(base, kept / own.name)
    return own.root(kept)


def copy(source: Path, target: Path) -> None:
    """Copy a root whole or not at all, but for what `make platforms` has installed in it."""
    partial = target.with_name(f"{target.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    subprocess.run(["cp", "--archive", "--reflink=auto", source, partial], check=True)
    shutil.rmtree(partial / "opt", ignore_errors=True)
    (partial / "opt").mkdir()
    partial.rename(target)


def room(root: Path) -> Room:
    """Her place in it."""
    way_out = {name: value for name, value in os.environ.items() if WAY_OUT.fullmatch(name)}
    own = {
        "HOME": HOME,
        "USER": "stranger",
        "PATH": f"{HOME}/.venv/bin:/usr/local/bin:/usr/bin:/bin",
        "COLUMNS": "92",
        "PYTHONDONTWRITEBYTECODE": "",
        "SSL_CERT_FILE": str(CERTIFICATES),
        "PIP_CERT": str(CERTIFICATES),
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }
    return Room(root, {}, Place(uid=HER_UID), environment=way_out | own)


@contextmanager
def shell(hers: Room) -> Generator[Shell]:
    """A shell of hers, in her home."""
    words = hers.command("env", f"--chdir={HOME}", "bash", "--noprofile", "--norc")
    with Shell(PROJECT, dict(os.environ), words) as opened:
        yield opened


def type_in(opened: Shell, document: str, command: Command, hers: Room) -> Done:
    """Type a command, with what goes on beside it."""
    done = Done(document, command)
    done.reason = reader.reason(command.typed)
    if done.reason:
        return done
    began_s = time.monotonic()
    with reader.meanwhile(command.typed, opened.pid, hers):
        try:
            done.status, done.printed = opened.run(command.typed)
        except (EOFError, BrokenPipeError) as error:
            done.status, done.printed = -1, str(error)
    done.took_s = time.monotonic() - began_s
    done.lacking = missing(command, done.printed)
    return done


def read(document: str, hers: Room, tell: Callable[[Done], None]) -> None:
    """Type all commands of a document in one shell, as she does, and tell of each."""
    listed = everything_typed((PROJECT / document).read_text(encoding="utf-8"))
    with shell(hers) as opened:
        for typed in reader.FIRST if document == DOCUMENTS[0] else ():
            tell(type_in(opened, document, of_her_own(typed), hers))
        for command in listed:
            for typed in reader.ahead(command.typed):
                tell(type_in(opened, document, of_her_own(typed), hers))
            tell(type_in(opened, document, command, hers))


def of_her_own(typed: str) -> Command:
    """A command that stands in no document."""
    return Command(0, typed, [], [], 0)


def line(done: Done) -> tuple[str, str, str, str, str]:
    """The row of a command: where it stands, what it is, and what came of it."""
    where = Path(done.document).stem + (f":{done.command.line}" if done.command.line else "")
    typed = re.sub(r"\s+#.*", "", done.command.typed).replace("\n", " ")
    if done.status is None:
        return where, typed, "", "", f"not typed: {done.reason}"
    said = "as shown" if done.command.shown else "nothing to compare"
    if done.lacking:
        said = f"other output: {done.lacking[0]}"
    if done.status != done.command.status:
        said = f"exit code {done.command.status} was expected"
    return where, typed, f"{done.took_s:.1f} s", str(done.status), said


def table(every: list[Done]) -> Table:
    """All commands."""
    drawn = Table("where", "command", "took", "exit", "printed", highlight=False)
    for it in every:
        drawn.add_row(*line(it), style="" if it.is_right else "red")
    return drawn


def summary(every: list[Done], took_s: float) -> str:
    """What came of all of them, in a sentence or two."""
    typed = [it for it in every if it.status is not None]
    wrong = [it for it in every if not it.is_right]
    within = "within" if took_s < GOAL_MIN * 60 else "NOT within"
    return (
        f"{len(typed)} commands typed, {len(every) - len(typed)} named with a reason, "
        f"{len(wrong)} wrong; {took_s / 60:.1f} min in all, {within} the goal of {GOAL_MIN} min"
    )


def main() -> None:
    """Make the machine, read, and tell."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--suite", default="trixie", help="the Debian [trixie]")
    parser.add_argument("--roots", type=Path, default=ROOTS, help="[target/platforms/roots]")
    parser.add_argument("--keep", action="store_true", help="keep the machine, to look into it")
    parser.add_argument("--only", default="", metavar="PATTERN", help="documents of that name")
    options = parser.parse_args()
    try:
        sys.exit(0 if attempt(options) else 1)
    except Unmade as error:
        print(error, file=sys.stderr)
        sys.exit(2)


def chosen(pattern: str) -> list[str]:
    """README, which installs ungil, and the tutorials that have a pattern in their names."""
    first, *tutorials = DOCUMENTS
    try:
        found = [it for it in tutorials if re.search(pattern, Path(it).stem)]
    except re.error as error:
        raise Unmade(f"--only {pattern!r} is no pattern: {error}") from None
    if not found:
        names = ", ".join(reader.TUTORIALS)
        raise Unmade(f"--only: no tutorial has {pattern!r} in its name; there are {names}")
    return [first, *found]


def attempt(options: argparse.Namespace) -> bool:
    """One stranger; whether all went well."""
    if os.geteuid() != 0:
        raise Unmade("only root may change the root of a process: run it as root")
    if not options.wheel.is_file():
        raise Unmade(f"there is no wheel {str(options.wheel)!r}: make wheel builds one")
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 150)
    documents = chosen(options.only)
    root = machine(options.suite, options.roots, options.wheel)
    every: list[Done] = []

    def tell(done: Done) -> None:
        every.append(done)
        kept.write(f"$ {done.command.typed}\n{done.printed}")
        console.print("  ".join(line(done)), markup=False, soft_wrap=True)
        if not done.is_right:
            console.print(done.printed, markup=False, soft_wrap=True)

    began_s = time.monotonic()
    try:
        with (KEPT / "printed.txt").open("w", encoding="utf-8") as kept:
            for document in documents:
                read(document, room(root), tell)
    finally:
        if not options.keep:
            shutil.rmtree(root)
    console.print(table(every))
    console.print(summary(every, time.monotonic() - began_s))
    return all(it.is_right for it in every)


if __name__ == "__main__":
    main()
