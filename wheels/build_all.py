"""Builds ungil's wheels and its source distribution (make wheels).

    python wheels/build_all.py [--out FOLDER] [--twice] [--target RUST_TARGET ...]
                               [--interpreter NAME ...]

zig links them, so they need an old C library only, and other machines' wheels are made as well.
With `--twice` all is built once more in another folder, and the bits have to be the same.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from time import monotonic

from fit import unfit

PROJECT = Path(__file__).resolve().parent.parent
# What Rust calls a platform, and the tag of its wheels: docs/decisions/0036 says why these.
PLATFORMS = {
    "x86_64-unknown-linux-gnu": "manylinux_2_28",
    "aarch64-unknown-linux-gnu": "manylinux_2_28",
    "x86_64-unknown-linux-musl": "musllinux_1_2",
    "aarch64-unknown-linux-musl": "musllinux_1_2",
}
# For each of these Pythons, none of which has to be installed: the tag of its wheel, and what PyO3
# is told. They are built one by one: next to 3.15t, maturin makes a wheel for 3.11 alone of 3.11.
INTERPRETERS: dict[str, tuple[str, list[str]]] = {
    "python3.11": ("cp311-abi3", []),
    "python3.14t": ("cp314-cp314t", []),
    "python3.15t": ("cp315-abi3.abi3t", ["--features", "pyo3/abi3t-py315"]),
}
NATIVE = "ungil/_native."


def main() -> None:
    """Build, check, and say the sizes."""
    parser = argparse.ArgumentParser(description="Builds ungil's wheels and source distribution.")
    parser.add_argument("--out", type=Path, default=PROJECT / "dist", help="the folder for them")
    parser.add_argument("--twice", action="store_true", help="compare with a second build")
    parser.add_argument("--target", nargs="*", choices=PLATFORMS, help="only for these")
    parser.add_argument("--interpreter", nargs="*", choices=INTERPRETERS, help="only for these")
    options = parser.parse_args()
    targets = options.target or list(PLATFORMS)
    kinds = [(it, of) for it in targets for of in options.interpreter or INTERPRETERS]
    if missing := [target for target in targets if not has_target(target)]:
        names = " ".join(missing)
        sys.exit(f"Rust's standard library is missing for {names}: rustup target add {names}")
    began = monotonic()
    when = commit_time()
    with tempfile.TemporaryDirectory(prefix="ungil-wheels-") as name:
        folder = Path(name)
        # Before the first build, which takes long: somebody may work in the project meanwhile.
        elsewhere = copied(folder / "elsewhere") if options.twice else None
        built = build(PROJECT, kinds, folder / "dist", when)
        if elsewhere:
            again = build(elsewhere, kinds, folder / "again", when)
            if wrong := differences(built, again):
                sys.exit("\n".join(wrong))
        options.out.mkdir(parents=True, exist_ok=True)
        # A copy has another name until it is whole: a wheel of that name may be in use.
        for it in built:
            shutil.copy(it, options.out / f"{it.name}.tmp")
            (options.out / f"{it.name}.tmp").replace(options.out / it.name)
    print(*sizes(options.out / it.name for it in built), sep="\n")
    alike = ", and again with the same bits" if options.twice else ""
    print(f"{len(built)} files in {options.out}{alike}: {monotonic() - began:.0f} s")


def build(project: Path, kinds: list[tuple[str, str]], out: Path, when: str) -> list[Path]:
    """Build wheels, each for a target and an interpreter, and the sdist; the files, by name.

    The first wheel that does not fit ends it.
    """
    environment = reproducible(project, when)
    words = ["build", "--profile", "wheel", "--locked", "--zig", "--out", str(out)]
    for number, (target, interpreter) in enumerate(kinds, 1):
        tag, features = INTERPRETERS[interpreter]
        platform = ["--target", target, "--compatibility", PLATFORMS[target]]
        kind = [*features, "--interpreter", interpreter]
        said_before = f"{number} of {len(kinds)}: {tag} for {target}"
        print(said_before, flush=True)
        began = monotonic()
        maturin(project, [*words, *platform, *kind], environment)
        machine = target.partition("-")[0]
        wheels = list(out.glob(f"*-{tag}-{PLATFORMS[target]}_{machine}.whl"))
        if not wheels:
            made = sorted(it.name for it in out.iterdir())
            sys.exit(f"no wheel of {interpreter} has the tag {tag}, there are {made}")
        # Now, and not after the hour that the rest may take.
        if wrong := [f"{it.name}: {why}" for it in wheels for why in unfit(it)]:
            sys.exit("\n".join(wrong))
        print(f"{said_before}: {monotonic() - began:.0f} s", flush=True)
    maturin(project, ["sdist", "--out", str(out)], environment)
    return sorted(out.iterdir())


def commit_time() -> str:
    """When the last commit was made, or what `SOURCE_DATE_EPOCH` says instead, in seconds."""
    when = os.environ.get("SOURCE_DATE_EPOCH")
    return when or printed("git", "-C", str(PROJECT), "log", "-1", "--format=%ct")


def reproducible(project: Path, when: str) -> dict[str, str]:
    """An environment in which neither time nor folder of a build leave a trace in its result.

    The cargo that builds the hook inherits `RUSTFLAGS`, as it does zig as the linker.
    """
    cargo = Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo"))
    remapped = {project: "/ungil", cargo / "registry" / "src": "/registry"}
    flags = [f"--remap-path-prefix={place}={name}" for place, name in remapped.items()]
    return {
        **os.environ,
        "SOURCE_DATE_EPOCH": when,
        "RUSTFLAGS": " ".join(flags),
        "CARGO_TARGET_DIR": str(project / "target" / "wheels"),
        # Whose ziglang it is.
        "CARGO_ZIGBUILD_PYTHON_PATH": sys.executable,
    }


def copied(folder: Path) -> Path:
    """The files that git knows, as they are now, in another folder."""
    for name in printed("git", "-C", str(PROJECT), "ls-files").splitlines():
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(PROJECT / name, place, follow_symlinks=False)
    return folder


def differences(first: list[Path], second: list[Path]) -> list[str]:
    """What two builds did not make alike, a sentence each."""
    names = [[it.name for it in built] for built in (first, second)]
    if names[0] != names[1]:
        return [f"two builds made different files: {names[0]} and {names[1]}"]
    return [
        f"{one.name} is not the same when it is built in another folder"
        for one, other in zip(first, second, strict=True)
        if sha256(one.read_bytes()).digest() != sha256(other.read_bytes()).digest()
    ]


def sizes(files: Iterable[Path]) -> list[str]:
    """A line for each file: how large it is, and the extension module in it."""
    lines: list[str] = []
    for file in files:
        native = ""
        if file.suffix == ".whl":
            with zipfile.ZipFile(file) as archive:
                inner = [it for it in archive.infolist() if it.filename.startswith(NATIVE)]
            # Not the .pyi, which is there as well.
            native = f", _native {max(it.file_size for it in inner) / 1e6:.2f} MB"
        lines.append(f"{file.stat().st_size / 1e6:6.2f} MB{native}  {file.name}")
    return lines


def has_target(target: str) -> bool:
    """Whether Rust's standard library is installed for a platform."""
    rustc = os.environ.get("RUSTC", "rustc")
    return Path(printed(rustc, "--print", "target-libdir", "--target", target)).is_dir()


def maturin(project: Path, words: list[str], environment: dict[str, str]) -> None:
    """Run the maturin of this environment on a folder of sources."""
    command = [sys.executable, "-m", "maturin", *words]
    if subprocess.run(command, cwd=project, env=environment, check=False).returncode:
        sys.exit(f"maturin {words[0]} has failed, see above")


def printed(*command: str) -> str:
    """What a program prints."""
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    main()
