"""What the report looks like, drawn from hand-made JSON: no tracing here."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from rich.console import Console

from ungil.report import parse, print_report, render
from ungil.report.model import FreeThreaded
from ungil.report.units import digits, duration, plain, plural, rate, share, tally


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
    return max(len(line.rstrip()) for line in text.splitlines())


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


@pytest.mark.parametrize("width", [40, 60, 80, 100, 120, 160, 200])
def test_nothing_is_wider_than_the_terminal(width: int) -> None:
    for report in (convoy(), with_threads(1), with_threads(500)):
        assert widest(drawn(report, width)) <= width


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
        "121ms cpu-0 resize (pillow/image.py:42), 2 times, 300ms waited by up to 2 threads" in text
    )
    assert "20.5ms io-1  no stack" in text


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
    assert "2: 1 thread, held 20%, contended 0%, waited 0" in drawn(report)


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
