"""`ungil report`: the report of a trace that was recorded before."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]

TWO_THREADS = "import threading; t = threading.Thread(target=len, args=('',)); t.start(); t.join()"


@pytest.fixture
def trace(ungil: Run) -> str:
    """A trace of a small program."""
    outcome = ungil(
        "trace", "--quiet", "--json", "now.json", "-o", "small.pftrace", "-c", TWO_THREADS
    )
    assert (outcome.returncode, outcome.stderr) == (0, "")
    return "small.pftrace"


def test_a_trace_gives_the_report_that_was_given_when_it_was_recorded(
    ungil: Run, trace: str, tmp_path: Path
) -> None:
    outcome = ungil("report", trace, "--json")
    assert (outcome.returncode, outcome.stderr) == (0, "")
    now, later = json.loads((tmp_path / "now.json").read_text()), json.loads(outcome.stdout)
    assert later["schema"] == 1
    assert len(later["processes"]) == len(now["processes"])
    for before, after in zip(now["processes"], later["processes"], strict=True):
        counts = [
            [
                (thread["tid"], thread["holds"]["count"])
                for gil in p["gils"]
                for thread in gil["threads"]
            ]
            for p in (before, after)
        ]
        assert counts[0] == counts[1]


def test_the_tables_go_to_standard_output(ungil: Run, trace: str) -> None:
    outcome = ungil("report", trace)
    assert (outcome.returncode, outcome.stderr) == (0, "")
    assert outcome.stdout.splitlines()[-1].strip() == "lost events: 0"


def test_a_reader_that_stops_reading_is_no_error(
    trace: str, tmp_path: Path, environment: dict[str, str]
) -> None:
    pipeline = f'"{sys.executable}" -m ungil report {trace} | true'
    outcome = subprocess.run(
        ["bash", "-c", pipeline], cwd=tmp_path, env=environment, capture_output=True, check=False
    )
    assert outcome.stderr == b""


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_a_report_that_does_not_fit_on_the_disk_is_one_sentence(
    ungil: Run, trace: str, options: list[str]
) -> None:
    with Path("/dev/full").open("w") as full:
        outcome = ungil(
            "report", trace, *options, capture_output=False, stdout=full, stderr=subprocess.PIPE
        )
    assert outcome.returncode == 1
    assert "no space left on device" in outcome.stderr.lower()
    assert outcome.stderr.startswith("ungil: ")
    assert outcome.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, "cannot read 'file': no such file or directory"),
        (b"", "cannot read 'file': "),
        (b"\x00" * 100, "cannot read 'file': "),
        (b"PK\x03\x04 this is no trace", "cannot read 'file': "),
    ],
)
def test_what_is_no_trace_is_one_sentence(
    ungil: Run, tmp_path: Path, content: bytes | None, sentence: str
) -> None:
    if content is not None:
        (tmp_path / "file").write_bytes(content)
    outcome = ungil("report", "file")
    assert (outcome.returncode, outcome.stdout) == (2, "")
    assert outcome.stderr.startswith(f"ungil: {sentence}")
    assert outcome.stderr.count("\n") == 1


def test_a_folder_is_no_trace(ungil: Run) -> None:
    outcome = ungil("report", ".")
    assert outcome.returncode == 2
    assert outcome.stderr.startswith("ungil: cannot read '.': ")


def test_a_trace_that_is_cut_before_anything_was_recorded_is_one_sentence(
    ungil: Run, trace: str, tmp_path: Path
) -> None:
    (tmp_path / "cut").write_bytes((tmp_path / trace).read_bytes()[:30])
    outcome = ungil("report", "cut")
    said = "the trace is cut off after byte 30, before anything was recorded"
    assert (outcome.returncode, outcome.stdout) == (2, "")
    assert outcome.stderr == f"ungil: cannot read 'cut': {said}\n"


def test_wrong_usage_is_one_sentence(ungil: Run, trace: str) -> None:
    for arguments in ([], [trace, trace], [trace, "--blame-after", "-3"], ["--unknown"]):
        outcome = ungil("report", *arguments)
        assert (outcome.returncode, outcome.stdout) == (2, "")
        assert outcome.stderr.startswith("ungil: ")
        assert outcome.stderr.count("\n") == 1
