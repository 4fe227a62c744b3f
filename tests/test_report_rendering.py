"""What the report says of what was recorded, drawn from reports made by hand."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from reports import convoy, drawn, heading, with_threads
from rich.console import Console
from rich.text import Text

from ungil.report import parse, print_place, print_report, render
from ungil.report.advice import render_advice
from ungil.report.model import FreeThreaded
from ungil.report.numbered import Code, Numbered, lines_used


def test_the_findings_come_before_all_numbers() -> None:
    lines = drawn(convoy()).splitlines()
    assert lines[0].startswith("python3 server.py --port 8000  pid 4242, Python 3.13.0, 5.02s")
    assert lines[2].split()[:3] == ["convoy", "io-1", "waited"]
    assert lines[3].strip() == "Move cpu-0 to a process, or try sys.setswitchinterval(0.0005)."


def test_the_line_for_the_gil_says_what_all_threads_made_of_it() -> None:
    assert (
        "GIL  held 98%, contended 91% of the time; 329 handoffs/s, 161 forced/s; "
        "2.91 threads wanted to run on average, and one could; switch interval 5ms"
    ) in drawn(convoy(), width=200)


def test_threads_that_took_or_lost_most_come_first() -> None:
    lines = drawn(convoy()).splitlines()
    start = next(index for index, line in enumerate(lines) if line.startswith("thread "))
    names = [line.split()[0] for line in lines[start + 1 : start + 5]]
    assert names == ["cpu-0", "io-1", "io-2", "MainThread"]
    assert " ".join(lines[start + 2].split()[1:6]) == "50.0ms 1% 4.10s 82% 49.0ms"


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


def test_what_is_to_be_copied_is_broken_by_nobody_but_the_terminal() -> None:
    typed = "ungil run --policy interactive -- 'gunicorn' --workers 4 --bind 127.0.0.1:8000 app:app"
    advice: dict[str, Any] = {
        "kind": "policy",
        "cause": None,
        "text": "schedule the GIL, which takes more words than a narrow screen has room for",
        "subject": {"pid": 1, "gil": 0, "threads": [], "thread_group": None, "function": None},
        "action": {"command": None, "shell": typed, "code": None},
        "gain": None,
        "confidence": {"level": "high", "because": "it was seen"},
        "evidence": [],
        "same_as": None,
    }
    with_advice = convoy() | {"advised": {"advice": [advice], "rejected": []}}
    for width in (40, 80):
        lines = drawn(with_advice, width=width).splitlines()
        assert f"   {typed}" in lines
        assert all(len(line) <= width for line in lines if typed not in line)
        file = io.StringIO()
        render_advice(parse(json.dumps(with_advice)), Console(file=file, width=width))
        assert f"   {typed}" in file.getvalue().splitlines()


def test_a_line_that_the_terminal_breaks_counts_as_what_it_makes_of_it() -> None:
    console = Console(file=io.StringIO(), width=10)
    text, code = Text("four words in lines"), Code("of 24 letters, unbroken.")
    assert lines_used(console, Numbered(Text("1."), [text, code], digits=2)) == 4 + 3


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


@pytest.mark.parametrize(
    ("known", "said"),
    [
        (None, "4 threads"),
        ({"allowed": 1, "limit": None}, "4 threads, 1 processor"),
        ({"allowed": 4, "limit": 8.0}, "4 threads, 4 processors"),
        ({"allowed": 4, "limit": 1.5}, "4 threads, 1.5 of 4 processors (CPU limit)"),
    ],
)
def test_the_title_says_how_many_processors_a_program_may_use(known: Any, said: str) -> None:
    report = convoy()
    report["processes"][0]["processors"] = known
    title = " ".join(drawn(report, 200).split("\n\n")[0].split())
    assert f"{said}, 1 of" in title or title.endswith(said), title


def test_long_holds_at_one_line_of_code_are_one_line_of_the_report() -> None:
    text = drawn(convoy())
    assert (
        "121ms cpu-0 resize (pillow/image.py:42); the longest of 2; "
        "up to 2 threads at a time waited 300ms in all"
    ) in text
    assert "20.5ms io-1  no stack" in text


@pytest.mark.parametrize(
    ("known", "said"),
    [
        ({}, ""),
        ({"cpu_ms": None, "not_run_ms": None}, ""),
        ({"cpu_ms": 118.0, "not_run_ms": 3.0}, ""),
        ({"cpu_ms": 8.0, "not_run_ms": 113.0}, "; ran 8.00ms, not run 113ms"),
        ({"cpu_ms": 0.0, "not_run_ms": 1.0}, "; ran 0, slept 120ms"),
        ({"cpu_ms": 8.0, "not_run_ms": 50.0}, "; ran 8.00ms, not run 50.0ms, slept 63.0ms"),
        ({"cpu_ms": 8.0, "not_run_ms": None}, "; ran 8.00ms"),
        (
            {"cpu_ms": 8.0, "not_run_ms": 50.0, "stopped_ms": 60.0},
            "; ran 8.00ms, not run 50.0ms, stopped by ungil 60.0ms",
        ),
    ],
)
def test_a_long_hold_says_what_its_thread_did(known: dict[str, float], said: str) -> None:
    report = convoy()
    report["processes"][0]["gils"][0]["long_holds"][0] |= known
    line = next(line for line in drawn(report, 200).splitlines() if "121ms cpu-0" in line)
    assert f"resize (pillow/image.py:42){said}; the longest of 2; " in line


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


def native(function: str | None, library: str, samples: int, looks: int) -> dict[str, Any]:
    """What a long hold says of native code, in which the same function was called and ran."""
    return {
        "function": function,
        "library": library,
        "innermost": function,
        "innermost_library": library,
        "samples": samples,
        "looks": looks,
        "stack": [],
    }


def test_a_long_hold_names_its_native_function_behind_its_line() -> None:
    known = native("ImagingCore.resize", "/srv/pillow/_imaging.so", 4, 5)
    line = "cpu-0 resize (pillow/image.py:42); native code: ImagingCore.resize (_imaging.so); 1 th"
    assert line in drawn(long_hold(native=known, native_looks=5), 200)
    inside = known | {"innermost": None, "innermost_library": "/lib/libz.so"}
    told = "ImagingCore.resize (_imaging.so), mostly a function in libz.so; "
    assert told in drawn(long_hold(native=inside, native_looks=5), 200)
    # What most looks do not show may be wrong.
    seldom = long_hold(native=native("f", "/a.so", 2, 5), native_looks=5)
    assert "native code:" not in drawn(seldom, 200)
    hostile = native("f\x1b[31m", "/a\x1b.so", 5, 5)
    assert r"native code: f\x1b[31m (a\x1b.so)" in drawn(long_hold(native=hostile), 200)
    made = native(None, "", 5, 5)
    assert "a function in code generated at run time" in drawn(long_hold(native=made), 200)


def test_the_report_says_how_long_threads_stood_still() -> None:
    report = convoy()
    report["processes"][0]["stopped"] = {
        "times": 42,
        "p50_us": 20.0,
        "p99_us": 80.0,
        "max_us": 95.0,
        "total_ms": 1.2,
    }
    told = "to see native code, ungil stopped threads 42 times, 95.0µs at most, 1.20ms in all"
    assert told in drawn(report, 200)


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
    assert "not recorded: PyPy's GIL does not call libc" in text


def test_what_is_found_in_processes_that_are_alike_is_told_once_with_their_pids() -> None:
    report = convoy()
    first = report["findings"][0]
    others = [{**first, "pid": pid, "same_as": 0} for pid in range(11, 18)]
    other = {**first, "kind": "hog", "text": "cpu-0 held", "advice": None, "pid": 11}
    report["findings"] = [first, *others[:4], other, *others[4:]]
    lines = [line.strip() for line in drawn(report).splitlines()]
    assert lines[4:6] == ["the same for pid 11, 12, 13, 14, 15 and 2 more", "hog    cpu-0 held"]
    assert "further" not in drawn(report)


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


@pytest.mark.parametrize(
    ("lost", "share", "told"), [(0, 0.0, ""), (2, 1e-4, ""), (12345, 0.75, ", 75 % of all")]
)
def test_lost_events_are_always_the_last_line(lost: int, share: float, told: str) -> None:
    report = convoy() | {"lost_events": lost, "lost_share": share}
    assert drawn(report).splitlines()[-1].strip() == f"lost events: {lost:,}{told}"


def test_the_share_of_lost_events_is_told_with_what_lacks_them() -> None:
    report = convoy() | {"lost_events": 300, "lost_share": 0.0181}
    what = "medians, maxima, handoffs, blame and findings are incomplete"
    last = drawn(report, 200).splitlines()[-1].strip()
    assert last == f"lost events: 300, 1.8 % of all: {what}"


def test_so_many_lost_events_that_numbers_mean_little_are_told_above_them() -> None:
    report = convoy() | {"lost_events": 6_000, "lost_share": 0.37}
    lines = drawn(report, 200).splitlines()
    (told,) = [number for number, line in enumerate(lines) if "of all events were lost" in line]
    assert lines[told].strip().startswith("37 % of all events were lost: medians, maxima,")
    assert told < next(number for number, line in enumerate(lines) if line.startswith("GIL "))


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
    assert "not recorded: PyPy's GIL does not call libc" in drawn(report)
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


def test_a_gil_that_is_the_limit_of_all_threads_is_not_called_ok() -> None:
    report = convoy()
    first = report["findings"][0]
    for advice, word in ((None, "ok"), ("only processes run in parallel", "bottleneck")):
        report["findings"] = [{**first, "kind": "none", "text": "it was held", "advice": advice}]
        assert drawn(report).splitlines()[2].strip() == f"{word} it was held"


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
