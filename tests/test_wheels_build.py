"""What is told of two builds of the wheels, and where their paths and times come from."""

from __future__ import annotations

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


def test_the_folder_of_a_build_is_not_in_what_it_makes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    environment = build_all.reproducible(tmp_path)
    assert f"--remap-path-prefix={tmp_path}=/ungil" in environment["RUSTFLAGS"].split()
    assert environment["SOURCE_DATE_EPOCH"].isdecimal()


def test_what_rust_has_no_target_for_is_noticed() -> None:
    assert not build_all.has_target("riscv32imc-unknown-none-elf")
    here = build_all.said("rustc", "-vV").partition("host: ")[2].split()[0]
    assert build_all.has_target(here)
