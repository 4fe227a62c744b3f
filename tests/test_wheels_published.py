"""`make wheels` puts nothing into dist that does not fit, or that a second build makes otherwise.

A stand-in builds in place of maturin, which takes minutes: it packs a library made of C. Everything
after that is real.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import build_all
import pytest

HERE = platform.machine()
TARGET = f"{HERE}-unknown-linux-gnu"
# `python -m maturin`: it reads those of its options that say where and what.
STAND_IN = """
import os, subprocess, sys, zipfile
from pathlib import Path
command, *words = sys.argv[1:]
given = dict(zip(words, words[1:]))
out = Path(given["--out"])
out.mkdir(exist_ok=True)
if command == "sdist":
    (out / "ungil-1.tar.gz").touch()
    sys.exit()
library = out.parent / "module.so"
code = Path(os.environ["CODE"]).read_text().replace("FOLDER", os.getcwd())
compile = ["cc", "-xc", "-", "-shared", "-fPIC", "-nostdlib", "-Wl,--no-as-needed"]
compile += ["-xnone", os.environ["LIBC"], "-o", str(library)]
subprocess.run(compile, input=code, text=True, check=True)
tag = {"python3.11": "cp311-abi3", "python3.14t": "cp314-cp314t"}.get(
    given["--interpreter"], "cp315-abi3.abi3t"
)
machine = given["--target"].partition("-")[0]
wheel = f"ungil-1-{tag}-{given['--compatibility']}_{machine}.whl"
with zipfile.ZipFile(out / wheel, "w") as archive:
    entry = zipfile.ZipInfo("ungil/_native.so")
    archive.writestr(entry, library.read_bytes())
"""
# A C library whose second symbol is newer than any tag of ours.
LIBC = "void old(void) {} void new(void) {}"
VERSIONS = "GLIBC_2.17 { global: old; }; GLIBC_2.34 { global: new; };"
FITS = "void old(void); void mine(void) { old(); }"
IS_TOO_NEW = "void new(void); void mine(void) { new(); }"
NAMES_ITS_FOLDER = f'{FITS} const char folder[] = "FOLDER";'
WHEELS = [
    f"ungil-1-{tag}-{build_all.PLATFORMS[TARGET]}_{HERE}.whl"
    for tag, _ in build_all.INTERPRETERS.values()
]


def build(
    tmp_path: Path, code: str, *options: str
) -> tuple[subprocess.CompletedProcess[str], list[str]]:
    """Runs build_all.py on a library of this code: how it ends, and what is in dist then."""
    stand_in, out = tmp_path / "maturin", tmp_path / "dist"
    stand_in.mkdir()
    (stand_in / "__init__.py").touch()
    (stand_in / "__main__.py").write_text(STAND_IN)
    (tmp_path / "code.c").write_text(code)
    (tmp_path / "versions").write_text(VERSIONS)
    libc = tmp_path / "libc.so.6"
    command = ["cc", "-xc", "-", "-shared", "-fPIC", "-nostdlib", "-Wl,-soname,libc.so.6"]
    command += [f"-Wl,--version-script={tmp_path / 'versions'}", "-o", str(libc)]
    subprocess.run(command, input=LIBC, text=True, check=True)
    done = subprocess.run(
        [sys.executable, build_all.__file__, "--out", out, "--target", TARGET, *options],
        env=os.environ
        | {"PYTHONPATH": str(tmp_path), "CODE": str(tmp_path / "code.c"), "LIBC": str(libc)},
        capture_output=True,
        text=True,
        check=False,
    )
    return done, sorted(it.name for it in out.iterdir()) if out.exists() else []


@pytest.mark.parametrize("options", [(), ("--twice",)])
def test_wheels_that_fit_are_put_into_dist_and_their_sizes_are_told(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    done, files = build(tmp_path, FITS, *options)
    assert done.returncode == 0, done.stderr
    assert files == [*WHEELS, "ungil-1.tar.gz"]
    *lines, last = done.stdout.splitlines()[-5:]
    assert [line.split()[-1] for line in lines] == files
    assert ("again with the same bits" in last) == bool(options)


def test_one_kind_of_wheel_can_be_made_alone(tmp_path: Path) -> None:
    done, files = build(tmp_path, FITS, "--interpreter", "python3.14t")
    assert done.returncode == 0, done.stderr
    assert files == [WHEELS[1], "ungil-1.tar.gz"]


def test_one_symbol_that_is_too_new_ends_it_before_the_next_wheel_is_built(tmp_path: Path) -> None:
    done, files = build(tmp_path, IS_TOO_NEW)
    why = "ungil/_native.so needs new@GLIBC_2.34, and the tag says glibc 2.28"
    assert (done.returncode, done.stderr) == (1, f"{WHEELS[0]}: {why}\n")
    assert "2 of 3" not in done.stdout
    assert files == []


def test_a_wheel_that_names_the_folder_it_was_built_in_is_not_the_same_twice(
    tmp_path: Path,
) -> None:
    done, files = build(tmp_path, NAMES_ITS_FOLDER, "--twice")
    same = "is not the same when it is built in another folder"
    assert (done.returncode, done.stderr) == (1, "".join(f"{it} {same}\n" for it in WHEELS))
    assert files == []
