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
from io import BytesIO
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerNeedSection, GNUVerSymSection
from elftools.elf.sections import StringTableSection, SymbolTableSection

GLIBC_TAG = re.compile(r"manylinux_(\d+)_(\d+)_(\w+)")
GLIBC_VERSION = re.compile(r"GLIBC_(\d+)\.(\d+)(?:\.\d+)?")
# What every system with glibc has. Anything else would have to be in the wheel.
GLIBC_LIBRARIES = re.compile(r"lib(c|m|dl|rt|pthread)\.so\.\d|ld-linux[-\w]*\.so\.\d")
# What a loader of 32 bits finds where one of 64 bits finds the stub.
OF_32_BITS = re.compile(r"/preload/i\d86/")
# The interpreter that imports a module has these, and gives them no version.
OF_PYTHON = re.compile(r"_?Py")


@dataclass(frozen=True)
class Promise:
    """What the platform tag of a wheel says: its machine, and the oldest glibc."""

    machine: str
    glibc: tuple[int, int]

    @classmethod
    def of(cls, wheel: Path) -> Promise:
        """Read it from a file's name; ValueError if its tag is none of glibc."""
        tag = wheel.stem.rpartition("-")[2]
        found = [GLIBC_TAG.fullmatch(part) for part in tag.split(".")]
        promises = [cls(it[3], (int(it[1]), int(it[2]))) for it in found if it]
        if not promises:
            raise ValueError(f"its tag {tag} is none of manylinux")
        return min(promises, key=lambda it: it.glibc)


def unfit(wheel: Path) -> list[str]:
    """What does not fit in a wheel, a sentence each; empty if its tag is honest."""
    try:
        promise = Promise.of(wheel)
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


def unfit_library(
    content: bytes, promise: Promise, is_of_32_bits: bool = False
) -> Iterator[str]:
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
    for library in needed_libraries(elf):
        if not GLIBC_LIBRARIES.fullmatch(library):
            yield f"needs the library {library}, which not every such system has"
    for version, symbols in needed_symbols(elf).items():
        for symbol in symbols:
            if why := unfit_symbol(symbol, version, promise):
                yield f"needs {symbol}{why}"


def unfit_symbol(symbol: str, version: str | None, promise: Promise) -> str | None:
    """Why a C library that is as old as the tag says may not have a symbol; None if it does."""
    if version is None:
        if OF_PYTHON.match(symbol):
            return None
        return f" without a version: glibc {said(promise.glibc)} has none"
    if not (found := GLIBC_VERSION.fullmatch(version)):
        return f"@{version}, which is no public version of glibc"
    if (int(found[1]), int(found[2])) > promise.glibc:
        return f"@{version}, and the tag says glibc {said(promise.glibc)}"
    return None


def said(version: tuple[int, int]) -> str:
    """(2, 28) as 2.28."""
    return f"{version[0]}.{version[1]}"


def needed_libraries(elf: ELFFile) -> list[str]:
    """The names of the libraries that the loader opens with this one."""
    dynamic = elf.get_section_by_name(".dynamic")
    assert isinstance(dynamic, DynamicSection)
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
