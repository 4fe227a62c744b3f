"""What is told of two builds of the wheels, and where their paths and times come from."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import build_all
import pytest


def files(folder: Path, **contents: bytes) -> list[Path]:
    folder.mkdir()
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    return sorted(folder.iterdir())


def test_two_builds_of_the_same_bits_do_not_differ(tmp_path: Path) -> None:
    first, second = (files(tmp_path / name, a=b"1", b=b"2") for name in ("one", "two"))
    assert build_all.differences(first, second) == []


def test_the_file_that_differs_is_named(tmp_path: Path) -> None:
    first, second = files(tmp_path / "one", a=b"1", b=b"2"), files(tmp_path / "two", a=b"1", b=b"3")
    assert build_all.differences(first, second) == [
        "b is not the same when it is built in another folder"
    ]


def test_a_file_that_only_one_build_made_is_a_difference(tmp_path: Path) -> None:
    first, second = files(tmp_path / "one", a=b"1", b=b"2"), files(tmp_path / "two", a=b"1")
    (why,) = build_all.differences(first, second)
    assert "['a', 'b'] and ['a']" in why


def test_the_second_build_has_every_file_that_git_knows(tmp_path: Path) -> None:
    folder = build_all.copied(tmp_path / "elsewhere")
    assert (folder / "wheels/build_all.py").read_text() == Path(build_all.__file__).read_text()
    assert (folder / "crates/ungil-hook/Cargo.toml").exists()
    assert not (folder / "target").exists()


def test_the_folder_of_a_build_is_not_in_what_it_makes(tmp_path: Path) -> None:
    environment = build_all.reproducible(tmp_path, "7")
    assert f"--remap-path-prefix={tmp_path}=/ungil" in environment["RUSTFLAGS"].split()
    assert environment["SOURCE_DATE_EPOCH"] == "7"


def test_the_time_of_a_build_is_that_of_the_last_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    assert build_all.commit_time().isdecimal()
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "7")
    assert build_all.commit_time() == "7"


def test_what_rust_has_no_target_for_is_noticed() -> None:
    assert not build_all.has_target("riscv32imc-unknown-none-elf")
    here = build_all.printed("rustc", "-vV").partition("host: ")[2].split()[0]
    assert build_all.has_target(here)


def test_a_missing_standard_library_is_one_sentence_before_anything_is_built(
    tmp_path: Path,
) -> None:
    rustc = tmp_path / "rustc"
    rustc.write_text("#!/bin/sh\necho /nowhere\n")
    rustc.chmod(0o755)
    out = tmp_path / "dist"
    done = subprocess.run(
        [sys.executable, build_all.__file__, "--out", out],
        env=os.environ | {"RUSTC": str(rustc)},
        capture_output=True,
        text=True,
        check=False,
    )
    names = " ".join(build_all.PLATFORMS)
    sentence = f"Rust's standard library is missing for {names}: rustup target add {names}\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", sentence)
    assert not out.exists()


def test_the_size_of_a_wheel_and_of_the_module_in_it_are_told(tmp_path: Path) -> None:
    wheel = tmp_path / "ungil-1-cp311-abi3-musllinux_1_2_x86_64.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("ungil/_native.pyi", "")
        archive.writestr("ungil/_native.abi3.so", bytes(3_210_000))
    (line,) = build_all.sizes([wheel])
    assert line == f"  3.21 MB, _native 3.21 MB  {wheel.name}"


def test_the_document_has_the_tags_that_are_built() -> None:
    text = (build_all.PROJECT / "docs" / "wheels.md").read_text()
    tags = {tag for tag, _ in build_all.INTERPRETERS.values()} | {*build_all.PLATFORMS.values()}
    assert {tag for tag in tags if f"| `{tag}` |" in text} == tags


def test_a_standard_library_is_added_for_every_platform() -> None:
    """The machine's own, x86-64 with glibc, is there."""
    text = (build_all.PROJECT / "Makefile").read_text()
    added = text.partition("rustup target add ")[2].partition("\n")[0].split()
    assert {*added, "x86_64-unknown-linux-gnu"} == {*build_all.PLATFORMS}
