"""`ungil report --html` and `ungil trace --html`: one file with everything that the report says."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from pages import NETWORK, Hold, PageFile
from suite import PROGRAMS
from tracing import Running, trace

Run = Callable[..., subprocess.CompletedProcess[str]]
CONVOY = PROGRAMS / "convoy.py"
TWO_THREADS = "import threading; t = threading.Thread(target=len, args=('',)); t.start(); t.join()"
MARKUP = "</script><script>alert(1)</script><!--\u202e&amp;"
# They compute for so long that a busy recorder has many a chance to read their names.
HOSTILE = f"""
import threading, time
def compute():
    while time.monotonic() < until:
        sum(range(50_000))
until = time.monotonic() + 2
names = ({MARKUP!r}, "<img src=x onerror=alert(1)>", "", "\\u2028", "x" * 4000)
threads = [threading.Thread(target=compute, name=name) for name in names]
[it.start() for it in threads]
[it.join() for it in threads]
"""


def page_of(recording: Path, *options: str) -> PageFile:
    """The page of a trace."""
    page = recording.with_suffix(".html")
    command = [sys.executable, "-m", "ungil", "report", str(recording), "--html", str(page)]
    outcome = subprocess.run(
        [*command, *options], capture_output=True, text=True, check=False, cwd=recording.parent
    )
    assert outcome.returncode == 0, outcome.stderr
    assert outcome.stderr.startswith(f"ungil: the page is {str(page)!r} (")
    return PageFile(page)


def agree(page: PageFile) -> None:
    """What single holds and waits add up to is what the report says."""
    unit_s = page.summary["unit_ns"] / 1e9
    for gil in page.gils:
        told, lanes = page.told(gil), page.lanes(gil)
        held: dict[int, list[int]] = defaultdict(list)
        waited: dict[int, list[int]] = defaultdict(list)
        holds, waits = page.holds(gil), page.waits(gil)
        for hold in holds:
            held[hold.lane].append(hold.end - hold.begin)
        for lane, begin, end in waits:
            waited[lane].append(end - begin)
        for lane, row in enumerate(lanes["row"]):
            if row is None:
                assert not held[lane]
                continue
            thread = told["threads"][row]
            assert thread["tid"] == lanes["tid"][lane]
            for lengths, name in ((held[lane], "held_s"), (waited[lane], "waited_s")):
                assert sum(lengths) * unit_s == pytest.approx(
                    thread[name], abs=(len(lengths) + 1) * unit_s
                )
            assert len(held[lane]) == thread["holds"]["count"]
            assert len(waited[lane]) == thread["waits"]["count"]
        rows = {row for row in lanes["row"] if row is not None}
        for row, thread in enumerate(told["threads"]):
            # What did nothing with the GIL has no lane.
            assert row in rows or (thread["holds"]["count"], thread["waits"]["count"]) == (0, 0)
        edge = (len(holds) + len(waits) + 1) * unit_s
        assert sum(gil["busy"]["held"]) * unit_s == pytest.approx(told["held_s"], abs=edge)
        assert sum(gil["busy"]["contended"]) * unit_s == pytest.approx(
            told["contended_s"], abs=edge
        )
        if told["others"] is None and page.summary["unit_ns"] == 1:
            assert blame(holds, waits, lanes["tid"]) == pytest.approx(
                summed((it["victim"], it["culprit"], it["waited_s"]) for it in told["blame"]),
                abs=1e-6,
            )


def blame(
    holds: list[Hold], waits: list[tuple[int, int, int]], tids: list[int | None]
) -> dict[Any, float]:
    """Each wait charged to those who held meanwhile, in seconds."""
    charges: list[tuple[Any, Any, float]] = []
    for victim, begin, end in waits:
        nobody = end - begin
        for hold in holds:
            if (overlap := min(hold.end, end) - max(hold.begin, begin)) > 0:
                charges.append((tids[victim], tids[hold.lane], overlap / 1e9))
                nobody -= overlap
        charges.append((tids[victim], None, nobody / 1e9))
    return summed(charges)


def summed(rows: Iterable[tuple[Any, Any, float]]) -> dict[Any, float]:
    """Sums by victim and culprit, without those that are nothing."""
    sums: dict[Any, float] = defaultdict(float)
    for victim, culprit, waited_s in rows:
        sums[victim, culprit] += waited_s
    return {pair: waited_s for pair, waited_s in sums.items() if waited_s > 1e-9}


@pytest.mark.parametrize(
    "words",
    [
        ["-c", TWO_THREADS],
        ["-c", "pass"],
        [CONVOY, "100"],
        [PROGRAMS / "subinterpreters.py"],
        [PROGRAMS / "children.py"],
        [PROGRAMS / "short_threads.py"],
        [PROGRAMS / "native.py"],
        [PROGRAMS / "two_culprits.py"],
        ["/bin/true"],
    ],
    ids=lambda words: Path(str(words[0] if len(words) < 2 else words[-1])).stem or "none",
)
def test_the_page_of_a_real_program_agrees_with_its_report(
    tmp_path: Path, words: list[str | Path]
) -> None:
    with Running(tmp_path, words) as running:
        recording = running.finish()
    page = page_of(recording.path)
    agree(page)
    assert page.summary["is_whole"]
    head = page.summary["report"]
    assert head["findings"] == recording.report["findings"]
    assert page.report["processes"] == recording.report["processes"]
    assert len(page.summary["processes"]) == len(recording.report["processes"])


def test_a_page_loads_nothing_and_its_own_script_is_the_only_one_that_runs(tmp_path: Path) -> None:
    page = page_of(trace(tmp_path, "-c", TWO_THREADS).path)
    scripts = [known for tag, known in page.elements.started if tag == "script"]
    running = [it for it in scripts if not (it.get("type") or "").startswith("application/")]
    assert len(running) == 1
    assert "src" not in running[0]
    assert not NETWORK.search(page.text)
    (policy,) = [
        known["content"]
        for tag, known in page.elements.started
        if tag == "meta" and known.get("http-equiv") == "Content-Security-Policy"
    ]
    assert policy is not None
    assert "default-src 'none'" in policy
    assert "script-src 'sha256-" in policy


def test_hostile_names_are_text_and_no_elements(tmp_path: Path) -> None:
    plain = page_of(trace(tmp_path, "-c", TWO_THREADS).path)
    folder = tmp_path / "<b>&\u202e"
    folder.mkdir()
    program = folder / "<script>alert(2)<.py"
    program.write_text(HOSTILE)
    recording = trace(folder, program)
    hostile = recording.path.rename(folder / "<script>alert(3)<.pftrace")
    page = page_of(hostile)

    def tags(page: PageFile) -> list[tuple[str, str | None]]:
        of_page = [(tag, known.get("type")) for tag, known in page.elements.started]
        return [it for it in of_page if it[1] != "application/octet-stream"]

    # The same elements as in a harmless page, but for the number of blocks.
    assert tags(page) == tags(plain)
    assert page.elements.title == f"ungil: {hostile.name}"
    (gil,) = page.gils
    names = page.lanes(gil)["name"]
    assert MARKUP in names
    assert any(name.startswith("x" * 50) for name in names)


def test_a_part_is_a_page_of_its_own(tmp_path: Path) -> None:
    recording = trace(tmp_path, CONVOY, "300")
    page = page_of(recording.path, "--from", "0.5", "--to", "1")
    agree(page)
    part = page.summary["report"]["part"]
    assert (part["start_s"], part["end_s"]) == (0.5, 1.0)
    assert page.summary["offset_s"] == pytest.approx(0.5)
    assert page.summary["end"] * page.summary["unit_ns"] == pytest.approx(0.5e9)


def test_a_trace_without_its_end_has_a_page_that_says_so(tmp_path: Path, ungil: Run) -> None:
    recording = trace(tmp_path, CONVOY, "200")
    cut = tmp_path / "cut.pftrace"
    cut.write_bytes(recording.path.read_bytes()[:-100])
    page = page_of(cut)
    agree(page)
    assert page.summary["report"]["notes"][0].startswith("the trace ends after ")


def test_trace_writes_the_page_of_its_own_recording(ungil: Run, tmp_path: Path) -> None:
    outcome = ungil("trace", "-o", "t.pftrace", "--html", "t.html", "-c", TWO_THREADS)
    assert outcome.returncode == 0
    assert "ungil: the page is 't.html' (" in outcome.stderr
    agree(PageFile(tmp_path / "t.html"))
    again = ungil("report", "t.pftrace", "--html", "again.html", "--json")
    assert json.loads(again.stdout)["schema"] == 1
    assert (tmp_path / "again.html").read_bytes() == (tmp_path / "t.html").read_bytes()


@pytest.mark.parametrize(
    ("page", "sentence"),
    [
        ("none/page.html", "cannot write 'none/page.html': no such folder"),
        ("folder", "cannot write 'folder': it is not a regular file"),
        ("/dev/null", "cannot write '/dev/null': it is not a regular file"),
    ],
)
def test_a_place_that_cannot_be_a_page_is_one_sentence_before_any_work(
    ungil: Run, tmp_path: Path, page: str, sentence: str
) -> None:
    assert ungil("trace", "-q", "-o", "t.pftrace", "-c", "pass").returncode == 0
    (tmp_path / "folder").mkdir()
    outcome = ungil("report", "t.pftrace", "--html", page)
    assert (outcome.returncode, outcome.stderr) == (2, f"ungil: {sentence}\n")
    outcome = ungil("trace", "-q", "--force", "-o", "t.pftrace", "--html", page, "-c", "1/0")
    assert (outcome.returncode, outcome.stderr) == (2, f"ungil: {sentence}\n")


def test_a_full_disk_is_one_sentence_and_leaves_the_page_that_was_there(
    ungil: Run, tmp_path: Path, environment: dict[str, str]
) -> None:
    assert ungil("trace", "-q", "-o", "t.pftrace", "-c", "pass").returncode == 0
    page = tmp_path / "t.html"
    page.write_text("an older one")
    before = sorted(tmp_path.iterdir())

    def no_room() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))

    command = [sys.executable, "-m", "ungil", "report", "t.pftrace", "--html", "t.html"]
    outcome = subprocess.run(
        command,
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=no_room,
    )
    assert (outcome.returncode, outcome.stdout) == (1, "")
    assert outcome.stderr == "ungil: cannot write 't.html': file too large\n"
    assert page.read_text() == "an older one"
    assert sorted(tmp_path.iterdir()) == before


def test_a_page_for_standard_output_is_the_one_for_a_file(ungil: Run, tmp_path: Path) -> None:
    assert ungil("trace", "-q", "-o", "t.pftrace", "-c", TWO_THREADS).returncode == 0
    assert ungil("report", "t.pftrace", "--html", "t.html").returncode == 0
    outcome = ungil("report", "t.pftrace", "--html", "-")
    assert (outcome.returncode, outcome.stderr) == (0, "")
    assert outcome.stdout == (tmp_path / "t.html").read_text(encoding="utf-8")
    assert not (tmp_path / "-").exists()
    outcome = ungil("report", "t.pftrace", "--html", "-", "--json")
    said = "ungil: the JSON and the page cannot both be written to '-'\n"
    assert (outcome.returncode, outcome.stderr) == (2, said)
