"""Whether the libraries in a wheel need no more of a system than the wheel's tag promises.

    python wheels/fit.py dist/*.whl

Says each thing that does not fit, and exits with 1 if there is one. `auditwheel show` reads the
versions of symbols, too. It does not look at symbols without a version: an older C library does
not have them, and the wheel would fail there when it is imported.
"""

from __future__ import annotations

import re
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.enums import ENUM_DT_FLAGS
from elftools.elf.gnuversions import GNUVerNeedSection, GNUVerSymSection
from elftools.elf.sections import StringTableSection, SymbolTableSection

# What a loader of 32 bits finds where one of 64 bits finds the stub.
OF_32_BITS = re.compile(r"/preload/i\d86/")
# The interpreter that imports a module has these, and gives them no version.
OF_PYTHON = re.compile(r"_?Py")


@dataclass(frozen=True)
class Promise:
    """What the platform tag of a wheel says: its machine, and the oldest C library."""

    machine: str
    version: tuple[int, int]

    # In the tag, and of what each such system has. Anything else would have to be in the wheel.
    tag = ""
    libraries = ""

    @property
    def library(self) -> str:
        """The oldest C library in words."""
        raise NotImplementedError

    def unfit_symbol(self, symbol: str, version: str | None) -> str | None:
        """Why a C library that is as old as the tag says may not have it; None if it does."""
        raise NotImplementedError

    def unfit_flags(self, flags: int) -> str | None:
        """Why its loader refuses a library with these `DT_FLAGS`; None if it does not."""
        del flags
        return None


class Glibc(Promise):
    """manylinux: glibc gives each symbol the version that it is of."""

    tag = "manylinux"
    libraries = r"lib(c|m|dl|rt|pthread)\.so\.\d|ld-linux[-\w]*\.so\.\d"

    @property
    def library(self) -> str:
        return f"glibc {said(self.version)}"

    def unfit_symbol(self, symbol: str, version: str | None) -> str | None:
        if version is None:
            return f"{symbol} without a version: {self.library} has none"
        if not (found := re.fullmatch(r"GLIBC_(\d+)\.(\d+)(?:\.\d+)?", version)):
            return f"{symbol}@{version}, which is no public version of glibc"
        if (int(found[1]), int(found[2])) > self.version:
            return f"{symbol}@{version}, and the tag says {self.library}"
        return None


class Musl(Promise):
    """musllinux: musl has no versions, so its symbols are in a list."""

    tag = "musllinux"
    # `libc.so` is what linkers write; musl's loader takes that for itself.
    libraries = r"libc\.(so|musl-\w+\.so\.1)"

    @property
    def library(self) -> str:
        return f"musl {said(self.version)}.0"

    def unfit_symbol(self, symbol: str, version: str | None) -> str | None:
        if version is not None:
            return f"{symbol}@{version}, and musl gives no symbol a version"
        return None if symbol in of_musl(self.version) else f"{symbol}, which {self.library} lacks"

    def unfit_flags(self, flags: int) -> str | None:
        # glibc keeps some room for these, musl none (dynlink.c, R_*_TPOFF).
        if flags & ENUM_DT_FLAGS["DF_STATIC_TLS"]:
            return "has thread-local memory of the initial-exec model, which musl refuses"
        return None


def promised(wheel: Path) -> Promise:
    """What a file's name says; ValueError if that is no C library of Linux, or one without list."""
    tag = wheel.stem.rpartition("-")[2]
    promises = [
        kind(found[3], (int(found[1]), int(found[2])))
        for kind in (Glibc, Musl)
        for part in tag.split(".")
        if (found := re.fullmatch(rf"{kind.tag}_(\d+)_(\d+)_(\w+)", part))
    ]
    if not promises:
        raise ValueError(f"its tag {tag} is none of manylinux or musllinux")
    oldest = min(promises, key=lambda it: it.version)
    if any(type(it) is not type(oldest) for it in promises):
        raise ValueError(f"its tag {tag} is of two C libraries")
    if isinstance(oldest, Musl):
        of_musl(oldest.version)
    return oldest


@cache
def of_musl(version: tuple[int, int]) -> frozenset[str]:
    """The symbols of the first musl of a version; ValueError if there is no list of them."""
    place = Path(__file__).with_name(f"musl_{version[0]}_{version[1]}.txt")
    if not place.exists():
        raise ValueError(f"nobody has written down what musl {said(version)} has: {place.name}")
    lines = place.read_text().splitlines()
    return frozenset(word for line in lines if not line.startswith("#") for word in line.split())


def unfit(wheel: Path) -> list[str]:
    """What does not fit in a wheel, a sentence each; empty if its tag is honest."""
    try:
        promise = promised(wheel)
    except ValueError as error:
        return [str(error)]
    with zipfile.ZipFile(wheel) as archive:
        libraries = [name for name in archive.namelist() if re.search(r"\.so(\.|$)", name)]
        if not libraries:
            return ["it has no library, so its tag says nothing"]
        return [
            f"{name} {why}"
            for name in libraries
            for why in unfit_library(archive.read(name), promise, bool(OF_32_BITS.search(name)))
        ]


def unfit_library(content: bytes, promise: Promise, is_of_32_bits: bool = False) -> Iterator[str]:
    """What a library needs and a system with that tag need not have."""
    try:
        elf = ELFFile(BytesIO(content))
    except ELFError as error:
        yield f"is no ELF file: {error}"
        return
    if is_of_32_bits:
        if elf.get_machine_arch() != "x86" or elf.elfclass != 32:
            yield "is for loaders of 32 bits, and is no library of 32 bits"
        return
    machine = elf.get_machine_arch().replace("x64", "x86_64").replace("AArch64", "aarch64")
    if machine != promise.machine:
        yield f"is built for {machine}, and the tag says {promise.machine}"
    dynamic = elf.get_section_by_name(".dynamic")
    assert isinstance(dynamic, DynamicSection)
    for library in needed_libraries(elf, dynamic):
        if not re.fullmatch(promise.libraries, library):
            yield f"needs the library {library}, which not every such system has"
    for flags in dynamic.iter_tags("DT_FLAGS"):
        if why := promise.unfit_flags(flags["d_val"]):
            yield why
    for version, symbols in needed_symbols(elf).items():
        for symbol in symbols:
            if version is None and OF_PYTHON.match(symbol):
                continue
            if why := promise.unfit_symbol(symbol, version):
                yield f"needs {why}"


def said(version: tuple[int, int]) -> str:
    """(2, 28) as 2.28."""
    return f"{version[0]}.{version[1]}"


def needed_libraries(elf: ELFFile, dynamic: DynamicSection) -> list[str]:
    """The names of the libraries that the loader opens with this one."""
    names = elf.get_section(dynamic["sh_link"])
    assert isinstance(names, StringTableSection)
    return [names.get_string(tag["d_val"]) for tag in dynamic.iter_tags("DT_NEEDED")]


def needed_symbols(elf: ELFFile) -> dict[str | None, list[str]]:
    """The symbols without which the loader refuses a library, by version.

    It refuses one of a version that it does not know, also if all symbols of it are weak. A weak
    symbol without a version may be missing: who uses one looks first whether it is there.
    """
    symbols = elf.get_section_by_name(".dynsym")
    assert isinstance(symbols, SymbolTableSection)
    numbers = elf.get_section_by_name(".gnu.version")
    versions = elf.get_section_by_name(".gnu.version_r")
    names: dict[int, str] = {}
    if isinstance(versions, GNUVerNeedSection):
        every = [it for _, of_library in versions.iter_versions() for it in of_library]
        names = {it["vna_other"]: it.name for it in every}
    found: dict[str | None, list[str]] = {}
    for index, symbol in enumerate(symbols.iter_symbols()):
        if index == 0 or symbol["st_shndx"] != "SHN_UNDEF":
            continue
        version = None
        if isinstance(numbers, GNUVerSymSection):
            version = names.get(numbers.get_symbol(index)["ndx"])
        if version or symbol["st_info"]["bind"] == "STB_GLOBAL":
            found.setdefault(version, []).append(symbol.name)
    for version in names.values():
        found.setdefault(version, ["something"])
    return found


def main() -> int:
    """Check the wheels that are named."""
    wrong = [f"{wheel}: {why}" for wheel in sys.argv[1:] for why in unfit(Path(wheel))]
    print(*wrong, sep="\n", end="\n" if wrong else "", file=sys.stderr)
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
