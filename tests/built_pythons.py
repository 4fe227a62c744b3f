"""Builds the Pythons that no registry has, from CPython's source as Debian has it (long).

    python tests/built_pythons.py [NAME ...] [--folder FOLDER]

Each is built once, in FOLDER/NAME; remove that to build it again. FOLDER is
`$XDG_CACHE_HOME/ungil/pythons` unless it is named. apt fetches the source with a configuration of
its own, which adds nothing to that of this machine, and takes it only if Debian has signed it.
Debian's patches are left out: these are to be CPython's own interpreters.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

MIRROR = "http://deb.debian.org/debian"
KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"
REFUSE_UNSIGNED = [
    *("-o", "Acquire::AllowInsecureRepositories=false"),
    *("-o", "Acquire::AllowWeakRepositories=false"),
    *("-o", "APT::Get::AllowUnauthenticated=false"),
]
# For the modules that these builds have.
LIBRARIES = [
    *("libbz2-dev", "libffi-dev", "liblzma-dev", "libsqlite3-dev", "libssl-dev", "uuid-dev"),
    "zlib1g-dev",
]
# For Tk, which draws by these.
WINDOWS = ["tcl-dev", "tk-dev", "libxft-dev", "libxss-dev"]
# None of them is to be linked with.
ALL_HAVE = ["--with-ensurepip=no", "--without-static-libpython"]
# Few of them have CPython's own tests.
WITHOUT_TESTS = "--disable-test-modules"
# What the `make` that calls this script says is not for that of CPython, which needs its own rules.
OF_MAKE = ["MAKEFLAGS", "MFLAGS", "MAKELEVEL"]
# Debug information takes long to write.
SLIM = "-g0"
# Which libraries the interpreter is to contain: those that have locks of their own, and small ones.
CONTAINED = ["bz2", "crypto", "ffi", "lzma", "sqlite3", "ssl", "tcl8.6", "tk8.6", "uuid", "z"]
TCL_AND_TK = "-ltk8.6 -ltcl8.6 -lXft -lXss -lfontconfig -lXext -lX11 -lz -lm"
# Modules of libraries that are licensed so that no such build contains them, or that few have.
NOT_CONTAINED = ["readline", "_gdbm", "_dbm", "_curses", "_curses_panel", "nis"]
# musl-gcc is the compiler of glibc with other folders, and would name glibc's when it is asked for
# the folder of libraries, which configure refuses.
MUSL_COMPILER = """\
#!/bin/sh
[ "$1" = --print-multiarch ] || exec musl-gcc "$@"
"""
SAYS_KIND = """\
import sys, sysconfig
# Its loader is a link to its library where Debian has them.
maps = open("/proc/self/maps").read()
is_musl = "/ld-musl-" in maps or "-linux-musl/" in maps
if not is_musl:
    import bz2, ctypes, lzma, sqlite3, ssl, uuid, zlib
if "_ssl" in sys.builtin_module_names:
    import tkinter
libraries = ["libpython", "libcrypto", "libssl", "libsqlite3", "libtcl", "libtk", "libffi"]
print("free-threaded" if sysconfig.get_config_var("Py_GIL_DISABLED") else "has a GIL", end=", ")
print("musl" if is_musl else "glibc", end=", ")
print("libraries" if any(it in maps for it in libraries) else "contained")
"""


@dataclass(frozen=True)
class Build:
    """How one of them is built."""

    source: str
    suite: str
    """Of Debian's, that has the source."""
    kind: str
    """What it says of itself: see `SAYS_KIND`."""
    needs: list[str]
    """Packages."""
    options: list[str]
    """Words for configure."""
    environment: dict[str, str] = field(default_factory=dict[str, str])


BUILDS = {
    # Its tests of dict, list and others are those of ungil.share, too.
    "free-threaded": Build(
        "python3.13", "trixie", "free-threaded, glibc, libraries", LIBRARIES, ["--disable-gil"]
    ),
    # As Alpine's: the loader is that of musl, so a library can be preloaded.
    "musl": Build(
        "python3.13", "trixie", "has a GIL, musl, contained", ["musl-tools"], [WITHOUT_TESTS]
    ),
    # As those that uv installs: one file without libpython, with the modules and their libraries
    # in it. Unlike those it is not trained (PGO, BOLT), which takes an hour and changes no call.
    "static": Build(
        "python3.13",
        "trixie",
        "has a GIL, glibc, contained",
        LIBRARIES + WINDOWS,
        ["--with-lto=full", "--disable-shared", WITHOUT_TESTS],
        {
            "MODULE_BUILDTYPE": "static",
            # configure asks for one part, which one processor compiles.
            "LDFLAGS_NODIST": "-flto=auto -flto-partition=balanced",
            "LDFLAGS": "-Wl,-z,relro,-z,now -Wl,--exclude-libs,ALL",
            # What pkg-config says of it is for its shared library.
            "LIBSQLITE3_CFLAGS": "-I/usr/include",
            "LIBSQLITE3_LIBS": "-lsqlite3 -lm",
            "TCLTK_CFLAGS": "-I/usr/include/tcl8.6",
            "TCLTK_LIBS": TCL_AND_TK,
            **{f"py_cv_module_{name}": "n/a" for name in NOT_CONTAINED},
        },
    ),
}


def main() -> None:
    """Build what is missing and say where each is."""
    parser = argparse.ArgumentParser(description="Builds Pythons from CPython's source.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(BUILDS)} [all]")
    parser.add_argument("--folder", type=Path, default=default_folder())
    options = parser.parse_args()
    if unknown := set(options.names) - set(BUILDS):
        parser.error(f"there is no build {', '.join(unknown)}; there are {', '.join(BUILDS)}")
    folder = options.folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    for name in options.names or BUILDS:
        prefix = folder / name
        if not prefix.exists():
            build(name, BUILDS[name], prefix)
        print(python_of(prefix), flush=True)


def default_folder() -> Path:
    """Where they are built."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "ungil" / "pythons"


def built(name: str) -> Path | None:
    """The interpreter with this name, if it was built."""
    prefix = default_folder() / name
    return python_of(prefix) if prefix.exists() else None


def python_of(prefix: Path) -> Path:
    """The interpreter that was built there."""
    named = (it for it in prefix.glob("bin/python3.*") if re.fullmatch(r"python3\.\d+t?", it.name))
    return max(named)  # A free-threaded one also has the name of the usual one.


def build(name: str, how: Build, prefix: Path) -> None:
    """Build it beside its place and move it there when it is whole and is what it should be."""
    began_s = time.monotonic()
    install([*how.needs, "build-essential", "pkgconf", "xz-utils"])
    with tempfile.TemporaryDirectory(prefix=f".{name}-", dir=prefix.parent) as scratch_name:
        scratch = Path(scratch_name)
        log = prefix.parent / f"{name}.log"
        archive = fetch(how, scratch)
        source = scratch / "source"
        source.mkdir()
        run(["tar", "-xf", archive, "--strip-components=1", "-C", source], scratch, log)
        made = compiled(how, source, scratch / "made", prefix, log)
        kind = said_kind(made)
        if kind != how.kind:
            sys.exit(f"{name} is to be {how.kind!r}, and is {kind!r}; {log} has its build")
        written = f"{archive.name} of Debian's {how.suite}\nconfigure {' '.join(how.options)}\n"
        (made / "BUILT_FROM").write_text(written, encoding="utf-8")
        made.rename(prefix)
    size = sum(it.lstat().st_size for it in prefix.rglob("*"))
    print(f"{name}: {size / 1e6:.0f} MB in {time.monotonic() - began_s:.0f} s", file=sys.stderr)


def install(packages: list[str]) -> None:
    """Install those of the packages that are missing."""
    ask = ["dpkg-query", "--show", "--showformat", "${db:Status-Abbrev}"]
    is_there = {
        it: subprocess.run([*ask, it], capture_output=True, check=False).stdout.startswith(b"ii")
        for it in packages
    }
    if not (missing := [it for it, there in is_there.items() if not there]):
        return
    root = [] if os.geteuid() == 0 else ["sudo", "-n"]
    print(f"this needs {' '.join(missing)}: apt-get install", file=sys.stderr)
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    wanted = ["install", "-y", "-qq", "--no-install-recommends", *missing]
    for words in (["update", "-qq"], wanted):
        ended = subprocess.run([*root, "apt-get", *words], env=environment, stdout=2, check=False)
        if ended.returncode != 0:
            sys.exit(f"that has failed; install {' '.join(missing)} as your system does it")


def fetch(how: Build, scratch: Path) -> Path:
    """The archive that CPython has released, as Debian's suite has it."""
    state = scratch / "apt"
    for needed in ("lists/partial", "cache/archives/partial"):
        (state / needed).mkdir(parents=True)
    sources = state / "debian.sources"
    said = {"Types": "deb-src", "URIs": MIRROR, "Suites": how.suite, "Components": "main"}
    lines = [f"{key}: {value}\n" for key, value in (said | {"Signed-By": KEYS}).items()]
    sources.write_text("".join(lines), encoding="utf-8")
    places = {"Etc::sourcelist": sources, "Etc::sourceparts": "/dev/null"}
    places |= {"State::lists": state / "lists", "Cache": state / "cache"}
    apt = ["apt-get", "-qq", *REFUSE_UNSIGNED]
    apt += [word for key, place in places.items() for word in ("-o", f"Dir::{key}={place}")]
    if os.geteuid() == 0:
        # Its own user may not enter this folder.
        apt += ["-o", "APT::Sandbox::User=root"]
    for words in (["update"], ["source", "--download-only", f"{how.source}/{how.suite}"]):
        if subprocess.run([*apt, *words], cwd=scratch, stdout=2, check=False).returncode != 0:
            sys.exit(f"apt has no {how.source} of Debian's {how.suite}, or does not trust it")
    (archive,) = [it for it in scratch.glob("*.orig.tar.*") if it.suffix != ".asc"]
    return archive


def compiled(how: Build, source: Path, made: Path, prefix: Path, log: Path) -> Path:
    """The folder that is to become `prefix`."""
    outside = {name: value for name, value in os.environ.items() if name not in OF_MAKE}
    environment = {**outside, "CFLAGS": SLIM, **how.environment}
    if "static" in environment.get("MODULE_BUILDTYPE", ""):
        only_static = f"-L{static_libraries(source / 'static-libraries')}"
        environment["LDFLAGS"] = f"{only_static} {environment['LDFLAGS']}"
    if "musl" in how.kind:
        compiler = source / "musl-cc"
        compiler.write_text(MUSL_COMPILER, encoding="utf-8")
        compiler.chmod(0o755)
        environment |= {"CC": str(compiler), "PKG_CONFIG": "false"}
    configure = ["./configure", f"--prefix={prefix}", *ALL_HAVE, *how.options]
    run([*configure], source, log, environment)
    run(["make", f"-j{os.cpu_count()}"], source, log, environment)
    run(["make", "altinstall", f"DESTDIR={made}"], source, log, environment)
    return made / prefix.relative_to("/")


def static_libraries(folder: Path) -> Path:
    """A folder in which the linker finds these libraries, and finds them as archives alone."""
    folder.mkdir()
    for name in CONTAINED:
        asked = ["cc", f"-print-file-name=lib{name}.a"]
        told = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
        if not (path := Path(told)).is_absolute():
            sys.exit(f"there is no lib{name}.a, which is to be linked into the interpreter")
        (folder / f"lib{name}.a").symlink_to(path)
    return folder


def said_kind(made: Path) -> str:
    """What the interpreter says it is, before it is in its place."""
    environment = {"PYTHONHOME": str(made), "PATH": os.environ["PATH"]}
    asked = [str(python_of(made)), "-c", SAYS_KIND]
    told = subprocess.run(asked, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    return told.stdout.strip()


def run(
    words: list[str | Path], folder: Path, log: Path, environment: dict[str, str] | None = None
) -> None:
    """Run a step whose output is of interest only if it fails."""
    with log.open("a", encoding="utf-8") as out:
        ended = subprocess.run(
            words, cwd=folder, env=environment, stdout=out, stderr=subprocess.STDOUT, check=False
        )
    if ended.returncode != 0:
        last = "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-20:])
        sys.exit(f"{last}\n{words[0]} has failed with {ended.returncode}; {log} has all of it")


if __name__ == "__main__":
    main()
