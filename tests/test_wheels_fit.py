"""The check of wheels finds whatever an older system would refuse to load."""

from __future__ import annotations

import platform
import subprocess
import sys
import zipfile
from pathlib import Path

import fit
import pytest

HERE = platform.machine()
ELSEWHERE = "aarch64" if HERE == "x86_64" else "x86_64"
OLD, NEW = f"manylinux_2_28_{HERE}", f"manylinux_2_34_{HERE}"
# A C library with symbols of two versions, one older and one newer than the tag.
VERSIONS = "GLIBC_2.17 { global: old; }; GLIBC_2.34 { global: new; }; GLIBC_PRIVATE { inner; };"
LIBC = "void old(void) {} void new(void) {} void inner(void) {}"


class Maker:
    """Makes wheels of one library each, from C."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "versions").write_text(VERSIONS)
        self.libc = self.library("libc.so.6", LIBC, f"-Wl,--version-script={folder / 'versions'}")

    def library(self, name: str, code: str, *options: str) -> Path:
        """A shared library that needs nothing but what it is told to."""
        place = self.folder / name
        command = ["cc", "-xc", "-", "-shared", "-fPIC", "-nostdlib", f"-Wl,-soname,{name}"]
        command += ["-Wl,--unresolved-symbols=ignore-all", "-Wl,--no-as-needed", "-xnone"]
        subprocess.run([*command, *options, "-o", place], input=code, text=True, check=True)
        return place

    def wheel(self, *files: Path, tag: str = OLD) -> Path:
        place = self.folder / f"ungil-1-cp311-abi3-{tag}.whl"
        with zipfile.ZipFile(place, "w") as archive:
            for file in files:
                archive.write(file, f"ungil/{file.name}")
        return place

    def of(self, code: str, tag: str = OLD) -> Path:
        return self.wheel(self.library("module.so", code, str(self.libc)), tag=tag)


@pytest.fixture
def make(tmp_path: Path) -> Maker:
    return Maker(tmp_path)


def test_what_the_tag_promises_fits(make: Maker) -> None:
    assert fit.unfit(make.of("void old(void); void mine(void) { old(); }")) == []


def test_a_symbol_of_a_newer_version_does_not_fit(make: Maker) -> None:
    wheel = make.of("void new(void); void mine(void) { new(); }")
    assert fit.unfit(wheel) == ["ungil/module.so needs new@GLIBC_2.34, and the tag says glibc 2.28"]


def test_the_same_symbol_fits_a_newer_tag(make: Maker) -> None:
    code = "void new(void); void mine(void) { new(); }"
    assert fit.unfit(make.of(code, tag=NEW)) == []


def test_of_two_tags_the_older_one_counts(make: Maker) -> None:
    code = "void new(void); void mine(void) { new(); }"
    assert fit.unfit(make.of(code, tag=f"{OLD}.{NEW}")) != []


def test_a_weak_symbol_of_a_newer_version_does_not_fit_either(make: Maker) -> None:
    code = "__attribute__((weak)) void new(void); void mine(void) { if (new) new(); }"
    assert fit.unfit(make.of(code)) != []


def test_a_private_symbol_of_the_c_library_does_not_fit(make: Maker) -> None:
    (why,) = fit.unfit(make.of("void inner(void); void mine(void) { inner(); }"))
    assert "inner@GLIBC_PRIVATE" in why


def test_a_symbol_that_no_version_of_the_c_library_has_does_not_fit(make: Maker) -> None:
    (why,) = fit.unfit(make.of("void memfd(void); void mine(void) { memfd(); }"))
    assert why == "ungil/module.so needs memfd without a version: glibc 2.28 has none"


@pytest.mark.parametrize(
    "declared", ["void *PyList_New(long)", "__attribute__((weak)) void *gettid(long)"]
)
def test_symbols_of_python_and_weak_ones_need_no_version(make: Maker, declared: str) -> None:
    name = "PyList_New" if "PyList_New" in declared else "gettid"
    assert fit.unfit(make.of(f"{declared}; void *mine(void) {{ return {name}(0); }}")) == []


def test_a_library_that_not_every_system_has_does_not_fit(make: Maker) -> None:
    other = make.library("libssl.so.3", "void tls(void) {}")
    module = make.library("module.so", "void mine(void) {}", str(make.libc), str(other))
    assert fit.unfit(make.wheel(module)) == [
        "ungil/module.so needs the library libssl.so.3, which not every such system has"
    ]


def test_a_library_of_another_machine_does_not_fit(make: Maker) -> None:
    wheel = make.of("void mine(void) {}", tag=f"manylinux_2_28_{ELSEWHERE}")
    (why,) = fit.unfit(wheel)
    assert why == f"ungil/module.so is built for {HERE}, and the tag says {ELSEWHERE}"


@pytest.mark.skipif(HERE != "x86_64", reason="other machines have no libraries of 32 bits")
def test_only_what_is_for_loaders_of_32_bits_is_of_32_bits(make: Maker) -> None:
    small = make.library("small.so", "void mine(void) {}", "-m32")
    (why,) = fit.unfit(make.wheel(small))
    assert why == f"ungil/small.so is built for x86, and the tag says {HERE}"
    wheel = make.wheel()
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.write(small, "ungil/preload/i686/small.so")
        archive.write(make.libc, "ungil/preload/i586/large.so")
    (why,) = fit.unfit(wheel)
    assert why.startswith("ungil/preload/i586/large.so is for loaders of 32 bits")


def test_every_library_of_a_wheel_is_looked_at(make: Maker) -> None:
    good = make.library("good.so", "void mine(void) {}", str(make.libc))
    bad = make.library("bad.so.1", "void new(void); void it(void) { new(); }", str(make.libc))
    (why,) = fit.unfit(make.wheel(good, bad))
    assert why.startswith("ungil/bad.so.1 ")


def test_what_is_no_library_does_not_fit(make: Maker) -> None:
    (make.folder / "empty.so").touch()
    (why,) = fit.unfit(make.wheel(make.folder / "empty.so"))
    assert why.startswith("ungil/empty.so is no ELF file")
    assert fit.unfit(make.wheel()) == ["it has no library, so its tag says nothing"]


def test_a_wheel_of_another_system_does_not_fit(make: Maker) -> None:
    (why,) = fit.unfit(make.wheel(make.libc, tag="macosx_11_0_arm64"))
    assert "macosx_11_0_arm64" in why


def test_the_command_names_the_wheel_and_fails(make: Maker) -> None:
    bad = make.of("void new(void); void mine(void) { new(); }")
    command = [sys.executable, fit.__file__, bad]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == f"{bad}: ungil/module.so needs new@GLIBC_2.34, " + (
        "and the tag says glibc 2.28\n"
    )
