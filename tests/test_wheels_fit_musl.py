"""The check of wheels tells musl's libraries from glibc's, and an older musl from a newer one."""

from __future__ import annotations

import platform
import subprocess
import zipfile
from pathlib import Path

import fit
import pytest

HERE = platform.machine()
MUSL, GLIBC = f"musllinux_1_2_{HERE}", f"manylinux_2_28_{HERE}"
# Both C libraries have all of this, and have had it for long.
OLD = """
#include <stdio.h>
#include <stdlib.h>
#include <errno.h>
static __thread int last;
int mine(void) { last = errno; return puts(getenv("HOME")) + last; }
"""
NEWER = "int gettid(void); int mine(void) { return gettid(); }"
STATIC = """
__attribute__((tls_model("initial-exec"))) __thread int last;
int mine(void) { return ++last; }
"""


def wheel(folder: Path, compiler: str, code: str, tag: str) -> Path:
    """A wheel with one library, which a compiler makes as it makes any."""
    library, place = folder / f"{compiler}.so", folder / f"ungil-1-cp311-abi3-{tag}.whl"
    command = [compiler, "-xc", "-", "-shared", "-fPIC", "-o", library]
    subprocess.run(command, input=code, text=True, check=True)
    with zipfile.ZipFile(place, "w") as archive:
        archive.write(library, "ungil/_native.abi3.so")
    return place


def test_what_every_musl_of_the_tag_has_fits(tmp_path: Path) -> None:
    assert fit.unfit(wheel(tmp_path, "musl-gcc", OLD, MUSL)) == []


def test_the_same_code_for_glibc_does_not_fit_musl(tmp_path: Path) -> None:
    why = fit.unfit(wheel(tmp_path, "gcc", OLD, MUSL))
    assert "ungil/_native.abi3.so needs the library libc.so.6, which not every such system has" in (
        why
    )
    assert any("needs puts@GLIBC_2." in it and "musl gives no symbol a version" in it for it in why)


def test_the_same_code_for_musl_does_not_fit_glibc(tmp_path: Path) -> None:
    why = fit.unfit(wheel(tmp_path, "musl-gcc", OLD, GLIBC))
    assert any("needs the library libc." in it for it in why)
    assert "ungil/_native.abi3.so needs puts without a version: glibc 2.28 has none" in why


def test_a_symbol_that_came_to_musl_later_does_not_fit(tmp_path: Path) -> None:
    (why,) = fit.unfit(wheel(tmp_path, "musl-gcc", NEWER, MUSL))
    assert why == "ungil/_native.abi3.so needs gettid, which musl 1.2.0 lacks"


def test_thread_local_memory_that_musl_cannot_add_later_does_not_fit(tmp_path: Path) -> None:
    (why,) = fit.unfit(wheel(tmp_path, "musl-gcc", STATIC, MUSL))
    assert "initial-exec" in why


@pytest.mark.parametrize(
    ("tag", "why"),
    [
        (f"musllinux_1_1_{HERE}", "nobody has written down what musl 1.1 has: musl_1_1.txt"),
        (f"{GLIBC}.{MUSL}", f"its tag {GLIBC}.{MUSL} is of two C libraries"),
    ],
)
def test_a_tag_that_nobody_can_check_does_not_fit(tmp_path: Path, tag: str, why: str) -> None:
    assert fit.unfit(wheel(tmp_path, "gcc", OLD, tag)) == [why]
