"""`ungil advise`: what helps where threads wait for the GIL, and what it is where they do not."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from control_groups import control_group
from suite import PATIENCE_S, PROGRAMS

from ungil._native import read_trace
from ungil.report import print_advice

ELSEWHERE = PROGRAMS / "elsewhere"
EXAMPLES = PROGRAMS.parents[1] / "examples"
KEYS = {"kind", "cause", "text", "subject", "action", "gain", "confidence", "evidence", "same_as"}


def _ungil(*words: str | Path, **options: Any) -> str:
    command = [sys.executable, "-m", "ungil", *map(str, words)]
    done = subprocess.run(
        command, check=True, capture_output=True, text=True, timeout=PATIENCE_S, **options
    )
    return done.stdout


def _traced(path: Path, *words: str | Path, **options: Any) -> Path:
    trace = path / "t.pftrace"
    _ungil(
        "trace", "--quiet", "--no-children", "-o", trace, "--", sys.executable, *words, **options
    )
    return trace


def _advised(trace: Path) -> dict[str, Any]:
    """What is advised, after it was checked against the report that it points into."""
    advised = json.loads(_ungil("advise", trace, "--json"))
    report = json.loads(_ungil("report", trace, "--json"))
    assert report["advised"] == {key: advised[key] for key in report["advised"]}
    assert set(report["advised"]) == {"schema", "advice", "rejected", "gils_left_out"}
    for advice in advised["advice"] + advised["rejected"]:
        assert set(advice) == KEYS
        for evidence in advice["evidence"]:
            if evidence["pointer"] is not None:
                assert _at(report, evidence["pointer"]) == evidence["value"], evidence
    return advised


def _at(document: Any, pointer: str) -> Any:
    """What an RFC 6901 pointer points at."""
    for key in pointer.split("/")[1:]:
        document = document[int(key) if isinstance(document, list) else key]
    return document


def _not_the_gil(trace: Path) -> dict[str, Any]:
    """The first advice, which has to say that it is not the GIL."""
    advised = _advised(trace)
    first = advised["advice"][0]
    assert {it["kind"] for it in advised["advice"]} == {"not-the-gil"}, advised
    assert first["text"].startswith(("it is not the GIL", "nothing to gain here"))
    assert first["gain"] is None
    return first


def test_a_call_that_sleeps_on_the_event_loop_is_named_with_its_line(tmp_path: Path) -> None:
    first = _not_the_gil(_traced(tmp_path, ELSEWHERE / "sleep_on_loop.py"))
    assert first["cause"] == "blocked-event-loop"
    assert first["subject"]["function"].startswith("handle (")
    assert "slept (clock_nanosleep)" in first["text"]


def test_a_slow_socket_on_the_event_loop_is_named_with_its_line(tmp_path: Path) -> None:
    first = _not_the_gil(_traced(tmp_path, ELSEWHERE / "socket_on_loop.py"))
    assert first["cause"] == "blocked-event-loop"
    assert first["subject"]["function"].startswith("ask (")
    assert "waited for the network (recvfrom)" in first["text"]


def test_what_computes_on_the_event_loop_is_named_though_nobody_waits(tmp_path: Path) -> None:
    first = _not_the_gil(_traced(tmp_path, ELSEWHERE / "computing_on_loop.py"))
    assert first["cause"] == "blocked-event-loop"
    assert "computing blocks the event loop of thread MainThread: tokenise (" in first["text"]
    assert first["subject"]["function"].startswith("tokenise (")
    assert "ProcessPoolExecutor()" in first["action"]["code"]


def test_what_a_program_computes_without_an_event_loop_blocks_none(tmp_path: Path) -> None:
    first = _not_the_gil(_traced(tmp_path, ELSEWHERE / "computing_on_loop.py", "plain"))
    assert first["cause"] == "unknown"


def test_a_pool_whose_threads_all_wait_is_exhausted(tmp_path: Path) -> None:
    first = _not_the_gil(_traced(tmp_path, ELSEWHERE / "exhausted_pool.py"))
    assert first["cause"] == "exhausted-pool"
    assert first["subject"]["thread_group"] == "fetcher_*"
    assert len(first["subject"]["threads"]) == 4
    assert first["subject"]["function"].startswith("ask (")
    assert "another thread waited for a result" in {it["what"] for it in first["evidence"]}


@pytest.mark.parametrize("how", ["sleep", "get"])
def test_threads_that_look_each_millisecond_for_something_to_do_poll(
    tmp_path: Path, how: str
) -> None:
    trace = _traced(tmp_path, ELSEWHERE / "polling.py", how, "3")
    (told,) = [it for it in _advised(trace)["advice"] if it["cause"] == "polling"]
    # How many of them are looked at often enough depends on the machine.
    assert len(told["subject"]["threads"]) > 1
    waits = "from sleep" if how == "sleep" else "from waits with a short timeout"
    assert re.search(r" threads [^ ]+ poll: they woke up ", told["text"])
    assert waits in told["text"]
    assert re.search(r"times that they woke up: \d+,\d{3}\n", _ungil("advise", trace))


def test_a_map_over_a_pool_of_processes_has_nothing_to_gain_from_the_gil(tmp_path: Path) -> None:
    trace = tmp_path / "t.pftrace"
    program = ELSEWHERE / "map_over_processes.py"
    _ungil("trace", "--quiet", "-o", trace, "--", sys.executable, program)
    first, *others = _advised(trace)["advice"]
    assert first["text"].startswith("nothing to gain here: 2 of "), first
    assert " processes computed, each with a GIL of its own" in first["text"]
    assert others == []


def test_a_pool_that_computes_without_the_gil_is_not_told_to_get_more_threads(
    tmp_path: Path,
) -> None:
    first = _not_the_gil(_traced(tmp_path, ELSEWHERE / "hash_in_threads.py"))
    assert first["cause"] == "computing", first
    assert first["action"]["code"] is None
    assert "more than 2" not in first["text"]
    assert "time that they ran, summed" in {it["what"] for it in first["evidence"]}


def test_a_lock_that_is_held_for_long_is_named_with_the_line_that_wants_it(tmp_path: Path) -> None:
    first = _not_the_gil(_traced(tmp_path, ELSEWHERE / "held_lock.py"))
    assert first["cause"] == "lock"
    assert first["subject"]["thread_group"] == "wanter-*"
    assert first["subject"]["function"].startswith("want (")


def test_threads_that_wait_for_the_disk_are_named_with_their_line(tmp_path: Path) -> None:
    trace = _traced(tmp_path, ELSEWHERE / "synced_file.py", tmp_path)
    first = _not_the_gil(trace)
    # A disk that is fast keeps a processor busy instead.
    assert first["cause"] in {"disk", "computing"}
    assert first["subject"]["function"].startswith("store (")


def test_a_cpu_limit_is_no_matter_of_the_gil(tmp_path: Path) -> None:
    with control_group() as group:
        # So little that it uses it up in several periods, also on a busy machine.
        group.limit(0.05)
        trace = _traced(tmp_path, PROGRAMS / "spinning.py", "10", preexec_fn=group.enter)
        group.unlimit()
    assert "cpu-limit" in {it["cause"] for it in _advised(trace)["advice"]}


def test_the_policy_that_is_advised_against_a_convoy_can_be_run(tmp_path: Path) -> None:
    trace = _traced(tmp_path, EXAMPLES / "convoy_server.py", "--seconds", "3")
    advised = _advised(trace)
    # Which advice is the best depends on what else the machine does, and so does what is certain.
    both = advised["advice"] + advised["rejected"]
    (first,) = (it for it in both if it["kind"] == "policy")
    assert first["action"]["command"][:5] == ["ungil", "run", "--policy", "interactive", "--"]
    assert first["gain"]["after"] < first["gain"]["before"]
    assert first["gain"]["low"] <= first["gain"]["after"] <= first["gain"]["high"]
    kinds = [it["kind"] for it in both if it["kind"] != "not-the-gil"]
    assert len(kinds) == len(set(kinds))
    (process,) = (it for it in advised["advice"] if it["kind"] == "to-a-process")
    assert process["subject"]["function"].startswith("build_report (")
    ran = subprocess.run(
        [sys.executable, "-m", *first["action"]["command"]],
        check=True,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert "requests in 3 s" in ran.stdout


def test_the_report_shows_the_best_advice_once(tmp_path: Path) -> None:
    trace = _traced(tmp_path, EXAMPLES / "convoy_server.py", "--seconds", "2")
    shown = _ungil("report", trace)
    assert "What to do" in shown
    # Which one that is depends on what else the machine does.
    best = json.loads(_ungil("advise", trace, "--json"))["advice"][0]
    assert " ".join(best["text"].split()) in " ".join(shown.split())
    assert "ungil run lets a thread" not in shown, "the finding's own advice says the same"
    assert "ungil run lets a thread" in _ungil("report", trace, "--no-advice")
    whole = _ungil("advise", trace)
    sure = f"{best['confidence']['level']} confidence: {best['confidence']['because']}"
    assert " ".join(sure.split()) in " ".join(whole.split())
    assert "(0 to 0" not in whole, "what would wait for no GIL has no range"


def test_the_end_of_a_recording_shows_the_first_advice_with_its_command(tmp_path: Path) -> None:
    trace = tmp_path / "t.pftrace"
    program = [sys.executable, str(EXAMPLES / "convoy_server.py"), "--seconds", "2"]
    # However busy the machine is: as a user sees it where the advice comes within a second.
    patient = "from ungil.cli import advised, main; advised.CLOSING_S = 1e3; exit(main())"
    command = [sys.executable, "-c", patient, "trace", "--no-children", "-o", str(trace), "--"]
    done = subprocess.run(
        [*command, *program], check=True, capture_output=True, text=True, timeout=PATIENCE_S
    )
    first, *others = _advised(trace)["advice"]
    # Long lines are folded anywhere.
    shown = "".join(done.stderr.split())
    # What is not the GIL's doing has neither a command nor code.
    told = first["action"]["shell"] or first["action"]["code"] or first["text"]
    assert "".join(told.split()) in shown
    assert f"(and{len(others)}more:ungiladvise)" in shown


def test_advice_that_takes_too_long_is_left_out(tmp_path: Path) -> None:
    trace = _traced(tmp_path, EXAMPLES / "convoy_server.py", "--seconds", "1")
    in_no_time = read_trace(str(trace), 20.0, advise=True, advise_within_s=0.0)
    assert "advised" not in json.loads(in_no_time)
    in_time = read_trace(str(trace), 20.0, advise=True, advise_within_s=PATIENCE_S)
    assert json.loads(in_time)["advised"]["advice"]


def test_a_part_of_a_trace_has_advice_without_predictions(tmp_path: Path) -> None:
    trace = _traced(tmp_path, EXAMPLES / "convoy_server.py", "--seconds", "2")
    report = json.loads(_ungil("report", trace, "--json", "--last", "1s"))
    advised = report["advised"]["advice"]
    assert advised
    assert all(it["gain"] is None for it in advised)


def test_a_file_that_is_no_trace_is_one_sentence() -> None:
    command = [sys.executable, "-m", "ungil", "advise", __file__]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 2
    assert done.stderr.startswith("ungil: cannot read ")
    assert done.stderr.count("\n") == 1


def test_what_many_processes_are_advised_is_told_once_for_all_of_them() -> None:
    def advice(pid: int, number: int, same_as: int | None) -> dict[str, Any]:
        return {
            "kind": "policy",
            "cause": None,
            "text": f"cure {number} (pid {pid})",
            "subject": {"pid": pid},
            "action": {"shell": "ungil run app.py", "code": None},
            "gain": None,
            "confidence": {"level": "high", "because": "it was seen"},
            "evidence": [],
            "same_as": same_as,
        }

    workers = [advice(pid, 0, 0) for pid in range(2, 9)]
    rejected = [advice(1, number, None) for number in range(23)]
    advised = {"advice": [advice(1, 0, None), *workers], "rejected": rejected}
    out = io.StringIO()
    print_advice(json.dumps({"advised": advised}), out)
    lines = [line.strip() for line in out.getvalue().splitlines()]
    assert lines[:3] == [
        "1. cure 0 (pid 1)",
        "ungil run app.py",
        "the same for pid 2, 3, 4, 5, 6 and 2 more",
    ]
    assert "pid 2)" not in out.getvalue()
    assert lines[-2:] == ["no use: cure 19 (pid 1)", "and 3 more, which --json has"]
    out = io.StringIO()
    print_advice(json.dumps({"advised": advised | {"gils_left_out": 480}}), out)
    assert out.getvalue().splitlines()[-1] == (
        "nothing was simulated for 480 other GILs, at which threads wait less"
    )


def test_evidence_shows_a_short_time_in_a_unit_in_which_it_is_not_zero() -> None:
    def shown(seconds: float) -> str:
        advice: dict[str, Any] = {
            "kind": "not-the-gil",
            "cause": "lock",
            "text": "it is a lock",
            "subject": {"pid": 1, "gil": 0, "threads": [], "thread_group": None, "function": None},
            "action": {"command": None, "shell": None, "code": None},
            "gain": None,
            "confidence": {"level": "high", "because": "it was seen"},
            "evidence": [{"what": "waited", "value": seconds, "unit": "s", "pointer": None}],
            "same_as": None,
        }
        out = io.StringIO()
        print_advice(json.dumps({"advised": {"advice": [advice], "rejected": []}}), out)
        return out.getvalue().splitlines()[2].strip()

    assert [shown(seconds) for seconds in (4.14, 0.0042, 0.00003, 0)] == [
        "- waited: 4.14 s",
        "- waited: 4.20 ms",
        "- waited: 30.0 µs",
        "- waited: 0.00 s",
    ]


def test_the_ends_of_a_range_have_a_unit_each_if_it_is_not_the_same() -> None:
    def shown(low: float, high: float) -> str:
        advice: dict[str, Any] = {
            "kind": "interval",
            "cause": None,
            "text": "ask sooner",
            "subject": {"pid": 1, "gil": 0, "threads": [], "thread_group": None, "function": None},
            "action": {"command": None, "shell": None, "code": None},
            "gain": {"unit": "ms", "before": high, "after": low, "low": low, "high": high},
            "confidence": {"level": "low", "because": "it was predicted"},
            "evidence": [],
            "same_as": None,
        }
        out = io.StringIO()
        print_advice(json.dumps({"advised": {"advice": [advice], "rejected": []}}), out)
        return out.getvalue().splitlines()[0].strip()

    assert shown(53.7, 1180.4) == "1. ask sooner (53.7 ms to 1.18 s)"
    assert shown(0.05, 0.5) == "1. ask sooner (50 to 500 µs)"
