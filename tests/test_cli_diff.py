"""`ungil diff`: two sides of real traces."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from conftest import UNGIL
from suite import PATIENCE_S, PROGRAMS

from ungil.comparison import read_run

Run = Callable[..., subprocess.CompletedProcess[str]]

SECONDS = "1.6"
RUNS = 3


def recorded(folder: Path, name: str, program: str, *words: str) -> str:
    """A trace of a program of the tests."""
    trace = folder / f"{name}.pftrace"
    command = ["trace", "--quiet", "--force", "-o", str(trace), str(PROGRAMS / program), *words]
    done = subprocess.run(
        [*UNGIL, *command],
        check=False,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, done.stderr
    return str(trace)


@pytest.fixture(scope="module")
def convoys(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Runs of a program with a convoy."""
    folder = tmp_path_factory.mktemp("convoys")
    return [recorded(folder, f"{n}", "compared.py", SECONDS, "convoy") for n in range(RUNS)]


@pytest.fixture(scope="module")
def calms(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Runs of the same program without what makes the convoy."""
    folder = tmp_path_factory.mktemp("calms")
    return [recorded(folder, f"{n}", "compared.py", SECONDS, "calm") for n in range(RUNS)]


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A trace of a program with one thread, which can wait for nobody."""
    return recorded(tmp_path_factory.mktemp("empty"), "alone", "alone.py")


def told(ungil: Run, *words: str) -> dict[str, Any]:
    """The JSON of a comparison."""
    outcome = ungil("diff", "--json", *words)
    assert (outcome.returncode, outcome.stderr) == (0, "")
    return json.loads(outcome.stdout)


def row(compared: dict[str, Any], name: str) -> dict[str, Any]:
    """The group of threads of that name."""
    (found,) = [group for group in compared["groups"] if group["name"] == name]
    return found


def test_a_convoy_that_is_gone_is_better_by_more_than_the_noise(
    ungil: Run, convoys: list[str], calms: list[str]
) -> None:
    compared = told(ungil, *convoys, "--", *calms)
    assert (compared["schema"], compared["verdict"], compared["worse"]) == (1, "better", False)
    assert re.fullmatch(
        r"threads waited [\d.]+ s in 10 s before, [\d.]+ m?s after: "
        r"([\d,.]+ times less|\d+ % less|none is left) \(more than the noise\)"
        r"(; they made [\d.]+ times more blocking calls, and waited .*)?",
        compared["answer"],
    )
    assert row(compared, "server-1")["metrics"]["waited"]["verdict"] == "better"
    convoy = next(finding for finding in compared["findings"] if finding["kind"] == "convoy")
    assert (convoy["status"], convoy["cost"]["verdict"]) == ("gone", "better")
    assert (convoy["runs_before"], convoy["thread"]) == (RUNS, "server-*")


def test_a_convoy_that_is_new_is_worse_and_fails_if_that_is_asked_for(
    ungil: Run, convoys: list[str], calms: list[str]
) -> None:
    outcome = ungil("diff", "--fail-if-worse", *calms, "--", *convoys)
    assert outcome.returncode == 1
    first, *rest = outcome.stdout.splitlines()
    # Nobody needs to have waited before.
    assert first.endswith(("more (more than the noise)", "new (more than the noise)"))
    assert any(line.startswith("new") and "convoy" in line for line in rest)
    assert ungil("diff", *calms, "--", *convoys).returncode == 0
    assert ungil("diff", "--fail-if-worse", *convoys, "--", *calms).returncode == 0


def test_a_run_has_the_causes_that_need_no_simulation(calms: list[str], convoys: list[str]) -> None:
    for trace in (calms[0], convoys[0]):
        advised = read_run(trace, 20.0).measures["report"]["advised"]
        assert {it["kind"] for it in advised["advice"]} <= {"not-the-gil"}
    assert read_run(convoys[0], 20.0).measures["report"]["remedies_left_out"]
    assert "remedies_left_out" not in read_run(calms[0], 20.0).measures["report"]


def test_the_same_runs_in_another_order_differ_in_nothing(ungil: Run, convoys: list[str]) -> None:
    compared = told(ungil, *convoys, "--", *reversed(convoys))
    assert compared["verdict"] == "within noise"
    assert compared["answer"].endswith("no change beyond the noise")
    for group in [compared["total"], *compared["groups"]]:
        verdicts = {judged["verdict"] for judged in group["metrics"].values()}
        assert verdicts <= {"within noise", "unknown"}
    assert [it for it in compared["warnings"] if "is on both sides" not in it] == []


def test_sums_are_those_of_the_report(ungil: Run, convoys: list[str], calms: list[str]) -> None:
    compared = told(ungil, convoys[0], calms[0])
    report = json.loads(ungil("report", "--json", convoys[0]).stdout)
    (process,) = report["processes"]
    (gil,) = process["gils"]
    run_s = compared["before"][0]["run_s"]
    assert run_s == pytest.approx(report["duration_s"] - process["startup_s"], abs=0.05)
    waited = compared["total"]["metrics"]["waited"]["before"]
    assert waited == [pytest.approx(sum(it["waited_s"] for it in gil["threads"]) / run_s)]
    held = compared["total"]["metrics"]["held"]["before"]
    threads = gil["threads"]
    expected = sum(it["held_s"] - it["startup_held_s"] for it in threads) / run_s
    assert held == [pytest.approx(expected)]
    contended = compared["total"]["metrics"]["contended"]["before"]
    assert contended == [pytest.approx(gil["contended_s"] / run_s)]
    server = next(it for it in threads if it["name"] == "server-1")
    p50 = row(compared, "server-1")["metrics"]["wait_p50"]["before"]
    assert p50 == [pytest.approx(server["waits"]["p50_us"])]


def test_one_run_a_side_has_the_noise_of_its_parts(
    ungil: Run, convoys: list[str], calms: list[str]
) -> None:
    compared = told(ungil, convoys[0], calms[0])
    assert compared["noise"] == "parts"
    waited = row(compared, "server-1")["metrics"]["waited"]
    assert (waited["noise_of"], waited["verdict"]) == ("parts", "better")
    text = " ".join(ungil("diff", convoys[0], calms[0]).stdout.split())
    assert "parts of each run are from the whole run" in text


def test_a_folder_stands_for_the_traces_in_it(
    ungil: Run, convoys: list[str], calms: list[str]
) -> None:
    folders = [str(Path(traces[0]).parent) for traces in (convoys, calms)]
    compared = told(ungil, *folders)
    assert [run["file"] for run in compared["before"]] == sorted(convoys)
    assert compared == told(ungil, *sorted(convoys), "--", *sorted(calms))


def test_threads_of_one_side_alone_are_gone_or_new(
    ungil: Run, convoys: list[str], tmp_path: Path
) -> None:
    renamed = tmp_path / "renamed.py"
    program = (PROGRAMS / "compared.py").read_text(encoding="utf-8")
    renamed.write_text(program.replace("server-1", "answering"), encoding="utf-8")
    made = ungil("trace", "--quiet", "-o", "new.pftrace", str(renamed), SECONDS, "convoy")
    assert made.returncode == 0
    compared = told(ungil, convoys[0], "new.pftrace")
    assert row(compared, "server-1")["status"] == "gone"
    assert row(compared, "answering")["status"] == "new"
    assert row(compared, "computer")["status"] == "both"
    assert any("the commands differ" in warning for warning in compared["warnings"])


def test_another_switch_interval_is_told_of(ungil: Run, convoys: list[str], tmp_path: Path) -> None:
    hasty = tmp_path / "hasty.py"
    program = (PROGRAMS / "compared.py").read_text(encoding="utf-8")
    assert "import sys\n" in program
    hasty.write_text(
        program.replace("import sys\n", "import sys; sys.setswitchinterval(0.001)\n"),
        encoding="utf-8",
    )
    made = ungil("trace", "--quiet", "-o", "new.pftrace", str(hasty), SECONDS, "convoy")
    assert made.returncode == 0
    warnings = told(ungil, convoys[0], "new.pftrace")["warnings"]
    assert any(warning.startswith("the switch intervals differ: ") for warning in warnings)


def test_a_trace_in_which_nobody_could_wait_is_compared_too(
    ungil: Run, convoys: list[str], empty: str
) -> None:
    compared = told(ungil, empty, empty)
    assert compared["total"]["metrics"]["waited"]["before"] == [0.0]
    assert told(ungil, convoys[0], empty)["findings"][0]["status"] == "gone"
    assert ungil("diff", empty, empty).returncode == 0


def test_of_one_short_run_a_side_the_noise_is_not_known(ungil: Run, empty: str) -> None:
    said = " ".join(ungil("diff", empty, empty).stdout.split())
    assert "noise: unknown, because each side has one run" in said


def test_a_trace_that_is_cut_off_is_read_as_far_as_it_goes_with_a_warning(
    ungil: Run, convoys: list[str], tmp_path: Path
) -> None:
    whole = Path(convoys[0]).read_bytes()
    (tmp_path / "cut.pftrace").write_bytes(whole[: len(whole) * 2 // 3])
    compared = told(ungil, "cut.pftrace", convoys[1])
    assert any("the trace ends after" in warning for warning in compared["warnings"])


def test_a_long_name_is_cut_and_the_number_of_its_threads_is_not(
    ungil: Run, tmp_path: Path, environment: dict[str, str]
) -> None:
    program = tmp_path / "pool.py"
    program.write_text(
        "import concurrent.futures as futures, threading, time\n"
        "with futures.ThreadPoolExecutor(6) as pool:\n"
        "    together = threading.Barrier(6)\n"
        "    # Long enough for a recorder to read the names.\n"
        "    list(pool.map(lambda _: (together.wait(), time.sleep(0.5)), range(6)))\n"
    )
    trace = recorded(tmp_path, "pool", str(program))
    outcome = ungil("diff", trace, trace, env=environment | {"COLUMNS": "80"})
    assert "(6 threads)" in outcome.stdout
    assert "ThreadPoolExecutor" not in outcome.stdout
    assert max(map(len, outcome.stdout.splitlines())) <= 80


def test_hostile_names_change_nothing_on_the_screen(ungil: Run, tmp_path: Path) -> None:
    trace = recorded(tmp_path, "hostile", "hostile_names.py")
    outcome = ungil("diff", trace, trace)
    assert outcome.returncode == 0
    assert outcome.stdout.replace("\n", "").isprintable()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "Missing argument"),
        (["a.pftrace"], "ungil compares two sides"),
        (["a.pftrace", "b.pftrace", "c.pftrace"], "put -- where the second side begins"),
        (["--", "a.pftrace"], "there is no trace before --"),
        (["a.pftrace", "--"], "there is no trace after --"),
        (["a", "--", "b", "--", "c"], "-- may appear once"),
        (["missing.pftrace", "missing.pftrace"], "no such file"),
        ([".", "."], "there is no trace (*.pftrace) in the folder '.'"),
        ([sys.executable, sys.executable], "is not a trace of ungil"),
    ],
)
def test_a_mistake_is_one_sentence(ungil: Run, words: Sequence[str], said: str) -> None:
    outcome = ungil("diff", *words)
    assert outcome.returncode == 2
    assert outcome.stdout == ""
    assert said in outcome.stderr
    assert len(outcome.stderr.splitlines()) == 1


def test_the_page_is_written_whole_or_not_at_all(
    ungil: Run, convoys: list[str], calms: list[str], tmp_path: Path
) -> None:
    outcome = ungil("diff", convoys[0], calms[0], "--html", "page.html")
    assert outcome.returncode == 0
    assert (tmp_path / "page.html").read_text(encoding="utf-8").endswith("</html>\n")
    outcome = ungil("diff", convoys[0], "missing.pftrace", "--html", "other.html")
    assert outcome.returncode == 2
    assert not (tmp_path / "other.html").exists()
    shutil.rmtree(tmp_path / "none", ignore_errors=True)
    outcome = ungil("diff", convoys[0], calms[0], "--html", "none/page.html")
    assert (outcome.returncode, outcome.stdout) == (2, "")


def test_a_full_disk_is_told_with_the_name_of_the_page(
    ungil: Run, convoys: list[str], calms: list[str]
) -> None:
    outcome = ungil("diff", convoys[0], calms[0], "--html", "/dev/full")
    said = "ungil: cannot write '/dev/full': no space left on device\n"
    assert (outcome.returncode, outcome.stderr) == (1, said)
