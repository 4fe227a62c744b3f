"""What the check of arrows says of sources that point the wrong way."""

from pathlib import Path

import arrows

LIBRARY = """
mod low;
pub mod middle;
mod high;
#[cfg(all(test, loom))]
mod model;

pub use high::Tower;
"""


def crate(folder: Path, **modules: str) -> list[str]:
    """What is said of a crate with these modules."""
    source = folder / "src"
    for name, text in {"lib": LIBRARY, **modules}.items():
        file = source / f"{name.replace('__', '/')}.rs"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return list(arrows.wrong_modules(source))


def manifest(folder: Path, name: str, tables: str) -> None:
    file = folder / name / "Cargo.toml"
    file.parent.mkdir()
    file.write_text(f'[package]\nname = "{name}"\n{tables}')


def test_a_module_may_use_what_stands_above_it(tmp_path: Path):
    assert crate(tmp_path, high="use crate::{low, middle::{self, Part}};\n") == []


def test_a_module_that_uses_one_below_it_is_told_where(tmp_path: Path):
    said = crate(tmp_path, low="use std::fmt;\n\nfn f() { crate::high::g() }\n")
    assert said == ["src/low.rs:3: low uses high, which stands below it in lib.rs"]


def test_each_item_of_a_list_is_looked_at(tmp_path: Path):
    said = crate(tmp_path, middle="use crate::{\n    low::{high, x},\n    high::y,\n};\n")
    assert said == ["src/middle.rs:3: middle uses high, which stands below it in lib.rs"]


def test_what_is_exported_belongs_to_its_module(tmp_path: Path):
    assert len(crate(tmp_path, low="use crate::Tower;\n")) == 1


def test_a_file_in_the_folder_of_a_module_is_part_of_it(tmp_path: Path):
    said = crate(tmp_path, low__inner="use crate::middle;\n")
    assert said == ["src/low/inner.rs:1: low uses middle, which stands below it in lib.rs"]


def test_comments_tests_and_models_may_name_everything(tmp_path: Path):
    tests = "//! See [`crate::high`].\n#[cfg(test)]\nmod tests {\n    use crate::high;\n}\n"
    model = "use crate::high;\n"
    assert crate(tmp_path, low=tests, low__model=model, model=model) == []


def test_a_crate_that_uses_another_one_against_the_arrows_is_named(tmp_path: Path):
    manifest(tmp_path, "ungil-heap", "[target.'cfg(loom)'.dependencies]\nungil-core.path = '.'\n")
    manifest(tmp_path, "ungil-hook", "[dependencies]\nungil-core.path = '.'\nlibc = '0.2'\n")
    [said] = arrows.wrong_crates(tmp_path)
    assert said.startswith("ungil-heap may not use ungil-core")


def test_a_crate_that_nobody_has_spoken_of_is_named(tmp_path: Path):
    manifest(tmp_path, "ungil-more", "")
    [said] = arrows.wrong_crates(tmp_path)
    assert said.startswith("ungil-more is a new crate")


def test_only_its_own_package_imports_what_begins_with_an_underscore(tmp_path: Path):
    package = tmp_path / "python" / "ungil"
    for name, text in {
        "cli/run.py": "from ungil import _native\n\nfrom ungil.fanout import _call, sleep\n",
        "cli/table.py": "def f():\n    import ungil.fanout._call\n",
        "fanout/__init__.py": "from ungil.fanout._call import fanout\n",
        "lab.py": "from ungil.fanout import __doc__\n",
    }.items():
        file = package / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    assert list(arrows.wrong_packages(package)) == [
        "python/ungil/cli/run.py:3: ungil.fanout._call is private to ungil.fanout",
        "python/ungil/cli/table.py:2: ungil.fanout._call is private to ungil.fanout",
    ]
