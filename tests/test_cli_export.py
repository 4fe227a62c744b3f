"""`ungil export`: real traces in the formats of other tools, checked by their own schemas."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tarfile
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator
from test_cli_diff import SECONDS, recorded

Run = Callable[..., subprocess.CompletedProcess[str]]

SPEEDSCOPE = "speedscope@1.25.0"
FORMATS = ("firefox", "speedscope", "collapsed", "sqlite")
# Of the columns of a marker table, those that each marker has.
MARKER_COLUMNS = ("data", "name", "startTime", "endTime", "phase", "category")
# The type of a resource that is a library.
LIBRARY = 1


@pytest.fixture(scope="module")
def convoy(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A thread that computes, and one that comes back from I/O."""
    folder = tmp_path_factory.mktemp("convoy")
    return recorded(folder, "convoy", "compared.py", SECONDS, "convoy")


@pytest.fixture(scope="module")
def held(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Holds that are long enough to be sampled."""
    return recorded(tmp_path_factory.mktemp("held"), "held", "sorting.py", "12")


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Threads with hostile names."""
    return recorded(tmp_path_factory.mktemp("hostile"), "hostile", "hostile_names.py")


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> str:
    """One thread, which never waits."""
    return recorded(tmp_path_factory.mktemp("alone"), "alone", "alone.py")


@pytest.fixture(scope="module")
def speedscope_schema(tmp_path_factory: pytest.TempPathFactory) -> Draft7Validator:
    """The schema of speedscope's own files, from its npm package."""
    folder = tmp_path_factory.mktemp("npm")
    npm = shutil.which("npm")
    assert npm, "speedscope's schema comes from npm: install Node.js"
    packed = subprocess.run(
        [npm, "pack", SPEEDSCOPE], cwd=folder, capture_output=True, check=False, timeout=120
    )
    assert packed.returncode == 0, f"npm cannot reach its registry: {packed.stderr.decode()}"
    (packed_file,) = folder.glob("*.tgz")
    with tarfile.open(packed_file) as archive:
        file = archive.extractfile("package/dist/release/file-format-schema.json")
        assert file is not None
        return Draft7Validator(json.load(file))


def exported(ungil: Run, trace: str, name: str, *options: str) -> str:
    """What `ungil export` writes to stdout."""
    outcome = ungil("export", trace, "--format", name, "-o", "-", *options)
    assert (outcome.returncode, outcome.stderr) == (0, "")
    return outcome.stdout


def report(ungil: Run, trace: str) -> dict[str, Any]:
    return json.loads(ungil("report", trace, "--json").stdout)


def threads(report: dict[str, Any]) -> dict[int, dict[str, Any]]:
    """By tid."""
    gils = (gil for process in report["processes"] for gil in process["gils"])
    return {thread["tid"]: thread for gil in gils for thread in gil["threads"]}


def blamed_ms(report: dict[str, Any]) -> float:
    """What threads waited while somebody held."""
    gils = (gil for process in report["processes"] for gil in process["gils"])
    rows = (row for gil in gils for row in gil["blame"])
    return sum(1e3 * row["waited_s"] for row in rows if row["culprit"] is not None)


@pytest.mark.parametrize("trace", ["convoy", "held", "hostile", "alone"])
def test_speedscopes_own_schema_accepts_its_file(
    ungil: Run, trace: str, speedscope_schema: Draft7Validator, request: pytest.FixtureRequest
) -> None:
    file = json.loads(exported(ungil, request.getfixturevalue(trace), "speedscope"))
    errors: list[Any] = list(speedscope_schema.iter_errors(file))  # pyright: ignore
    assert errors == []
    frames = file["shared"]["frames"]
    for profile in file["profiles"]:
        assert len(profile["samples"]) == len(profile["weights"])
        assert sum(profile["weights"]) == profile["endValue"]
        assert all(0 <= frame < len(frames) for stack in profile["samples"] for frame in stack)


def test_weights_of_speedscope_are_what_the_report_blames_holders_for(
    ungil: Run, held: str
) -> None:
    waited, holding = json.loads(exported(ungil, held, "speedscope"))["profiles"]
    told = report(ungil, held)
    assert waited["endValue"] / 1e6 == pytest.approx(blamed_ms(told), rel=1e-6)
    held_s = sum(thread["held_s"] for thread in threads(told).values())
    assert holding["endValue"] / 1e9 == pytest.approx(held_s, rel=1e-6)


def test_a_collapsed_stack_is_frames_and_a_weight(ungil: Run, held: str) -> None:
    lines = exported(ungil, held, "collapsed").splitlines()
    assert all(re.fullmatch(r"[^;]+(;[^;]+)* [1-9]\d*", line) for line in lines)
    total_ms = sum(int(line.rpartition(" ")[2]) for line in lines) / 1e3
    assert total_ms == pytest.approx(blamed_ms(report(ungil, held)), abs=0.001 * len(lines) + 0.01)
    assert any("keep (" in line for line in lines)
    by_holding = exported(ungil, held, "collapsed", "--weight", "held").splitlines()
    held_s = sum(int(line.rpartition(" ")[2]) for line in by_holding) / 1e6
    told = sum(thread["held_s"] for thread in threads(report(ungil, held)).values())
    assert held_s == pytest.approx(told, abs=1e-5 * len(by_holding))


def test_hostile_names_break_no_line_and_no_frame(ungil: Run, hostile: str) -> None:
    lines = exported(ungil, hostile, "collapsed", "--weight", "held").split("\n")
    assert lines.pop() == ""
    assert all(re.fullmatch(r"[^;\x00-\x1f]+(;[^;\x00-\x1f]+)+ \d+", line) for line in lines)


def checked(profile: dict[str, Any]) -> dict[str, Any]:
    """A profile whose tables are consistent, as the types of the profiler have it."""
    meta, categories = profile["meta"], len(profile["meta"]["categories"])
    schemas = {schema["name"]: schema for schema in meta["markerSchema"]}
    assert meta["version"] >= 24
    for thread in profile["threads"]:
        strings = len(thread["stringArray"])
        markers = thread["markers"]
        for column in MARKER_COLUMNS:
            assert len(markers[column]) == markers["length"], column
        for index in range(markers["length"]):
            assert 0 <= markers["name"][index] < strings
            assert 0 <= markers["category"][index] < categories
            fields = {field["key"] for field in schemas[markers["data"][index]["type"]]["fields"]}
            assert markers["data"][index].keys() - {"type", "cause"} <= fields
            if markers["phase"][index] == 1:
                assert markers["startTime"][index] <= markers["endTime"][index]
        samples = thread["samples"]
        stacks, frames = thread["stackTable"], thread["frameTable"]
        functions, resources = thread["funcTable"], thread["resourceTable"]
        for table in (frames, functions, resources):
            assert all(len(it) == table["length"] for key, it in table.items() if key != "length")
        for index in range(frames["length"]):
            assert 0 <= frames["func"][index] < functions["length"]
            assert 0 <= frames["category"][index] < categories
            assert frames["line"][index] is None or frames["line"][index] > 0
        for index in range(functions["length"]):
            assert 0 <= functions["name"][index] < strings
            resource, file = functions["resource"][index], functions["fileName"][index]
            assert functions["isJS"][index] == (file is not None)
            assert file is None or (resource == -1 and 0 <= file < strings)
            assert -1 <= resource < resources["length"]
        for index in range(resources["length"]):
            assert 0 <= resources["name"][index] < strings
            assert 0 <= resources["lib"][index] < len(profile["libs"])
            assert resources["type"][index] == LIBRARY
        assert samples["weightType"] == "tracing-ms"
        assert len(samples["stack"]) == len(samples["weight"]) == samples["length"] >= 1
        for stack in samples["stack"]:
            assert stack is None or 0 <= stack < stacks["length"]
        for index in range(stacks["length"]):
            prefix = stacks["prefix"][index]
            assert prefix is None or 0 <= prefix < index
            assert 0 <= stacks["frame"][index] < frames["length"]
    return profile


@pytest.mark.parametrize("trace", ["convoy", "held", "hostile", "alone"])
def test_a_profile_has_a_track_for_each_thread_with_its_holds_and_waits(
    ungil: Run, trace: str, request: pytest.FixtureRequest
) -> None:
    path = request.getfixturevalue(trace)
    profile = checked(json.loads(exported(ungil, path, "firefox")))
    told = threads(report(ungil, path))
    tracks = {int(thread["tid"]): thread for thread in profile["threads"]}
    assert tracks.keys() == told.keys()
    for tid, thread in told.items():
        lengths: dict[str, float] = defaultdict(float)
        counts: dict[str, int] = defaultdict(int)
        markers = tracks[tid]["markers"]
        for index, data in enumerate(markers["data"]):
            lengths[data["type"]] += markers["endTime"][index] - markers["startTime"][index]
            counts[data["type"]] += 1
        assert counts["GilHold"] == thread["holds"]["count"]
        assert counts["GilWait"] == thread["waits"]["count"]
        assert lengths["GilHold"] == pytest.approx(1e3 * thread["held_s"], abs=0.01)
        assert lengths["GilWait"] == pytest.approx(1e3 * thread["waited_s"], abs=0.01)
        # The profiler calls the track of a main thread after its process.
        name = thread["name"] or f"thread-{tid}"
        assert tracks[tid]["name"] == name or tracks[tid]["isMainThread"]


def test_the_weights_of_a_profile_are_milliseconds_that_others_waited(
    ungil: Run, held: str
) -> None:
    profile = json.loads(exported(ungil, held, "firefox"))
    weights = sum(sum(thread["samples"]["weight"]) for thread in profile["threads"])
    assert weights == pytest.approx(blamed_ms(report(ungil, held)))


def test_native_code_stands_above_the_line_that_called_it(ungil: Run, held: str) -> None:
    if not any(it["native"] for it in report(ungil, held)["processes"][0]["gils"][0]["long_holds"]):
        pytest.skip("native frames cannot be seen here")
    lines = exported(ungil, held, "collapsed").splitlines()
    (called,) = {
        frames[place + 1 :][0]
        for line in lines
        if "builtins.sorted [" in line
        for frames in [line.rpartition(" ")[0].split(";")]
        for place in [next(n for n, it in enumerate(frames) if it.startswith("keep ("))]
    }
    assert called.startswith("builtins.sorted [")
    profile = checked(json.loads(exported(ungil, held, "firefox")))
    (keeper,) = [it for it in profile["threads"] if it["name"] == "keeper"]
    functions, strings = keeper["funcTable"], keeper["stringArray"]
    names = [strings[name] for name in functions["name"]]
    assert functions["resource"][names.index("builtins.sorted")] >= 0
    assert strings[functions["fileName"][names.index("keep")]].endswith("sorting.py")
    native = [it["name"] for it in profile["meta"]["categories"]].index("native code")
    assert native in keeper["frameTable"]["category"]
    asked = ungil("report", held, "--json", "--sql", "SELECT * FROM frames WHERE origin = 'native'")
    assert "builtins.sorted" in {row["function"] for row in json.loads(asked.stdout)}


def test_code_of_short_holds_is_known_from_looks(ungil: Run, convoy: str) -> None:
    """Holds of 5 ms are not long, and almost nothing in it would have a stack."""
    lines = exported(ungil, convoy, "collapsed").splitlines()
    weights = {line.rpartition(" ")[0]: int(line.rpartition(" ")[2]) for line in lines}
    seen = sum(weight for stack, weight in weights.items() if not stack.endswith("(no stack)"))
    assert seen > 0.5 * sum(weights.values())


def test_the_longest_markers_are_kept_and_the_rest_is_told(
    ungil: Run, convoy: str, tmp_path: Path
) -> None:
    everything = json.loads(exported(ungil, convoy, "firefox"))
    outcome = ungil("export", convoy, "--format", "firefox", "--markers", "10", "-o", "few.json")
    assert outcome.returncode == 0
    few = checked(json.loads((tmp_path / "few.json").read_text()))

    def lengths(profile: dict[str, Any]) -> list[float]:
        tables = (thread["markers"] for thread in profile["threads"])
        return sorted(
            table["endTime"][index] - table["startTime"][index]
            for table in tables
            for index, data in enumerate(table["data"])
            if data["type"] != "GilNote"
        )

    assert lengths(few) == lengths(everything)[-10:]
    left = len(lengths(everything)) - 10
    assert f"the {left:,} shortest holds and waits are left out" in outcome.stderr
    notes = [data["type"] for thread in few["threads"] for data in thread["markers"]["data"]].count(
        "GilNote"
    )
    assert notes == 1


@pytest.mark.parametrize("name", FORMATS)
def test_a_part_and_a_trace_without_its_end_are_exported_too(
    ungil: Run, convoy: str, tmp_path: Path, name: str
) -> None:
    whole = Path(convoy).read_bytes()
    (tmp_path / "cut.pftrace").write_bytes(whole[: len(whole) * 2 // 3])
    # A busy machine may leave half a second without a sample.
    for words in (["cut.pftrace"], [convoy, "--from", "0.3"]):
        outcome = ungil("export", *words, "--format", name, "-o", f"out.{name}")
        assert outcome.returncode == 0
        assert (tmp_path / f"out.{name}").stat().st_size > 0


@pytest.mark.parametrize(("name", "suffix"), [(name, name) for name in FORMATS])
def test_the_file_is_called_after_the_trace(
    ungil: Run, convoy: str, tmp_path: Path, name: str, suffix: str
) -> None:
    outcome = ungil("export", convoy, "--format", name)
    assert outcome.returncode == 0
    (made,) = tmp_path.iterdir()
    assert made.name.startswith(f"convoy.{suffix}")
    assert made.name in outcome.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["missing.pftrace", "--format", "firefox"], "no such file"),
        (["/dev/null", "--format", "firefox"], "cut off"),
        (["{trace}"], "Missing option '--format'"),
        (["{trace}", "--format", "excel"], "'excel' is not one of"),
        (["{trace}", "--format", "sqlite", "-o", "-"], "name one with -o"),
        (["{trace}", "--format", "firefox", "-o", "none/out.json"], "cannot write"),
        (["{trace}", "--format", "firefox", "--last", "1s", "--from", "1"], "cannot be combined"),
    ],
)
def test_a_mistake_is_one_sentence_and_leaves_nothing(
    ungil: Run, convoy: str, tmp_path: Path, words: list[str], said: str
) -> None:
    outcome = ungil("export", *(word.format(trace=convoy) for word in words))
    assert (outcome.returncode, outcome.stdout) == (2, "")
    assert said in outcome.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ("--format", "firefox", "--weight", "held"),
            "--weight is for --format collapsed; firefox has no use for it",
        ),
        (
            ("--format", "speedscope", "--markers", "5"),
            "--markers is for --format firefox; speedscope has no use for it",
        ),
    ],
)
def test_an_option_of_another_format_is_refused(
    ungil: Run, alone: str, words: tuple[str, ...], sentence: str
) -> None:
    outcome = ungil("export", alone, *words, "-o", "-")
    assert (outcome.returncode, outcome.stdout) == (2, "")
    assert outcome.stderr == f"ungil: {sentence}\n"


def test_what_cannot_be_read_is_told_as_of_a_report(ungil: Run, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    told = [
        ungil(*words).stderr
        for words in (("report", "folder"), ("export", "folder", "--format", "collapsed"))
    ]
    assert told == ["ungil: cannot read 'folder': is a directory\n"] * 2
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_a_full_disk_is_told_with_the_name_of_the_output(ungil: Run, held: str) -> None:
    outcome = ungil("export", held, "--format", "collapsed", "-o", "/dev/full")
    said = "ungil: cannot write '/dev/full': no space left on device\n"
    assert (outcome.returncode, outcome.stderr) == (1, said)


def test_a_reader_that_goes_away_ends_an_export_quietly(ungil: Run, held: str) -> None:
    nobody, pipe = os.pipe()
    os.close(nobody)
    outcome = ungil(
        *("export", held, "--format", "collapsed", "-o", "-"),
        capture_output=False,
        stdout=pipe,
        stderr=subprocess.PIPE,
    )
    os.close(pipe)
    assert outcome.stderr == ""
