"""What the texts published is in the lab, whole and as it was."""

from __future__ import annotations

from pathlib import Path

import pytest
from lab import results

from ungil.lab import published
from ungil.lab.experiment import Experiment
from ungil.lab.experiments import countdown, fairness, fanout, futex, matmul, response, tick

# The same facts, written down a second time.
TABLES = Path(__file__).with_name("published.md")
RTTS_S = {"50ms": 0.05, "100ms": 0.1, "300ms": 0.3, "1s": 1.0}


def table(title: str) -> list[list[str]]:
    """The rows of a table under the heading that begins so, without those of its head."""
    _, _, after = TABLES.read_text(encoding="utf-8").partition(f"# {title}")
    lines = after.split("\n#")[0].splitlines()
    rows = [line.strip("|").split("|") for line in lines if line.startswith("|")]
    return [[cell.strip() for cell in row] for row in rows[2:]]


def test_peters_table_is_whole() -> None:
    rows = [
        (int(threads), int(tid), float(mean), float(longest), int(at), int(turns))
        for threads, tid, mean, longest, at, turns in table("1.")
    ]
    assert len(rows) == 28
    assert [tuple(row) for row in published.PETERS] == rows


def test_beazleys_figures_are_as_they_were() -> None:
    said = {row[0]: row[1] for row in table("2.")}
    in_sequence, threads, one_core = (f"{it} s" for it in published.COUNTDOWN.values())
    assert said["count(100,000,000) twice in sequence"] == in_sequence
    assert said["in two threads, two cores"] == threads
    assert said["in two threads, one core switched off"] == one_core
    assert said["`-1 in xrange(100000000)`, one tick"] == f"{published.TICK_S} s"
    unix, mac = published.CALLS
    assert said["system calls in sequence"] == f"{unix.sequence} (Unix), {mac.sequence} (Mac)"
    for what, of_unix, of_mac in (
        ("two threads", unix.threads, mac.threads),
        ("two threads on two cores", unix.two_cores, mac.two_cores),
    ):
        assert said[what] == f"{of_unix:,} (Unix), {of_mac / 1e6:.1f} million (Mac)"


def test_beazleys_figures_are_those_beside_which_the_countdown_is_shown() -> None:
    said = {row[0]: row[1] for row in table("2.")}

    def seconds(what: str) -> float:
        return float(said[what].removesuffix(" s"))

    def calls(what: str) -> tuple[float, float]:
        """On Unix and on a Mac."""
        unix, _, mac = said[what].replace(",", "").replace(" million", "e6").partition(" (Unix) ")
        return float(unix), float(mac.removesuffix(" (Mac)"))

    shown = {figure.what: figure.value for figure in countdown.EXPERIMENT.published}
    of_sequence, of_threads = calls("system calls in sequence"), calls("two threads")
    of_two_cores = calls("two threads on two cores")
    assert shown == {
        "in sequence, n = 100,000,000": seconds("count(100,000,000) twice in sequence"),
        "in two threads, two cores": seconds("in two threads, two cores"),
        "in two threads, one core": seconds("in two threads, one core switched off"),
        "system calls in sequence, Unix": of_sequence[0],
        "system calls in two threads, Unix": of_threads[0],
        "system calls in two threads on two cores, Unix": of_two_cores[0],
        "system calls in sequence, Mac": of_sequence[1],
        "system calls in two threads, Mac": of_threads[1],
        "system calls in two threads on two cores, Mac": of_two_cores[1],
    }


def test_the_whole_sweep_of_nornir_and_gornir_is_there() -> None:
    nornir = [
        (float(rtt), workers, float(user), float(system), int(cpu), float(wall))
        for rtt, workers, user, system, cpu, wall in table("3.")
    ]
    gornir = [
        (RTTS_S[rtt], processors, float(user), float(system), int(cpu), float(wall))
        for rtt, processors, user, system, cpu, wall in table("gornir")
    ]
    assert (len(nornir), len(gornir)) == (32, 12)
    assert [tuple(row) for row in published.NORNIR] == nornir
    assert [tuple(row) for row in published.GORNIR] == gornir


def test_ours_have_the_same_numbers_of_workers() -> None:
    assert [f"{it:,}" for it in fanout.WORKERS] == list(
        dict.fromkeys(it.workers for it in published.NORNIR)
    )
    assert list(fanout.RTTS_S) == list(dict.fromkeys(it.rtt_s for it in published.NORNIR))


def test_both_tables_of_futex_calls_are_there() -> None:
    (imports, *calls) = table("4.")
    for column, row in enumerate(published.FUTEX, start=1):
        times = (row.wall_s, row.user_s, row.system_s)
        assert [float(it) for it in imports[column].split(" / ")] == list(times)
        counted = [int(it[column].split(" ")[0].replace(",", "")) for it in calls]
        assert counted == [row.futex, row.read, row.llseek]
    assert f"({published.FUTEX_S} s)" in calls[0][1]


def test_both_tables_of_posh_are_there() -> None:
    weights = [tuple(float(it) for it in row[1:]) for row in table("5.")]
    assert list(published.POSH.values()) == weights
    for how, seconds in published.POSH_S.items():
        assert [round(100 * it / 433.4, 1) for it in seconds][2:] == list(published.POSH[how])[2:]


def test_skvortsovs_echoes_are_there() -> None:
    rows = {
        float(interval): tuple(int(it.replace(",", "")) for it in a_second)
        for interval, *a_second in table("6.")
    }
    assert len(rows) == 7
    assert dict(published.ECHO_A_SECOND) == rows
    shown = {figure.value for figure in response.EXPERIMENT.published}
    assert shown == {1000 / it for it in rows[0.005]}


def test_ctrl_c_never_arrives_where_beazley_says_so() -> None:
    [said] = [row[1] for row in table("2.") if row[0].startswith("Ctrl-C")]
    assert said.startswith("never")
    assert published.DEAF == ("join", "lock")


@pytest.mark.parametrize(
    ("experiment", "shown"),
    [
        (fairness.EXPERIMENT, ("47.98", "2,313 of 103,305", "5,978")),
        (countdown.EXPERIMENT, ("24.6 s", "117", "9,500,000")),
        (tick.EXPERIMENT, ("6,600 ms",)),
        (response.EXPERIMENT, ("3,200", "11,000")),
        (futex.EXPERIMENT, ("1,000,020", "15,192", "sendto 896", "GNU Pth", "4,504")),
        (matmul.EXPERIMENT, ("100.7", "466.5", "14.2")),
    ],
    ids=lambda it: getattr(it, "name", ""),
)
def test_it_is_shown_before_anything_is_measured(
    experiment: Experiment, shown: tuple[str, ...]
) -> None:
    tables = experiment.tables(results())
    text = "\n".join(" ".join((table.title, *row.cells)) for table in tables for row in table.rows)
    for figure in shown:
        assert figure in text


def test_all_of_it_is_in_the_file_of_results() -> None:
    as_json = results().as_json()["published"]
    assert as_json["fairness"][0]["longest_ms"] == 47.98
    assert len(as_json["fanout"]["nornir"]) == 32
    assert as_json["matmul"]["threads"]["one_thread_is_100"][1] == 100.7
