"""The experiments futex, fanout and matmul: what was published, what they measure, how it is shown.

Sizes are tiny, and no figure of time decides anything.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from lab import HEADER, chosen, result, results
from pythons import Python, pythons

from ungil import environment
from ungil.interpreters import Interpreter
from ungil.lab import borrowed, green, system_calls, whole
from ungil.lab.chart import Mark, Ranked
from ungil.lab.experiment import Cell, CellFailed, Experiment, Missing, Plan
from ungil.lab.experiments import fanout, futex, matmul
from ungil.lab.findings import found as found_by
from ungil.lab.results import Result
from ungil.lab.text import notes
from ungil.lab.workload import FOLDER, run, words_of

EACH = pytest.mark.parametrize("python", pythons(), ids=str)
OLD = replace(chosen(), version="2.7.18", name="2.7")


def figures(experiment: Experiment) -> dict[str, float]:
    return {figure.what: figure.value for figure in experiment.published}


def cells(experiment: Experiment, *interpreters: Interpreter, quick: bool = True) -> list[Cell]:
    return list(experiment.plan(Plan(interpreters, quick)))


def shown(experiment: Experiment, number: int, *found: Result) -> list[tuple[str, ...]]:
    """The rows of a table."""
    return [row.cells for row in experiment.tables(results(*found))[number].rows]


# futex.


def test_what_was_published_of_futex_calls_is_kept_as_it_was() -> None:
    assert figures(futex.EXPERIMENT) == {
        "futex calls of a million imports": 1_000_020,
        "a million imports": 2.061,
        "the same with GNU Pth": 1.572,
        "futex calls of the application": 15_192,
        "wall-clock time that GNU Pth saved, at least": 25,
        "wall-clock time that GNU Pth saved, at most": 30,
    }
    imports = {it.settings["n"] for it in cells(futex.EXPERIMENT, chosen(), quick=False)}
    assert max(imports) == 1_000_000


@EACH
@pytest.mark.parametrize("how", [futex.ALONE, futex.IDLE, futex.TURNS])
def test_each_program_of_futex_runs_on_every_python(python: Python, how: str) -> None:
    measured = run(chosen(python.path), "futex", 100, how)
    assert set(measured) == {"wall_s", "cpu_s", "system_s"}


def test_imports_need_no_futex_calls_turns_do_and_green_turns_do_not() -> None:
    n = 300
    calls = {
        (how, is_green): system_calls.count(
            words_of(chosen(), "futex", n, how),
            extra=green.variables(chosen()) if is_green else None,
        )[1].get("futex", 0)
        for how, is_green in (("alone", False), ("turns", False), ("turns", True))
    }
    # Starting and ending take a few; when a thread waits depends on how the kernel runs them.
    assert calls["alone", False] < n / 3
    assert calls["turns", False] > n
    assert calls["turns", True] < n / 3


def test_an_interpreter_without_gevent_is_told_how_to_get_it(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "own"], check=True)
    other = chosen(f"{tmp_path}/own/bin/python")
    with pytest.raises(Missing, match=f"it has no gevent: {other.path} -m pip install gevent"):
        green.variables(other)


def test_futex_calls_are_shown_beside_those_of_2007() -> None:
    def of(variant: str, n: int, **measured: Any) -> Result:
        return replace(result("futex", "3.11", variant, **measured), settings={"n": n})

    found = [
        of("futex calls, alone", 1_000_000, calls=90, futex=1),
        of("futex calls, idle", 1_000_000, calls=90, futex=8),
        of("alone", 1_000_000, wall_s=0.2),
        of("alone, green", 1_000_000, wall_s=0.1),
        of("futex calls, turns", 10_000, calls=90_000, futex=80_000),
        of("futex calls, turns, green", 10_000, calls=90, futex=2),
    ]
    assert shown(futex.EXPERIMENT, 0, *found) == [
        ("Majkowski 2007, Python 2.5.1", "1,000,020", "", "", "2,061 ms", "0.76x"),
        ("3.11", "1", "8", "-", "200 ms", "0.50x"),
    ]
    assert shown(futex.EXPERIMENT, 1, *found) == [("3.11", "80,000", "2", "-", "-")]
    summary = found_by("futex", results(*found)).summary
    assert [(row.label, row.marks[0].value) for row in summary] == [
        ("then: imports", 1_000_020),
        ("now: imports", 1),
        ("now: turns", 4_000_000),
        ("ungil, green", 100),
    ]


# fanout.


def test_what_was_published_of_the_fan_out_is_kept_as_it_was() -> None:
    assert sorted(figures(fanout.EXPERIMENT).values()) == [0.111, 0.962, 1.071, 2.598]
    assert fanout.RTTS_S == (0.05, 0.1, 0.3, 1.0)
    assert (fanout.ITEMS, fanout.WORKERS[0], fanout.WORKERS[-1]) == (10_000, 100, 10_000)


def test_every_published_way_is_measured_at_every_rtt() -> None:
    planned = {it.variant for it in cells(fanout.EXPERIMENT, chosen(), quick=False)}
    for rtt in ("50 ms", "100 ms", "300 ms", "1000 ms"):
        for way in ("nornir threaded 100", "nornir threaded 10,000", "nornir ungil green",
                    "ungil lean", "asyncio gather", "goroutines", "gornir",
                    "gornir, GOMAXPROCS=1", "gornir, GOMAXPROCS=100"):  # fmt: skip
            assert f"{rtt}, {way}" in planned


def test_what_takes_long_is_measured_once() -> None:
    planned = cells(fanout.EXPERIMENT, chosen(), quick=False)
    rounds = {it.variant: 0 for it in planned}
    for one in planned:
        rounds[one.variant] += 1
        assert one.round == 1 or one.seconds <= fanout.LONG_S
    assert rounds["1000 ms, nornir threaded 100"] == 1
    assert rounds["50 ms, asyncio gather"] == fanout.ROUNDS


def small(ways: Sequence[fanout.Way]) -> list[fanout.Way]:
    """With few threads at most."""
    return [replace(way, limit=min(way.limit, 20)) for way in ways]


def check_whole(measured: dict[str, Any]) -> None:
    """What a whole process took is complete, and possible."""
    assert set(measured) == {"wall_s", "user_s", "system_s", "peak_bytes"}
    assert measured["wall_s"] >= 0.01
    assert measured["peak_bytes"] > 1e6


@pytest.mark.parametrize("way", small(list(fanout.own_ways())), ids=lambda way: way.name)
def test_each_way_that_needs_packages_runs_in_ungils_own_python(way: fanout.Way) -> None:
    check_whole(fanout.measure_own(way, chosen(), 40, 0.01))


@EACH
def test_each_way_without_packages_runs_on_every_python_that_can(python: Python) -> None:
    interpreter = chosen(python.path)
    ways = [way for way in small(list(fanout.ways())) if fanout.works(way, interpreter)]
    assert [way.program for way in ways][:1] == ["threads"]
    assert (len(ways) == 4) is python.can_borrow
    for way in ways:
        check_whole(way.measure(interpreter, 40, 0.01))


def test_a_process_in_which_items_are_lost_has_failed() -> None:
    with pytest.raises(CellFailed, match=r"5 items were to come back; it said \['4 0 0'\]"):
        whole.used([sys.executable, "-c", "print(4, 0, 0)"], 5)
    with pytest.raises(CellFailed, match="status 3: no luck"):
        whole.used([sys.executable, "-c", "import sys; print('no luck', file=sys.stderr); "
                    "sys.exit(3)"], 5)  # fmt: skip
    with pytest.raises(CellFailed, match="status 137"):
        whole.used([sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"], 5)


def test_goroutines_are_built_where_there_is_go_or_say_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if shutil.which("go") is not None:
        program = whole.build("goroutines", tmp_path)
        check_whole(whole.used([program, 40, 0.01, 0, 0], 40))
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(Missing, match="Go is not installed: apt install golang"):
        whole.build("goroutines", tmp_path)


def test_gornir_is_measured_where_a_copy_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv(environment.GORNIR, raising=False)
    with pytest.raises(Missing, match=f"name the program in {environment.GORNIR}"):
        whole.gornir()
    monkeypatch.setenv(environment.GORNIR, str(tmp_path / "none"))
    with pytest.raises(Missing, match="names no program"):
        whole.gornir()
    stands_for_it = tmp_path / "gornir"
    stands_for_it.write_text('#!/bin/sh\ntest "$4" = logrus || exit 1\nsleep "$2"\n'
                             'test "$GOMAXPROCS" = 100 && echo "$1 0 0"\n')  # fmt: skip
    stands_for_it.chmod(0o755)
    monkeypatch.setenv(environment.GORNIR, str(stands_for_it))
    [cell] = [
        it
        for it in cells(fanout.EXPERIMENT, chosen())
        if it.variant == "50 ms, gornir, GOMAXPROCS=100"
    ]
    check_whole(cell.measure())


def test_the_go_programs_lie_beside_the_workloads() -> None:
    assert {it.parent.name for it in (FOLDER / "go").glob("*/main.go")} == {
        "devices",
        "goroutines",
        "gornir",
    }


def test_whole_processes_are_shown_above_the_floor_and_beside_2020() -> None:
    measured = {"wall_s": 0.2, "user_s": 0.1, "system_s": 0.05, "peak_bytes": 15e6}
    found = replace(
        result("fanout", "3.13", "50 ms, ungil lean", **measured),
        settings={"items": 10_000, "rtt_s": 0.05},
    )
    rows = shown(fanout.EXPERIMENT, 0, found)
    assert rows[0] == ("floor: the RTT", "0.050", "", "", "", "")
    assert (
        "2020: nornir threaded 1,000, 10,000 hosts",
        "0.995",
        "0.810",
        "0.370",
        "118",
        "",
    ) in rows
    assert (
        "2020: nornir threaded 10,000, 10,000 hosts",
        "0.962",
        "0.820",
        "0.370",
        "123",
        "",
    ) in rows
    assert ("2020: gornir, GOMAXPROCS=1, 10,000 hosts", "0.158", "0.090", "0.030", "74", "") in rows
    assert rows[-1] == ("ungil lean (3.13)", "0.200", "0.100", "0.050", "75", "15")
    [chart] = found_by("fanout", results(found)).charts
    assert isinstance(chart, Ranked)
    _, alone = chart.panels
    assert [row.label for row in alone.rows] == ["2020: gornir", "ungil lean"]
    assert alone.rows[-1].marks == [Mark(0.2, "ungil")]


# matmul.


def test_what_was_published_of_matrices_is_kept_as_it_was() -> None:
    weights = [round(matmul.published(matmul.SHARE, it), 1) for it in range(1, 9)]
    assert weights == [101.3, 52.0, 36.0, 26.9, 21.7, 18.6, 16.0, 14.2]
    threads = [round(matmul.published(matmul.THREADS, it), 1) for it in range(1, 9)]
    assert threads == [100.0, 100.7, 108.1, 108.7, 109.1, 109.2, 109.2, 109.4]


@EACH
def test_workers_of_each_kind_multiply_on_every_python_that_can(python: Python) -> None:
    interpreter = chosen(python.path)
    kinds = [how for how in matmul.HOW if matmul.why_not(interpreter, how) is None]
    assert (matmul.SHARE in kinds) is python.can_borrow
    assert (matmul.INTERPRETERS in kinds) is (python.version >= (3, 12))
    for how in kinds:
        # A wrong product would be a failure. More workers than rows have nothing to do.
        for workers in (1, 3):
            assert matmul.measure(interpreter, 7, workers, how)["wall_s"] > 0


def test_a_wrong_product_is_found_out(tmp_path: Path) -> None:
    text = (FOLDER / "matmul.py").read_text()
    wrong = tmp_path / "wrong.py"
    wrong.write_text(text.replace("product[number] = [", "product[number] = [1] + ["))
    words = [sys.executable, wrong, "20", "2", "threads"]
    outcome = subprocess.run(words, capture_output=True, text=True)
    assert (outcome.returncode, outcome.stderr) == (1, "the product is wrong\n")


def test_what_an_interpreter_cannot_have_is_told_once_each() -> None:
    planned = cells(matmul.EXPERIMENT, OLD, quick=False)
    found: list[Result] = []
    for cell in planned:
        if cell.variant in (matmul.HOW[matmul.SHARE], matmul.HOW[matmul.INTERPRETERS],
                            matmul.FREE_THREADED):  # fmt: skip
            with pytest.raises(Missing) as missing:
                cell.measure()
            found.append(
                Result("matmul", cell.python, cell.variant, 1, {}, "missing", {},
                       str(missing.value), 0.0, 0.0, "")
            )  # fmt: skip
    assert notes(results(*found)) == [
        "not measured: 2.7 ungil.share: it has no ungil, which needs CPython 3.11",
        "not measured: 2.7 sub-interpreters: its interpreters have no GIL of their own, as those"
        " of CPython 3.12 have",
        "not measured: free-threaded threads: there is no free-threaded Python here: uv python"
        " install 3.13t, or pyenv install 3.13t",
    ]
    kinds = {it.variant.partition(" ")[2] for it in planned if it.variant[0].isdigit()}
    assert kinds == {"threads", "apart"}


def test_weights_are_of_one_thread_in_the_same_round_and_rows_beyond_the_cores_are_marked() -> None:
    def of(round_: int, variant: str, wall_s: float) -> Result:
        return replace(result("matmul", "3.13", variant, wall_s=wall_s), round=round_)

    found = [
        *(of(round_, "1 threads", wall_s) for round_, wall_s in ((1, 1.0), (2, 4.0), (3, 2.0))),
        *(of(round_, "2 ungil.share", wall_s) for round_, wall_s in ((1, 0.5), (3, 1.2))),
        of(1, "2 threads", 1.1),
        of(1, "4 threads", 1.2),
    ]
    assert HEADER.machine["cores"] == 2
    assert shown(matmul.EXPERIMENT, 1, *found) == [
        ("1", "100.0", "-", "-", "-"),
        ("2", "110.0", "55.0", "-", "-"),
        ("4 (on 2 cores)", "120.0", "-", "-", "-"),
    ]


# ungil in interpreters that it is not installed in.


def test_one_for_another_c_library_cannot_have_ours() -> None:
    with (
        pytest.raises(Missing, match="it has no ungil, and ours is for another C library"),
        borrowed.variables(replace(chosen(), musl=not chosen().musl)),
    ):
        pass


@pytest.mark.parametrize("python", [it for it in pythons() if it.can_borrow], ids=str)
def test_an_interpreter_without_ungil_borrows_ours_and_nothing_else(python: Python) -> None:
    program = (
        "import json, sys, ungil.share, ungil.fanout\n"
        "try: import click\n"
        "except ImportError: click = None\n"
        "print(json.dumps([ungil.__file__, click is not None]))"
    )
    bare = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    with borrowed.variables(chosen(python.path)) as variables:
        [folder] = variables.values()
        assert [it.name for it in Path(folder).iterdir()] == ["ungil"]
        words = [python.path, "-I", "-c", "import importlib.util as u; print(u.find_spec('click'))"]
        has_click = subprocess.check_output(words, text=True) != "None\n"
        said = json.loads(
            subprocess.check_output([python.path, "-c", program], env=bare | variables)
        )
    assert said == [f"{folder}/ungil/__init__.py", has_click]
    assert not Path(folder).exists()
