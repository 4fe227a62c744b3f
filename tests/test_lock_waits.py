"""Who waited for a lock off the GIL, and who let go of it: recorded, and not guessed."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pythons import Python, pythons
from shown_pages import DESK, PHONE, Shown, chromium, page_of, report_of
from suite import PROGRAMS
from tracing import Recording, trace

Run = Callable[..., subprocess.CompletedProcess[str]]
NAMES = {"ann", "ben", "cid"}
IN_TURN = """
import threading, time
lock = threading.Lock()
def works():
    for _ in range(20):
        with lock:
            time.sleep(0.02)
threads = [threading.Thread(target=works, name=name) for name in ("ann", "ben", "cid")]
[it.start() for it in threads]
[it.join() for it in threads]
"""
PROGRAM = PROGRAMS / "lock_holders.py"
every_python = pytest.mark.parametrize("python", pythons(since=(3, 8)), ids=str)


def recorded(folder: Path, python: Python, kind: str, *options: str) -> Recording:
    """A recording of threads that sleep in this way."""
    return trace(folder, python.path, PROGRAM, kind, options=options)


def waits_of(recording: Recording) -> list[dict[str, Any]]:
    """What the threads waited for that the program tells of.

    A thread may also sleep for moments until the interpreter has begun it.
    """
    tids = {tid for tid, _ in json.loads(recording.stdout)}
    return [row for row in recording.process["lock_waits"] if row["tid"] in tids]


def waits_for_one_lock(recording: Recording) -> list[dict[str, Any]]:
    """Of these, those for the lock that most of the threads waited for."""
    rows = waits_of(recording)
    ((lock, _),) = Counter(row["lock"] for row in rows).most_common(1)
    return [row for row in rows if row["lock"] == lock]


def ended(rows: list[dict[str, Any]]) -> Counter[tuple[int, int | None]]:
    """Who ended whose waits, how often."""
    found: Counter[tuple[int, int | None]] = Counter()
    for row in rows:
        for waker in row["wakers"]:
            found[row["tid"], waker["tid"]] += waker["count"]
    return found


def told(recording: Recording) -> Counter[tuple[int, int | None]]:
    """The same as the program says."""
    return Counter((tid, waker) for tid, waker in json.loads(recording.stdout))


@every_python
def test_who_let_go_of_a_lock_is_known(tmp_path: Path, python: Python) -> None:
    recording = recorded(tmp_path, python, "alone")
    rows = waits_for_one_lock(recording)
    assert ended(rows) == told(recording)
    assert {row["cause"] for row in rows} == {"lock off the GIL"}
    assert not any(row["contended"] for row in rows), "nobody else wanted it"
    assert recording.process["parks"] is None


@every_python
def test_who_put_an_item_into_a_queue_is_known(tmp_path: Path, python: Python) -> None:
    recording = recorded(tmp_path, python, "queue")
    # Who was woken may sleep once more, for the lock that the other one still has.
    assert set(ended(waits_of(recording))) == set(told(recording))


@every_python
def test_a_lock_that_goes_from_one_to_the_next_is_contended(tmp_path: Path, python: Python) -> None:
    recording = recorded(tmp_path, python, "together")
    rows = waits_for_one_lock(recording)
    assert ended(rows) == told(recording)
    assert len({row["lock"] for row in rows if row["contended"]}) == 1
    assert all(row["contended"] for row in rows)


@every_python
def test_a_wait_that_ends_by_its_time_limit_was_ended_by_nobody(
    tmp_path: Path, python: Python
) -> None:
    recording = recorded(tmp_path, python, "timeout")
    assert ended(waits_for_one_lock(recording)) == told(recording)


@pytest.mark.parametrize("policy", ["interactive", "fair", "batch"])
@pytest.mark.parametrize("python", pythons("3.8", "3.11", "3.13"), ids=str)
def test_it_is_known_under_every_policy(tmp_path: Path, python: Python, policy: str) -> None:
    recording = recorded(tmp_path, python, "together", "--policy", policy)
    assert ended(waits_for_one_lock(recording)) == told(recording)


@pytest.fixture(scope="module")
def in_turn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recording of three threads that take a lock in turn."""
    folder = tmp_path_factory.mktemp("turns")
    program = folder / "turns.py"
    program.write_text(IN_TURN)
    return trace(folder, sys.executable, program).path


def test_the_screen_tells_of_locks_that_threads_take_in_turn(ungil: Run, in_turn: Path) -> None:
    lines = ungil("report", str(in_turn)).stdout.splitlines()
    (head,) = [number for number, it in enumerate(lines) if it.startswith("Who waited for locks")]
    row = lines[head + 1].split()
    assert row[0] in NAMES
    assert NAMES & set(row[1:]), lines[head + 1]


def test_the_advice_tells_who_let_go_of_a_lock(ungil: Run, in_turn: Path) -> None:
    advised = json.loads(ungil("advise", str(in_turn), "--json").stdout)["advice"]
    lock = advised[0]
    assert lock["cause"] == "lock"
    assert "let go of it" in lock["text"]
    assert "; meanwhile the thread that had it slept (clock_nanosleep) at works (" in lock["text"]
    # What was done with the lock is no other cause.
    assert [it["cause"] for it in advised] == ["lock"]


def test_the_report_tells_what_the_thread_did_that_had_a_lock(in_turn: Path) -> None:
    (process,) = report_of(in_turn)["processes"]
    (lock,) = process["locks"]
    assert {row["lock"] for row in process["lock_waits"] if row["contended"]} == {lock["lock"]}
    assert lock["waited_s"] > lock["waited_for_s"] > 0.5 * process["duration_s"]
    # On a busy machine it may have been awake, and not run yet.
    assert {"sleep"} <= {it["what"] for it in lock["did"]} <= {"sleep", "computing"}
    assert sum(it["looks"] for it in lock["did"]) == lock["looks"] >= 3


def test_the_page_shows_who_waited_for_locks(in_turn: Path) -> None:
    (process,) = report_of(in_turn)["processes"]
    first = process["lock_waits"][0]
    with chromium() as browser:
        for size in (PHONE, DESK):
            shown = Shown(browser, page_of(in_turn), size)
            section = shown.page.locator("section[aria-labelledby=locks]")
            row = section.locator("tbody tr").first
            row.wait_for()
            text = row.inner_text()
            assert text.startswith(first["name"])
            assert all(waker["name"] in text for waker in first["wakers"][:3])
            assert shown.said == []


SECONDS = {"ns": 1e-9, "µs": 1e-6, "ms": 1e-3, "s": 1.0}


def seconds(shown: str) -> float:
    """A length as the page shows it."""
    ((number, unit),) = re.findall(r"^([\d.]+)\s*(\D+)$", shown.strip())
    return float(number) * SECONDS[unit]


def test_for_a_selected_time_the_page_counts_waits_for_locks_as_the_report_does(
    in_turn: Path,
) -> None:
    whole = report_of(in_turn)["duration_s"]
    start, end = round(whole * 0.4, 3), round(whole * 0.7, 3)
    (part,) = report_of(in_turn, "--from", str(start), "--to", str(end))["processes"]
    expected = {
        row["name"]: (row["waited_s"], row["count"], row["max_ms"] / 1e3)
        for row in part["lock_waits"]
        if row["contended"]
    }
    # Who lets go may take the lock again at once, so a thread may be done before this time.
    assert expected
    with chromium() as browser:
        page = page_of(in_turn)
        unit_s = Shown(browser, page).unit_s
        begin, until = (round(it / unit_s) for it in (start, end))
        shown = Shown(browser, page, link=f"#gil=0&range={begin}-{until}")
        section = shown.page.locator("section[aria-labelledby=locks]")
        section.locator("tbody tr").first.wait_for()
        rows = section.locator("tbody tr").all()
        cells = {
            row.locator("th").inner_text(): row.locator("td").all_inner_texts() for row in rows
        }
        assert cells.keys() == expected.keys()
        for name, (waited, _, count, longest, *_) in cells.items():
            assert int(count) == expected[name][1]
            assert seconds(waited) == pytest.approx(expected[name][0], rel=0.02)
            assert seconds(longest) == pytest.approx(expected[name][2], rel=0.02)
        shown.page.get_by_role("button", name="Whole run").click()
        first = report_of(in_turn)["processes"][0]["lock_waits"][0]
        section.get_by_text(str(first["count"]), exact=True).first.wait_for()
        assert shown.said == []


def test_a_comparison_tells_that_threads_no_longer_wait_for_a_lock(
    ungil: Run, tmp_path: Path
) -> None:
    without = IN_TURN.replace("with lock", "if lock")
    traces: list[list[Path]] = []
    for side, program in (("before", IN_TURN), ("after", without)):
        runs = [tmp_path / f"{side}-{number}" for number in range(3)]
        for folder in runs:
            folder.mkdir()
        traces.append([trace(folder, sys.executable, "-c", program).path for folder in runs])
    before, after = ([str(path) for path in side] for side in traces)
    compared = json.loads(ungil("diff", *before, "--", *after, "--json").stdout)
    metric = compared["total"]["metrics"]["waited_for_locks"]
    assert (metric["verdict"], metric["after_median"]) == ("better", 0)
    assert "for locks in 10 s before, 0 s after" in compared["answer"]
    assert "waited for locks" in ungil("diff", *before, "--", *after).stdout
