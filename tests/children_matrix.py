"""Starts children of every kind under parents of every kind, with the stub and without (long).

    python tests/children_matrix.py [--roots FOLDER] [--json FILE]

Parents are Pythons: that of this machine, and those of Debian 11, 12 and sid, in roots which
debootstrap makes in FOLDER (target/roots) if they are not there. Children are programs of all of
these (in a foreign root with a loader and libraries of their own, as an AppImage has), of musl,
static ones, one of 32 bits and one that is setuid. Each calls what the stub stands in for, or is a
shell that does. A child has failed if its status or its output with the stub is not what it is
without. Root alone may do this; gcc-multilib, musl-tools and debootstrap are needed.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from stubs import HOOK, PRELOADED, copied

PROJECT = Path(__file__).resolve().parent.parent
SOURCE = PROJECT / "tests" / "programs" / "stand_ins.c"
SUITES = {"glibc of Debian 11": "bullseye", "glibc of Debian 12": "bookworm", "glibc of sid": "sid"}
STATIC = {
    "static glibc": ["cc", "-pthread", "-static"],
    "static musl": ["musl-gcc", "-static"],
}
# Where the roots have ungil's libraries and the children.
PLACE = "ungil-children"
# A shell makes most of the calls that the stub sees: it forks, executes and opens pipes.
SHELL = ["-c", 'x=$(echo 6 | cat); test "$x" = 6 && echo "$x" && exit 7']
TIMEOUT_S = 120


@dataclass(frozen=True)
class Start:
    """One child of one parent."""

    parent: str
    child: str
    asked: str
    outcome: str
    """`same` or `failed`."""


def main() -> None:
    """Run all, say what failed, and exit with 1 if anything has."""
    options = argparse.ArgumentParser(description="Starts children of every kind.")
    options.add_argument("--roots", type=Path, default=PROJECT / "target" / "roots")
    options.add_argument("--json", type=Path)
    asked = options.parse_args()
    if os.geteuid() != 0:
        sys.exit("only root may change the root of a process: run it as root")
    starts = list(all_starts(asked.roots))
    if asked.json:
        asked.json.write_text(json.dumps([asdict(it) for it in starts], indent=1), encoding="utf-8")
    for start in starts:
        if start.outcome != "same":
            print(f"{start.outcome}: {start.child}, {start.asked}, under {start.parent}")
    failed = sum(start.outcome == "failed" for start in starts)
    print(f"{len(starts)} starts, {failed} failed")
    sys.exit(failed > 0)


def all_starts(folder: Path) -> Iterator[Start]:
    """Every child under every parent, in every way."""
    roots = {"this machine": Path("/")}
    roots |= {name: made(folder, suite) for name, suite in SUITES.items()}
    for name, root in roots.items():
        place = root / PLACE
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        try:
            children = prepared(place, {it: roots[it] for it in SUITES})
            for child, words in children.items():
                for asked in ({}, {"UNGIL_POLICY": "fair"}, {"UNGIL_SESSION": "/nonexistent"}):
                    outcome = started(root, words, asked)
                    yield Start(name, child, " ".join(asked) or "nothing asked", outcome)
        finally:
            shutil.rmtree(place)


def made(folder: Path, suite: str) -> Path:
    """The root of a Debian, with a Python."""
    root = folder / suite
    if not (root / "usr/bin/python3").exists():
        folder.mkdir(parents=True, exist_ok=True)
        command = ["debootstrap", "--variant=minbase", "--include=python3", suite, str(root)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return root


def prepared(place: Path, systems: dict[str, Path]) -> dict[str, list[str]]:
    """Children by what they are, as the words that start them in the root of `place`."""
    copied(place)
    children: dict[str, list[str]] = {"the root's own shell": ["/bin/sh", *SHELL]}
    for name, root in systems.items():
        children[f"{name}, bundled"] = bundled(place / root.name, root)
    for name, compiler in STATIC.items():
        children[name] = [str(compiled(compiler, place / name.replace(" ", "-")))]
    musl = Path("/lib/x86_64-linux-musl/libc.so")
    children["musl"] = with_loader(place / "musl", ["musl-gcc"], musl)
    children["musl with the hook"] = with_loader(
        place / "musl-with-hook", ["musl-gcc", "-DMAY_OPEN"], musl
    )
    of_32_bits = with_loader(place / "32", ["cc", "-m32", "-pthread"], Path("/lib/ld-linux.so.2"))
    children["32 bits"] = of_32_bits
    shutil.copy("/lib32/libc.so.6", place / "32")
    setuid = place / "setuid"
    root = place.parent
    shutil.copy((root / "bin/sh").resolve() if root == Path("/") else root / "bin/dash", setuid)
    os.chown(setuid, 1, -1)
    setuid.chmod(0o4755)
    children["setuid"] = [str(setuid), *SHELL]
    # As they are called inside of the root.
    return {
        name: [word.replace(str(place), f"/{PLACE}") for word in words]
        for name, words in children.items()
    }


def bundled(place: Path, root: Path) -> list[str]:
    """A shell of another system, with that system's loader and C library beside it."""
    place.mkdir()
    loader = root / "lib64/ld-linux-x86-64.so.2"
    target = loader.readlink()
    # An absolute one means the root's own.
    shutil.copy(root / str(target)[1:] if target.is_absolute() else loader, place / "loader")
    libraries = root / "usr/lib/x86_64-linux-gnu"
    for name in ("libc.so.6", "libdl.so.2", "libpthread.so.0", "libtinfo.so.6"):
        if (libraries / name).exists():
            shutil.copy(libraries / name, place)
    shutil.copy(root / "bin/bash", place)
    return [str(place / "loader"), "--library-path", str(place), str(place / "bash"), *SHELL]


def with_loader(place: Path, compiler: list[str], loader: Path) -> list[str]:
    """A dynamic program, started by its own loader, because not every root has that."""
    place.mkdir()
    program = compiled(compiler, place / "program")
    shutil.copy(loader, place / "loader")
    return [str(place / "loader"), "--library-path", str(place), str(program)]


def compiled(compiler: list[str], program: Path) -> Path:
    """What calls all that the stub stands in for."""
    subprocess.run([*compiler, "-O1", "-o", str(program), str(SOURCE)], check=True)
    return program


def started(root: Path, words: list[str], asked: dict[str, str]) -> str:
    """Whether the child does with the stub what it does without: the outcome of a `Start`."""
    stub = PRELOADED.replace(str(HOOK.parent), f"/{PLACE}")
    bare = child_of_python(root, words, {})
    status, out, said = child_of_python(root, words, {"LD_PRELOAD": stub, **asked})
    if (status, out, said) != bare or not out:
        print(f"  {words}: {bare} and then {(status, out, said)}", file=sys.stderr)
        return "failed"
    return "same"


def child_of_python(
    root: Path, words: list[str], variables: dict[str, str]
) -> tuple[int, str, str]:
    """What came of a child of the root's Python, which itself is started with `variables`."""
    code = "import subprocess, sys; sys.exit(subprocess.call(sys.argv[1:]))"
    python = sys.executable if root == Path("/") else "/usr/bin/python3"
    named = [f"{name}={value}" for name, value in variables.items()]
    # The variables are for what is inside of the root.
    command = ["chroot", str(root), "/usr/bin/env", *named, python, "-c", code, *words]
    kept = {"PATH": "/usr/sbin:/usr/bin:/bin", "LC_ALL": "C"}
    done = subprocess.run(
        command, env=kept, capture_output=True, text=True, check=False, timeout=TIMEOUT_S
    )
    return done.returncode, done.stdout, done.stderr


if __name__ == "__main__":
    main()
