"""The programs in examples/, run as their reader would."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from suite import PATIENCE_S

EXAMPLES = Path(__file__).parents[1] / "examples"


def run(name: str, *arguments: str) -> str:
    """What an example prints."""
    words = [sys.executable, "-W", "error", str(EXAMPLES / f"{name}.py"), *arguments]
    ended = subprocess.run(
        words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    return ended.stdout


def numbers(text: str, pattern: str) -> list[int]:
    """The groups of a pattern that the text must contain once, as numbers."""
    (found,) = re.finditer(pattern, text)
    return [int(group) for group in found.groups()]


@pytest.mark.parametrize("how", ["threads", "processes"])
def test_threads_and_processes_multiply_matrices_with_the_same_code(how: str) -> None:
    printed = run("matmul", "--workers", "3", "--size", "40", "--how", how)
    assert re.fullmatch(rf"40x40 by 3 {how}: [\d.]+ s, and the product is right\n", printed)


def test_a_counter_loses_nothing_but_what_a_killed_worker_did_not_do() -> None:
    printed = run("shared_counter", "--workers", "3", "--times", "5000")
    assert re.findall(r"worker \d counted (\d+)", printed) == ["5000"] * 3
    (killed,) = numbers(printed, r"killed after it had counted (\d+)")
    together, missing = numbers(printed, r"all together (\d+): (\d) lost to the death")
    assert killed >= 1_000
    assert missing <= 1
    assert together == 3 * 5000 + killed - missing


def test_web_workers_find_what_others_computed_also_those_that_were_killed() -> None:
    printed = run("prefork_cache", "--workers", "3")
    for path in ("/second", "/third"):
        assert f"{path}: asked 3 workers, 2 had it from another one\n" in printed
    assert "a worker was killed; its successor had all 3 pages at once\n" in printed
    # Three pages asked for by three workers, and once more after the death.
    assert printed.endswith("3 misses, 9 hits\n")


def test_reading_a_shared_table_copies_nothing_and_reading_a_plain_one_does() -> None:
    printed = run("read_mostly_table", "--rows", "50000", "--workers", "3")
    grown: dict[str, int] = {}
    for kind in ("dict", "share.dict"):
        pattern = rf"(?m)^{kind}: 4 processes have (\d+) MB together, and (\d+) MB after"
        before, after = numbers(printed, pattern)
        grown[kind] = after - before
    assert grown["share.dict"] < grown["dict"] / 2


@pytest.mark.parametrize("how", ["threads", "green", "coroutines"])
def test_nornir_asks_all_devices_but_the_one_that_is_not_there(how: str) -> None:
    printed = run("fanout_nornir", "--hosts", "30", "--how", how)
    assert re.match(r"30 of 31 hosts answered two questions in [\d.]+ s\n", printed)
    assert "router0: version of 127.2.0.1, clock of 127.2.0.1\n" in printed
    assert printed.endswith("nobody: ConnectionRefusedError\n")


@pytest.mark.parametrize(
    ("name", "package"),
    [
        ("convoy_server", "waitress"),
        ("fanout_http", "httpx"),
        ("fanout_netmiko", "netmiko"),
        ("fanout_nornir", "nornir"),
        ("fanout_ssh", "asyncssh"),
        ("metrics_django", "django"),
        ("metrics_fastapi", "fastapi"),
        ("metrics_flask", "flask"),
        ("scoring_fastapi", "uvicorn"),
    ],
)
def test_an_example_whose_package_is_missing_names_it(name: str, package: str) -> None:
    code = (
        "import runpy, sys\n"
        "sys.modules[sys.argv[2]] = None  # as if it were not installed\n"
        "runpy.run_path(sys.argv[1], run_name='__main__')\n"
    )
    words = [sys.executable, "-c", code, str(EXAMPLES / f"{name}.py"), package]
    done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 1
    assert re.fullmatch(rf"{package}[\w.]* is not installed: pip install .*\n", done.stderr)


def test_a_crawler_loses_no_page_to_the_death_of_its_workers() -> None:
    printed = run("crawler", "--pages", "60", "--workers", "3", "--deaths", "6")
    assert "60 of 60 pages were crawled by 3 workers\n" in printed
    assert numbers(printed, r"(\d+) workers were killed, and (\d+) pages were fetched again") == [
        6,
        6,
    ]


def test_workers_have_one_model_together_and_agree() -> None:
    printed = run("one_model", "--words", "40000", "--workers", "3")
    assert re.search(r"(?m)^frozen: a file of \d+ MB; 3 workers had their first results", printed)
    (frozen, pickled) = re.findall(r"it takes (\d+) MB of all of them together", printed)
    assert int(frozen) < int(pickled) / 2


def test_a_data_loader_copies_a_list_and_not_what_is_frozen() -> None:
    printed = run("data_loader", "--rows", "40000", "--workers", "3")
    pattern = (
        r"(?m)^{}: (\d+) MB with the dataset, (\d+) MB in all 4 processes after all 40000 rows"
    )
    before, after = numbers(printed, pattern.format("list"))
    before_frozen, after_frozen = numbers(printed, pattern.format("share.freeze"))
    assert after_frozen - before_frozen < after - before


def test_workers_of_an_app_share_a_cache_and_a_rate_limiter() -> None:
    printed = run("cache_fastapi", "--workers", "3")
    assert "40 requests for 5 pages were answered; 5 were computed\n" in printed
    assert "and had asked 20 times, 40 were answered; 5 pages were computed in all\n" in printed


def copied(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """What `ungil examples` says in a folder."""
    command = [sys.executable, "-m", "ungil", "examples", *words]
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )


def test_who_has_only_the_wheel_is_given_every_example(tmp_path: Path) -> None:
    done = copied(tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "ungil trace examples/convoy_server.py" in done.stdout
    given = {it.name: it.read_bytes() for it in (tmp_path / "examples").iterdir()}
    assert given == {it.name: it.read_bytes() for it in EXAMPLES.glob("*.py")}
    assert copied(tmp_path).stdout == done.stdout
    assert [it.name for it in tmp_path.iterdir()] == ["examples"]


def test_a_folder_with_other_files_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "examples").mkdir()
    (tmp_path / "examples/convoy_server.py").write_text("mine")
    done = copied(tmp_path)
    sentence = "cannot write 'examples': it is there, with other files; name another folder"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"ungil: {sentence}\n")
    assert (tmp_path / "examples/convoy_server.py").read_text() == "mine"
    assert "no such folder as 'missing'" in copied(tmp_path, "missing/examples").stderr
