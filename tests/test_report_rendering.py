"""What the report looks like, drawn from hand-made JSON: no tracing here."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from ungil.formatting import digits, duration, plural, rate, share, tally
from ungil.formatting import printable as plain
from ungil.report import parse, print_place, print_report, render
from ungil.report.model import FreeThreaded
from ungil.report.names import Names, shortened


def spread(count: int, p50_us: float, p99_us: float, max_us: float) -> dict[str, float]:
    return {
        "count": count,
        "mean_us": p50_us * 1.01,
        "p50_us": p50_us,
        "p99_us": p99_us,
        "max_us": max_us,
    }


def thread(tid: int, name: str, held_s: float, waited_s: float, **changes: Any) -> dict[str, Any]:
    return {
        "tid": tid,
        "name": name,
        "held_s": held_s,
        "waited_s": waited_s,
        "cpu_s": held_s * 0.98,
        "holds": spread(830, 61.2, 180.0, 412.0),
        "waits": spread(815, 5021.0, 5340.0, 10211.0),
        "gaps": {"mean_ms": 6.04, "max_ms": 18.2},
        "voluntary": 829,
        "forced": 1,
        "main": tid == 4242,
        "context_switches": {"voluntary": 2460, "involuntary": 3},
        "drop_requests": 812,
        "lost_events": 0,
    } | changes


def convoy() -> dict[str, Any]:
    """A web server whose background thread computes."""
    cpu = thread(
        4244,
        "cpu-0",
        4.61,
        0.05,
        holds=spread(812, 5020.0, 5110.0, 121_000.0),
        waits=spread(812, 48.0, 160.0, 1903.0),
        voluntary=4,
        forced=808,
        context_switches={"voluntary": 816, "involuntary": 97},
    )
    report: dict[str, Any] = {
        "schema": 1,
        "python": "3.13.0",
        "duration_s": 5.02,
        "lost_events": 0,
        "processes": [
            {
                "pid": 4242,
                "parent_pid": 4200,
                "argv": ["/usr/bin/python3", "server.py", "--port", "8000"],
                "python": "3.13.0",
                "not_recorded": None,
                "policy": "stock",
                "switch_interval_ms": 5.0,
                "unrecorded_threads": 0,
                "gils": [
                    {
                        "held_s": 4.93,
                        "contended_s": 4.55,
                        "handoffs": 1651,
                        "forced": 809,
                        "wanting_mean": 2.91,
                        "threads": [
                            thread(4242, "MainThread", 0.02, 0.01),
                            thread(4243, "io-1", 0.05, 4.1),
                            cpu,
                            thread(4245, "io-2", 0.04, 0.4),
                        ],
                        "others": None,
                        "blame": [
                            {"victim": 4243, "culprit": 4244, "waited_s": 4.05},
                            {"victim": 4245, "culprit": 4244, "waited_s": 0.39},
                            {"victim": 4243, "culprit": 4245, "waited_s": 0.03},
                            {"victim": 4243, "culprit": None, "waited_s": 0.02},
                            {"victim": 4244, "culprit": 4243, "waited_s": 0.04},
                        ],
                        "long_holds": [
                            {
                                "tid": 4244,
                                "name": "cpu-0",
                                "start_s": 1.5,
                                "duration_ms": 121.0,
                                "waited_s": 0.24,
                                "waiters_max": 2,
                                "stack": [
                                    "resize (/srv/app/venv/lib/pillow/image.py:42)",
                                    "work (server.py:17)",
                                ],
                            },
                            {
                                "tid": 4244,
                                "start_s": 2.5,
                                "duration_ms": 61.0,
                                "waited_s": 0.06,
                                "waiters_max": 1,
                                "stack": ["resize (/srv/app/venv/lib/pillow/image.py:42)"],
                            },
                            {"tid": 4243, "start_s": 3.0, "duration_ms": 20.5, "stack": []},
                        ],
                    }
                ],
            },
            {
                "pid": 4300,
                "argv": ["/usr/bin/python3", "-c", "from multiprocessing import spawn"],
                "python": "3.13.0",
                "gils": [
                    {
                        "held_s": 1.0,
                        "contended_s": 0.0,
                        "handoffs": 3,
                        "forced": 0,
                        "wanting_mean": 0.2,
                        "threads": [thread(4300, "MainThread", 1.0, 0.0)],
                        "blame": [],
                        "long_holds": [],
                    }
                ],
            },
            {
                "pid": 4301,
                "argv": ["pypy3", "worker.py"],
                "not_recorded": "PyPy's GIL is not made of calls to libc",
                "gils": [],
            },
        ],
        "findings": [
            {
                "kind": "convoy",
                "text": "io-1 waited 5.02 ms after 812 of its 830 blocking calls, behind cpu-0: "
                "4.1 of 5.0 s",
                "advice": "Move cpu-0 to a process, or try sys.setswitchinterval(0.0005).",
            },
            {"kind": "native-hold", "text": "resize (image.py:42) kept the GIL for 121 ms"},
        ],
        "notes": [],
    }
    return report


def with_threads(count: int) -> dict[str, Any]:
    report = convoy()
    gil = report["processes"][0]["gils"][0]
    gil["threads"] = [
        thread(5000 + index, f"worker-{index}", 0.001, index / 100) for index in range(count)
    ]
    gil["blame"] = [
        {"victim": 5000 + index, "culprit": 5000, "waited_s": index / 100}
        for index in range(1, count)
    ]
    gil["long_holds"] = []
    return report


def drawn(report: dict[str, Any], width: int = 120, height: int | None = None) -> str:
    """The report as lines of text, on a terminal if it has a height."""
    file = io.StringIO()
    console = Console(
        file=file,
        width=width,
        height=height,
        force_terminal=height is not None,
        color_system=None,
        highlight=False,
    )
    render(parse(json.dumps(report)), console)
    return file.getvalue()


def widest(text: str) -> int:
    return max(cell_len(line.rstrip()) for line in text.splitlines())


def heading(text: str) -> str:
    """The line with the heads of the columns of the table of threads."""
    return next(line for line in text.splitlines() if line.startswith("thread "))


def test_the_findings_come_before_all_numbers() -> None:
    lines = drawn(convoy()).splitlines()
    assert lines[0].startswith("python3 server.py --port 8000  pid 4242, Python 3.13.0, 5.02s")
    assert lines[2].split()[:3] == ["convoy", "io-1", "waited"]
    assert lines[3].strip() == "Move cpu-0 to a process, or try sys.setswitchinterval(0.0005)."


def test_the_line_for_the_gil_says_what_all_threads_made_of_it() -> None:
    assert (
        "GIL  held 98%, contended 91% of the time; 329 handoffs/s, 161 forced/s; "
        "2.91 threads wanted to run on average, one could; switch interval 5ms"
    ) in drawn(convoy(), width=200)


def test_threads_that_took_or_lost_most_come_first() -> None:
    lines = drawn(convoy()).splitlines()
    start = next(index for index, line in enumerate(lines) if line.startswith("thread "))
    names = [line.split()[0] for line in lines[start + 1 : start + 5]]
    assert names == ["cpu-0", "io-1", "io-2", "MainThread"]
    assert " ".join(lines[start + 2].split()[1:6]) == "50.0ms 1% 4.10s 82% 49.0ms"


def strange() -> dict[str, Any]:
    """Threads whose names are long, alike, wide, or meant for the terminal."""
    report = with_threads(8)
    names = [
        "ThreadPoolExecutor-0_0",
        "ThreadPoolExecutor-0_1",
        "ThreadPoolExecutor-1_0",
        "worker-of-tenant-alpha-in-the-queue",
        "worker-of-tenant-gamma-in-the-queue",
        "日本語の名前を持つスレッド・一番",
        "👩‍🚀 astronaut 🚀🚀🚀🚀🚀🚀🚀🚀🚀",
        "\x1b]0;title\x07\x9b2J\u202e" * 3,
    ]
    for process in report["processes"][:1]:
        gil = process["gils"][0]
        for one, name in zip(gil["threads"], names, strict=True):
            one["name"] = name
        gil["long_holds"] = [
            {
                "tid": one["tid"],
                "name": one["name"],
                "duration_ms": 50.0,
                "waited_s": 0.1,
                "waiters_max": 1,
                "stack": [f"{'名' * 50} (/srv/{'長' * 40}/{'x' * 90}.py:42)"],
            }
            for one in gil["threads"]
        ]
    report["findings"][0]["text"] = f"thread {names[-1]} waited for {'很' * 90}"
    return report


@pytest.mark.parametrize("width", [40, 60, 80, 100, 120, 160, 200])
def test_nothing_is_wider_than_the_terminal(width: int) -> None:
    for report in (convoy(), with_threads(1), with_threads(500), strange()):
        for height in (None, 24, 80):
            assert widest(drawn(report, width, height)) <= width


@pytest.mark.parametrize("width", [60, 80, 100, 200])
def test_threads_whose_names_are_cut_are_told_apart(width: int) -> None:
    lines = drawn(strange(), width).splitlines()
    start = next(index for index, line in enumerate(lines) if line.startswith("thread "))
    rows = lines[start + 1 : start + 9]
    # No column before the numbers has two spaces in it.
    names = {row.split("  ")[0] for row in rows}
    assert len(names) == 8, names
    start = next(index for index, line in enumerate(lines) if line.startswith("for whom"))
    assert len({line[:16] for line in lines[start + 1 : start + 8]}) == 7
    heads = lines[start][16:].split()
    assert len(set(heads)) == len(heads)


def test_columns_go_in_a_defined_order_as_the_terminal_gets_narrower() -> None:
    heads = {width: " ".join(heading(drawn(convoy(), width)).split()) for width in (40, 80, 120)}
    assert heads[40] == "thread waited max"
    assert heads[80] == "thread held waited p50 p99 max max max forced"
    assert heads[120] == "thread held waited cpu p50 p99 max mean max p50 p99 max freely forced"
    assert " ".join(heading(drawn(convoy(), 200)).split()) == (
        "thread held waited cpu count p50 p99 max mean max count p50 p99 max freely forced "
        "vol. invol. tid"
    )


@pytest.mark.parametrize("height", [40, 50, 80])
def test_many_threads_fit_on_the_screen_and_the_rest_is_summed(height: int) -> None:
    text = drawn(with_threads(500), 120, height)
    assert len(text.splitlines()) <= height - 3
    shown = [line for line in text.splitlines() if line.startswith("worker-")]
    rest = next(line for line in text.splitlines() if " more " in line)
    assert int(rest.split()[0]) + sum("<1%" in line for line in shown) == 500


def test_the_summed_row_adds_up_with_threads_that_were_never_listed() -> None:
    report = with_threads(3)
    gil = report["processes"][0]["gils"][0]
    gil["others"] = {"threads": 1000, "held_s": 1.0, "waited_s": 2.0}
    rest = next(line for line in drawn(report).splitlines() if line.startswith("1,000 more"))
    assert rest.split()[2:6] == ["1.00s", "20%", "2.00s", "40%"]
    assert "1,003 threads" in drawn(report)


def test_a_gil_whose_threads_were_all_summed_has_a_table_of_one_row() -> None:
    report = with_threads(0)
    gil = report["processes"][0]["gils"][0]
    gil["others"] = {"threads": 7, "held_s": 1.0, "waited_s": 2.0}
    assert "7 threads" in drawn(report)


def test_the_matrix_names_the_worst_and_sums_the_others() -> None:
    lines = drawn(convoy()).splitlines()
    start = next(index for index, line in enumerate(lines) if line.startswith("for whom"))
    assert lines[start].split()[2:] == ["cpu-0", "io-1", "io-2", "nobody"]
    assert lines[start + 1].split() == ["io-1", "4.05s", "-", "30.0ms", "20.0ms"]
    crowded = drawn(with_threads(500), 80, 24).splitlines()
    start = next(index for index, line in enumerate(crowded) if line.startswith("for whom"))
    assert crowded[start + 1].split() == ["worker-499", "4.99s"]
    assert crowded[start + 3].split() == ["497", "more", "1,238s"]


def test_long_holds_at_one_line_of_code_are_one_line_of_the_report() -> None:
    text = drawn(convoy())
    assert (
        "121ms cpu-0 resize (pillow/image.py:42); the longest of 2; "
        "up to 2 threads at a time waited 300ms"
    ) in text
    assert "20.5ms io-1  no stack" in text


@pytest.mark.parametrize(
    ("known", "said"),
    [
        ({}, ""),
        ({"cpu_ms": None, "not_run_ms": None}, ""),
        ({"cpu_ms": 118.0, "not_run_ms": 3.0}, ""),
        ({"cpu_ms": 8.0, "not_run_ms": 113.0}, " (ran 8.00ms, not run 113ms)"),
        ({"cpu_ms": 0.0, "not_run_ms": 1.0}, " (ran 0, slept 120ms)"),
        ({"cpu_ms": 8.0, "not_run_ms": 50.0}, " (ran 8.00ms, not run 50.0ms, slept 63.0ms)"),
        ({"cpu_ms": 8.0, "not_run_ms": None}, " (ran 8.00ms)"),
    ],
)
def test_a_long_hold_says_what_its_thread_did(known: dict[str, float], said: str) -> None:
    report = convoy()
    report["processes"][0]["gils"][0]["long_holds"][0] |= known
    line = next(line for line in drawn(report, 200).splitlines() if "121ms cpu-0" in line)
    assert line.rstrip().endswith(f"waited 300ms{said}")


def long_hold(**changes: Any) -> dict[str, Any]:
    """A report with one long hold that differs from the usual one by `changes`."""
    report = convoy()
    holds = report["processes"][0]["gils"][0]["long_holds"]
    holds[:] = [holds[1] | changes]
    return report


def test_a_long_hold_in_a_library_names_the_users_own_code_too() -> None:
    report = long_hold(user_frame="work (/srv/app/server.py:17)", samples=5, stack_samples=5)
    assert (
        "61.0ms cpu-0 resize (pillow/image.py:42), called by work (app/server.py:17); 5 samples; "
        "1 thread waited 60.0ms"
    ) in drawn(report, 200)
    own = long_hold(user_frame=long_hold()["processes"][0]["gils"][0]["long_holds"][0]["stack"][0])
    assert "called by" not in drawn(own, 200)


def test_a_long_hold_says_how_many_samples_stand_for_its_line() -> None:
    assert "; 1 sample; 1 thread" in drawn(long_hold(samples=1, stack_samples=1), 200)
    assert "; 3 of 5 samples; 1 thread" in drawn(long_hold(samples=5, stack_samples=3), 200)


def test_a_long_hold_without_a_stack_says_why() -> None:
    report = long_hold(stack=[], stack_missing="the platform forbids \x1b[31m", samples=0)
    assert r"cpu-0 no stack: the platform forbids \x1b[31m; 1 thread waited 60.0ms" in drawn(report)


def test_a_long_hold_for_which_nobody_waited_is_not_shown() -> None:
    report = convoy()
    for hold in report["processes"][0]["gils"][0]["long_holds"]:
        hold["contended"] = False
    assert "Longest holds" not in drawn(report)


def test_other_processes_are_a_line_each_with_the_reason_if_not_recorded() -> None:
    text = drawn(convoy(), width=160)
    assert "1 thread, held 20%, contended 0%, waited 0" in text
    assert "not recorded: PyPy's GIL is not made of calls to libc" in text


def test_the_gils_of_sub_interpreters_are_listed() -> None:
    report = convoy()
    gils = report["processes"][0]["gils"]
    gils.append(report["processes"][1]["gils"][0])
    gils[-1]["gil"] = 5
    text = drawn(report)
    assert "GIL 0 (main interpreter)  held 98%" in text
    assert "  GIL 5: 1 thread, held 20%, contended 0%, waited 0" in text
    # A thread that used both is one thread.
    gils[-1]["threads"] = [gils[0]["threads"][1]]
    assert "4 threads, 1 of 3 processes" in drawn(report)


def test_the_table_is_about_the_gil_that_was_wanted_most() -> None:
    report = convoy()
    gils = report["processes"][0]["gils"]
    gils.append(report["processes"][1]["gils"][0] | {"gil": 2, "wanting_mean": 3.5})
    text = drawn(report)
    assert "GIL 2  held 20%" in text
    assert "  GIL 0 (main interpreter): 4 threads, held 98%, contended 91%, waited 4.56s" in text


@pytest.mark.parametrize("lost", [0, 12345])
def test_lost_events_are_always_the_last_line(lost: int) -> None:
    report = convoy()
    report["lost_events"] = lost
    assert drawn(report).splitlines()[-1].strip() == f"lost events: {lost:,}"
    report["processes"].clear()
    assert drawn(report).splitlines()[-1].strip() == f"lost events: {lost:,}"


def test_notes_and_unrecorded_threads_are_shown() -> None:
    report = convoy()
    report["notes"].append("stacks are missing: operation not permitted")
    report["processes"][0]["unrecorded_threads"] = 3
    text = drawn(report)
    assert "note: stacks are missing: operation not permitted" in text
    assert "note: 3 threads of process 4242 not recorded" in text


def test_a_report_without_any_gil_says_so() -> None:
    report = convoy()
    report["findings"].clear()
    del report["processes"][:2]
    assert "not recorded: PyPy's GIL is not made of calls to libc" in drawn(report)
    report["processes"].clear()
    assert drawn(report).startswith("No Python process was recorded")


def test_a_verdict_of_nothing_recorded_is_said_once() -> None:
    report = convoy()
    reason = "this Python is free-threaded, and its GIL was off"
    report["processes"][0]["not_recorded"] = reason
    report["findings"] = [{"kind": "not-recorded", "text": reason, "advice": None}]
    text = drawn(report)
    assert text.count("not recorded") == 1 + text.count("not recorded: PyPy")
    assert f"not recorded {reason}" in text
    # What was held while it imported extension modules says nothing.
    assert "GIL  held" not in text


@pytest.mark.parametrize(
    ("state", "line"),
    [
        ({"gil": "off", "gil_on_s": None}, None),
        ({"gil": None, "gil_on_s": None}, None),
        ({"gil": "on", "gil_on_s": 0.0}, "free-threaded, with its GIL on from the start"),
        ({"gil": "switched on", "gil_on_s": 1.5}, "an import switched its GIL on after 1.25s"),
    ],
)
def test_a_free_threaded_python_says_whether_it_has_a_gil(
    state: FreeThreaded, line: str | None
) -> None:
    report = convoy()
    report["processes"][0]["free_threaded"] = state
    report["processes"][0]["started_s"] = 0.25
    assert ("free-threaded" in drawn(report)) == (line is not None)
    assert line is None or line in drawn(report)


def test_keys_that_schema_1_does_not_promise_may_be_missing() -> None:
    report = convoy()
    del report["notes"]
    process = report["processes"][0]
    optional = ("parent_pid", "python", "not_recorded", "policy", "switch_interval_ms")
    for key in (*optional, "unrecorded_threads"):
        del process[key]
    del process["gils"][0]["others"]
    for one in process["gils"][0]["threads"]:
        for key in ("main", "context_switches", "drop_requests", "lost_events"):
            del one[key]
    assert "lost events: 0" in drawn(report, 200)


def test_parties_that_are_no_listed_thread_have_a_name_too() -> None:
    report = convoy()
    report["processes"][0]["gils"][0]["blame"] = [
        {"victim": 4243, "culprit": 99, "culprit_name": "short-lived", "waited_s": 3.0},
        {"victim": "others", "culprit": "unknown", "culprit_name": None, "waited_s": 2.0},
        {"victim": 98, "culprit": None, "waited_s": 1.0},
    ]
    text = drawn(report)
    for name in ("short-lived", "others ", "unknown", "thread 98 ", "nobody"):
        assert name in text


def test_a_process_that_still_ran_has_gaps_in_its_row() -> None:
    report = convoy()
    for one in report["processes"][0]["gils"][0]["threads"]:
        one["cpu_s"] = one["context_switches"] = None
    assert "lost events: 0" in drawn(report, 200)


def test_shares_are_of_the_time_in_which_the_process_was_there() -> None:
    report = convoy()
    report["processes"][1]["duration_s"] = 1.25
    assert "1 thread, held 80%, contended 0%, waited 0" in drawn(report)


def test_processes_that_are_not_listed_count() -> None:
    report = convoy()
    report["other_processes"] = {"processes": 40, "held_s": 1.0, "waited_s": 2.0}
    text = drawn(report)
    assert "1 of 43 processes" in text
    assert "and 40 more, waited 2.00s" in text


def test_threads_that_share_a_name_are_told_apart() -> None:
    report = convoy()
    for one in report["processes"][0]["gils"][0]["threads"]:
        one["name"] = "pool" if one["tid"] > 4243 else ""
    text = drawn(report)
    assert "pool 4244" in text
    assert "pool 4245" in text
    assert "thread 4243" in text


def test_a_traced_program_cannot_write_to_the_terminal_through_names() -> None:
    report = convoy()
    report["processes"][0]["argv"] = ["\x1b]0;title\x07", "[red]"]
    report["processes"][0]["gils"][0]["threads"][1]["name"] = "\x1b[2J\n[bold]x[/bold]"
    report["findings"][0]["text"] = "\x1b[31mred\udcff"
    text = drawn(report)
    assert "\x1b" not in text
    assert "[red]" in text
    assert r"\x1b[31mred\udcff" in text


def test_colour_says_what_deserves_a_look() -> None:
    file = io.StringIO()
    console = Console(file=file, width=120, force_terminal=True, color_system="standard")
    render(parse(json.dumps(convoy())), console)
    io_1 = next(line for line in file.getvalue().splitlines() if line.startswith("io-1"))
    assert "\x1b[1;31m 4.10s  82%" in io_1


def test_a_file_that_knows_no_greek_gets_latin_letters() -> None:
    buffer = io.BytesIO()
    file = io.TextIOWrapper(buffer, encoding="ascii")
    print_report(json.dumps(convoy()), file)
    assert b"48.0us" in buffer.getvalue()


@pytest.mark.parametrize(
    ("width", "lines"),
    [
        (
            200,
            [
                "trace: 'a b.pftrace' (open it at https://ui.perfetto.dev or with: "
                "ungil report 'a b.pftrace')"
            ],
        ),
        (
            80,
            [
                "trace: 'a b.pftrace'",
                "open it at https://ui.perfetto.dev or with: ungil report 'a b.pftrace'",
            ],
        ),
        (
            60,
            [
                "trace: 'a b.pftrace'",
                "open it at https://ui.perfetto.dev",
                "or with: ungil report 'a b.pftrace'",
            ],
        ),
    ],
)
def test_where_the_trace_is_fits_the_terminal(
    width: int, lines: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    file = io.StringIO()
    print_place("a b.pftrace", file)
    assert file.getvalue().splitlines() == lines


def test_a_file_name_cannot_write_to_the_terminal() -> None:
    file = io.StringIO()
    print_place("\x1b[2J", file)
    assert "\x1b" not in file.getvalue()


# Names.


@pytest.mark.parametrize(
    ("name", "cells", "text"),
    [
        ("io", 9, "io"),
        ("ThreadPoolExecutor-0_3", 14, "ThreadPo…r-0_3"),
        ("ThreadPoolExecutor-0_3", 16, "ThreadPoo…or-0_3"),
        ("ThreadPoolExecutor-0_3", 22, "ThreadPoolExecutor-0_3"),
        ("日本語の名前です", 9, "日本語…す"),
        ("x" * 9, 1, "…"),
    ],
)
def test_a_name_is_cut_in_the_middle(name: str, cells: int, text: str) -> None:
    assert shortened(name, cells) == text


def names_of(*names: str) -> tuple[Names, list[str]]:
    gil = convoy()["processes"][0]["gils"][0]
    gil["threads"] = [thread(1_000_000 + index, name, 0, 0) for index, name in enumerate(names)]
    known = Names(gil)
    return known, [known.of_thread(one) for one in gil["threads"]]


def test_the_end_gets_the_cells_that_tell_names_apart() -> None:
    known, called = names_of("pool-of-a-long-name-0011", "pool-of-a-long-name-0021")
    assert list(known.fitted(called, 9).values()) == ["pool-…011", "pool-…021"]
    known, called = names_of("alpha-worker-thread", "gamma-worker-thread")
    assert list(known.fitted(called, 9).values()) == ["alpha…ead", "gamma…ead"]


def test_names_get_wider_where_that_tells_them_apart() -> None:
    known, called = names_of("worker-of-alpha-in-the-queue", "worker-of-gamma-in-the-queue")
    assert list(known.fitted(called, 10, 20).values()) == ["worker-of-a…", "worker-of-g…"]


def test_names_that_no_cut_tells_apart_end_with_their_tid() -> None:
    known, called = names_of("worker-of-alpha-in-the-queue", "worker-of-gamma-in-the-queue", "io")
    assert list(known.fitted(called, 10).values()) == ["wo…1000000", "wo…1000001", "io"]


def test_a_thread_that_has_the_name_of_another_with_its_tid_is_told_apart() -> None:
    _, called = names_of("pool", "pool", "pool 1000000")
    assert called == ["pool 1000000", "pool 1000001", "pool 1000000 1000002"]


@given(
    st.lists(st.text("ab-0日é👍\u0301\x1b", max_size=30), min_size=1, max_size=8),
    st.integers(9, 40),
)
def test_any_names_fit_and_are_told_apart(texts: list[str], cells: int) -> None:
    known, called = names_of(*texts)
    cut = known.fitted(called, cells)
    assert all(cell_len(text) <= cells for text in cut.values())
    assert len(set(cut.values())) == len(texts)
    assert all(cut[name] == name for name in called if cell_len(name) <= cells)


# Units.


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0"),
        (float("nan"), ""),
        (4.2e-7, "420ns"),
        (4.2e-6, "4.20µs"),
        (9.996e-6, "10.0µs"),
        (9.996e-4, "1.00ms"),
        (5.1e-3, "5.10ms"),
        (0.99951, "1.00s"),
        (83.04, "83.0s"),
        (12345.6, "12,346s"),
    ],
)
def test_a_duration_has_three_digits_and_the_unit_that_fits(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_other_numbers_are_short_too() -> None:
    assert [share(part, 10) for part in (0, 0.01, 3.7, 10)] == ["0%", "<1%", "37%", "100%"]
    assert share(1, 0) == "0%"
    assert [tally(n) for n in (0, 9999, 12345, 999_499, 999_500, 4_560_000_000)] == [
        "0", "9,999", "12.3k", "999k", "1.00M", "4.56G",
    ]  # fmt: skip
    assert (rate(10, 4), rate(10, 0)) == ("2.50", "0")
    assert (plural(1, "thread"), plural(2000, "thread")) == ("1 thread", "2,000 threads")
    assert plural(2, "process") == "2 processes"
    assert (digits(9.994), digits(9.995), digits(99.95)) == ("9.99", "10.0", "100")
    assert plain("a\tb\x00é") == r"a\tb\x00é"
