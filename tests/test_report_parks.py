"""What the report says of threads that parked, drawn from reports made by hand."""

from __future__ import annotations

from typing import Any

import pytest
from reports import convoy, drawn, spread
from rich.cells import cell_len


def parked(cause: str, waited_s: float) -> dict[str, Any]:
    return {"cause": cause, "waited_s": waited_s, "parks": spread(812, 900.0, 5000.0, 31_000.0)}


def wait(tid: int, name: str, cause: str, **changes: Any) -> dict[str, Any]:
    waker = {"tid": 71, "name": "worker-1", "count": 700, "waited_s": 0.9}
    return {
        "tid": tid,
        "name": name,
        "cause": cause,
        "of": "dict" if cause == "object" else None,
        "lock": 5,
        "together": True,
        "count": 812,
        "waited_s": 1.2,
        "max_ms": 31.0,
        "wakers": [waker, {"tid": None, "name": None, "count": 112, "waited_s": 0.3}],
    } | changes


def parking(names: tuple[str, str] = ("worker-1", "worker-3")) -> dict[str, Any]:
    """A free-threaded program whose threads change one dict."""
    report = convoy()
    process = report["processes"][0]
    process["not_recorded"] = "this Python is free-threaded, and its GIL was off"
    process["free_threaded"] = {"gil": "off", "gil_on_s": None}
    causes = [parked("object", 1.2), parked("pause", 0.2), parked("event", 3.0)]
    process["parks"] = {
        "threads": [
            {"tid": 73, "name": names[1], "main": False, "causes": causes},
            {"tid": 71, "name": names[0], "main": False, "causes": [parked("object", 0.4)]},
        ],
        "others": [],
        "waits": [
            wait(73, names[1], "object"),
            wait(73, names[1], "internal"),
            wait(73, names[1], "event"),
        ],
        "pauses": {
            "count": 40,
            "stopped_s": 0.212,
            "max_ms": 12.0,
            "collections": 38,
            "collections_s": 0.2,
        },
    }
    return report


def test_each_thread_has_a_row_with_what_it_parked_for() -> None:
    lines = drawn(parking(), width=140).splitlines()
    (heading,) = [line for line in lines if line.startswith("Parked for")]
    assert heading.split()[2:] == ["objects", "pauses", "events", "parks", "p50", "p99", "max"]
    row = lines[lines.index(heading) + 1]
    assert " ".join(row.split()) == "worker-3 1.20s 200ms 3.00s 2,436 900µs 5.00ms 31.0ms"


def test_who_waited_for_what_is_told_with_who_woke_it_and_no_events() -> None:
    text = drawn(parking(), width=140)
    assert "the lock of one dict" in text
    assert "worker-1 75%, unknown 25%" in text
    assert "a lock of the interpreter or an extension" in text
    section = text[text.index("Who waited for what") :]
    assert section.count("worker-3") == 2


def test_pauses_and_what_is_not_seen_are_said() -> None:
    text = drawn(parking(), width=200)
    assert (
        "40 pauses of the world, 212ms in all (4%), 12.0ms at most; 38 of them were garbage "
        "collections" in text
    )
    assert "not seen: locks that were free" in text


def test_parks_for_locks_that_the_threads_had_themselves_are_told_apart() -> None:
    report = parking()
    parks = report["processes"][0]["parks"]
    own = wait(73, "worker-3", "object")
    frame = "weight (/srv/roads.py:78)"
    own |= {"of": None, "lock": None, "count": 4_594, "waited_s": 3.9}
    place = {"frame": frame, "user_frame": frame, "stack": [frame], "count": 4_590, "waited_s": 3.9}
    own["places"] = [place]
    own["wakers"] = [{**own["wakers"][0], "tid": 73, "count": 4_594, "waited_s": 3.9}]
    before = drawn(report, width=300)
    assert "ended by the thread itself" not in before
    parks["waits"].append(own)
    text = drawn(report, width=300)
    assert (
        "4,594 parks, 3.90s in total, ended by the thread itself: sometimes Python acquires a lock "
        "twice, 4,590 times at roads.py:78"
    ) in text
    rows = "Who waited for what"
    assert text[text.index(rows) :] == before[before.index(rows) :]


def test_a_process_whose_parks_were_recorded_is_not_said_to_be_unrecorded() -> None:
    report = parking()
    reason = report["processes"][0]["not_recorded"]
    lines = drawn(report, width=140).splitlines()
    assert "6 threads seen, 1 of 3 processes" in lines[0]
    assert lines[1].strip() == reason
    # It is said once.
    report["findings"] = [{"kind": "none", "text": f"nothing wrong: {reason}", "advice": None}]
    assert drawn(report, width=140).count(reason) == 1
    del report["processes"][0]["parks"]
    report["findings"] = []
    assert f"not recorded: {reason}" in drawn(report, width=140)


def test_a_report_without_parks_says_nothing_of_them() -> None:
    assert "Parked for" not in drawn(convoy())


@pytest.mark.parametrize("name", ["", "worker-1", "\x1b[2J", "\u202eevil", "x" * 300])
@pytest.mark.parametrize("width", [40, 80, 200])
def test_names_may_be_anything(name: str, width: int) -> None:
    text = drawn(parking(("worker-1", name)), width=width)
    assert "\x1b[2J" not in text
    assert "\u202e" not in text
    assert all(cell_len(line) <= width for line in text.splitlines())
