"""`ungil report --sql`: a trace as a database, whose sums are those of the report."""

from __future__ import annotations

import json
import re
import sqlite3
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from test_cli_diff import SECONDS, recorded
from test_perfetto_format import check_trace

from ungil.cli.database import TABLES, VIEWS

Run = Callable[..., subprocess.CompletedProcess[str]]

REPOSITORY = Path(__file__).parent.parent
DOCUMENT = REPOSITORY / "docs" / "sql.md"
OF_PERFETTO = "## In the SQL of Perfetto"


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A convoy."""
    folder = tmp_path_factory.mktemp("convoy")
    return recorded(folder, "convoy", "compared.py", SECONDS, "convoy")


def asked(ungil: Run, trace: str, query: str, *options: str) -> list[dict[str, Any]]:
    """The rows of an answer."""
    outcome = ungil("report", trace, "--json", "--sql", query, *options)
    assert (outcome.returncode, outcome.stderr) == (0, "")
    return json.loads(outcome.stdout)


def test_sums_of_holds_and_waits_are_those_of_the_report(ungil: Run, trace: str) -> None:
    report = json.loads(ungil("report", trace, "--json").stdout)
    (process,) = report["processes"]
    for table, key, sums in (("named_holds", "held", "holds"), ("named_waits", "waited", "waits")):
        query = f"SELECT tid, thread, count(*) AS n, sum({key}_ns) AS ns FROM {table} GROUP BY tid"
        rows = {row["tid"]: row for row in asked(ungil, trace, query)}
        for thread in process["gils"][0]["threads"]:
            if thread[sums]["count"]:
                row = rows[thread["tid"]]
                assert (row["thread"], row["n"]) == (thread["name"], thread[sums]["count"])
                assert row["ns"] == pytest.approx(1e9 * thread[f"{key}_s"], abs=1)


def test_waits_for_locks_are_those_of_the_report(ungil: Run, trace: str) -> None:
    (process,) = json.loads(ungil("report", trace, "--json").stdout)["processes"]
    assert process["lock_waits"], "the main thread waits for the others to end"
    query = (
        "SELECT tid, lock, count(*) AS n, sum(let_go) AS let_go, sum(waited_ns) AS ns, "
        "max(ended_by_tid) AS ended_by FROM named_lock_waits GROUP BY tid, lock"
    )
    rows = {(row["tid"], row["lock"]): row for row in asked(ungil, trace, query)}
    for wait in process["lock_waits"]:
        row = rows.pop((wait["tid"], wait["lock"]))
        assert row["n"] == wait["count"]
        assert row["ns"] == pytest.approx(1e9 * wait["waited_s"], abs=10)
        assert row["let_go"] == sum(waker["let_go"] for waker in wait["wakers"])
        enders = [waker["tid"] for waker in wait["wakers"] if waker["tid"]]
        assert row["ended_by"] == max(enders, default=None)
    assert not rows


def test_processes_and_threads_are_those_of_the_report(ungil: Run, trace: str) -> None:
    report = json.loads(ungil("report", trace, "--json").stdout)
    (process,) = report["processes"]
    (row,) = asked(ungil, trace, "SELECT * FROM processes")
    assert (row["pid"], row["command"]) == (process["pid"], " ".join(process["argv"]))
    assert row["python"] == process["python"]
    assert row["policy"] == process["policy"]
    assert row["switch_interval_ns"] == round(1e6 * process["switch_interval_ms"])
    rows = asked(ungil, trace, "SELECT name, cpu_ns FROM threads ORDER BY name")
    threads = process["gils"][0]["threads"]
    assert [row["name"] for row in rows] == sorted(thread["name"] for thread in threads)
    cpu = {thread["name"]: thread["cpu_s"] for thread in threads}
    for row in rows:
        assert row["cpu_ns"] == pytest.approx(1e9 * cpu[row["name"]], abs=1)
    (whole,) = asked(ungil, trace, "SELECT * FROM trace")
    assert whole["duration_ns"] == pytest.approx(1e9 * report["duration_s"], abs=1)


def test_a_part_is_what_the_report_of_that_part_has(ungil: Run, trace: str) -> None:
    options = ("--from", "0.5", "--to", "1")
    report = json.loads(ungil("report", trace, "--json", *options).stdout)
    (row,) = asked(ungil, trace, "SELECT sum(end_ns - start_ns) AS ns FROM waits", *options)
    threads = report["processes"][0]["gils"][0]["threads"]
    assert row["ns"] == pytest.approx(sum(1e9 * thread["waited_s"] for thread in threads), abs=10)


def test_every_question_of_the_document_has_an_answer(ungil: Run, trace: str) -> None:
    ours, _ = DOCUMENT.read_text(encoding="utf-8").split(OF_PERFETTO)
    queries = re.findall(r"```sql\n(.*?)```", ours, re.DOTALL)
    assert len(queries) >= 3
    for query in queries:
        assert isinstance(asked(ungil, trace, query), list)


def test_every_question_on_a_command_line_of_a_document_has_an_answer(
    ungil: Run, trace: str
) -> None:
    documents = [REPOSITORY / "README.md", *(REPOSITORY / "docs").glob("*.md")]
    texts = [document.read_text(encoding="utf-8") for document in documents]
    texts.append(ungil("report", "--help").stdout)
    queries = {query for text in texts for _, query in re.findall(r"--sql (['\"])(.*?)\1", text)}
    assert len(queries) >= 3
    for query in queries:
        assert asked(ungil, trace, query), query


def test_the_questions_for_perfetto_are_answered_by_the_packets_of_a_trace(
    ungil: Run, trace: str
) -> None:
    _, theirs = DOCUMENT.read_text(encoding="utf-8").split(OF_PERFETTO)
    waited, forced = re.findall(r"```sql\n(.*?)```", theirs, re.DOTALL)
    report = json.loads(ungil("report", trace, "--json").stdout)
    threads = report["processes"][0]["gils"][0]["threads"]
    with as_perfetto_has_it(Path(trace)) as connection:
        rows = {row[0]: row[1:] for row in connection.execute(waited)}
        for thread in threads:
            if thread["waits"]["count"]:
                count, waited_s = rows[thread["name"]]
                assert count == thread["waits"]["count"]
                assert waited_s == pytest.approx(thread["waited_s"], abs=1e-6)
        expected = {it["name"]: it["forced"] for it in threads if it["forced"]}
        assert dict(connection.execute(forced).fetchall()) == expected


def as_perfetto_has_it(trace: Path) -> sqlite3.Connection:
    """Tables as Perfetto's documentation describes those of its trace_processor."""
    contents = check_trace(trace)
    connection = sqlite3.connect(":memory:")
    connection.executescript(
        "CREATE TABLE slice (id, ts, dur, track_id, name, arg_set_id);"
        "CREATE TABLE thread_track (id, name, utid);"
        "CREATE TABLE thread (utid, tid, name);"
    )
    numbers = {track: number for number, track in enumerate(contents.tracks)}
    for track, number in numbers.items():
        thread = contents.tracks[track].thread
        if thread.HasField("tid"):
            connection.execute("INSERT INTO thread_track VALUES (?, NULL, ?)", (number, number))
            row = (number, thread.tid, thread.thread_name)
            connection.execute("INSERT INTO thread VALUES (?, ?, ?)", row)
    for number, it in enumerate(contents.slices):
        row = (number, it.begin_ns, it.end_ns - it.begin_ns, numbers[it.track], it.name, number)
        connection.execute("INSERT INTO slice VALUES (?, ?, ?, ?, ?, ?)", row)

    def extract_arg(arg_set_id: int, key: str) -> Any:
        return contents.slices[arg_set_id].args.get(key.removeprefix("debug."))

    connection.create_function("extract_arg", 2, extract_arg)
    return connection


def test_the_document_names_every_table_and_column(ungil: Run, trace: str) -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    for table in [*TABLES, *VIEWS]:
        assert f"`{table}`" in text
    for table in TABLES:
        for column in asked(ungil, trace, f"SELECT name FROM pragma_table_info('{table}')"):
            (row,) = [line for line in text.splitlines() if line.startswith(f"| `{table}` |")]
            assert f"`{column['name']}`" in row


def test_people_get_a_table_and_pipes_a_line_a_row(ungil: Run, trace: str) -> None:
    query = "SELECT 'a' AS letter, 1 AS number UNION SELECT 'b', NULL"
    outcome = ungil("report", trace, "--sql", query)
    assert (outcome.returncode, outcome.stderr) == (0, "")
    assert [line.split() for line in outcome.stdout.splitlines()] == [
        ["letter", "number"],
        ["a", "1"],
        ["b"],
    ]
    assert asked(ungil, trace, "SELECT * FROM threads WHERE 0") == []


def test_many_rows_are_printed_as_they_come(ungil: Run, trace: str) -> None:
    numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000)"
    outcome = ungil("report", trace, "--sql", f"{numbers} SELECT i AS number, 'é' AS letter FROM n")
    lines = outcome.stdout.splitlines()
    # As wide as the first rows need, and the last ones are wider.
    assert lines[:2] == ["number  letter", "     1  é"]
    assert (len(lines), lines[-1]) == (100_001, "100000  é")


def test_the_schema_is_printed_as_statements_that_sqlite_takes(ungil: Run, trace: str) -> None:
    outcome = ungil("report", trace, "--sql", ".schema")
    with sqlite3.connect(":memory:") as connection:
        connection.executescript(outcome.stdout)
        names = connection.execute("SELECT name FROM sqlite_master WHERE type != 'index'")
        assert {name for (name,) in names} == {*TABLES, *VIEWS}


def test_an_exported_database_answers_the_same(ungil: Run, trace: str, tmp_path: Path) -> None:
    assert ungil("export", trace, "--format", "sqlite", "-o", "out.sqlite").returncode == 0
    query = "SELECT count(*) AS n, sum(waited_ns) AS ns FROM holds"
    with sqlite3.connect(tmp_path / "out.sqlite") as connection:
        row = connection.execute(query).fetchone()
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert asked(ungil, trace, query) == [{"n": row[0], "ns": row[1]}]


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("SELECT * FROM nowhere", "no such table: nowhere; the tables are processes, threads"),
        ("SELEC", "syntax error"),
        ("DELETE FROM holds", "readonly database"),
        ("SELECT 1; SELECT 2", "--sql: give one statement; the tables are processes"),
        ("", "give a SELECT"),
        ("ATTACH DATABASE 'other.db' AS other", "only the trace can be read"),
        ("VACUUM INTO 'other.db'", "only the trace can be read"),
    ],
)
def test_a_wrong_question_is_one_sentence(
    ungil: Run, trace: str, tmp_path: Path, query: str, said: str
) -> None:
    outcome = ungil("report", trace, "--sql", query)
    assert (outcome.returncode, outcome.stdout) == (2, "")
    assert said in outcome.stderr
    assert len(outcome.stderr.splitlines()) == 1
    assert not list(tmp_path.iterdir())


def test_json_has_every_column_and_no_number_that_json_lacks(ungil: Run, trace: str) -> None:
    assert asked(ungil, trace, "SELECT 1e999 AS a, -1e999 AS b, 1.5 AS c") == [
        {"a": None, "b": None, "c": 1.5}
    ]
    query = "SELECT 1 AS one, 2 AS one"
    outcome = ungil("report", trace, "--json", "--sql", query)
    assert (outcome.returncode, outcome.stdout) == (2, "")
    assert "two columns are called 'one'" in outcome.stderr
    assert ungil("report", trace, "--sql", query).stdout.split() == ["one", "one", "1", "2"]


def test_a_view_has_all_that_its_table_says_of_a_hold_or_a_wait(ungil: Run, trace: str) -> None:
    for table in ("holds", "waits"):
        (own,) = asked(ungil, trace, f"SELECT * FROM {table} LIMIT 1")
        (named,) = asked(ungil, trace, f"SELECT * FROM named_{table} LIMIT 1")
        assert {it for it in own if not it.endswith("_id")} <= named.keys()


def test_an_answer_that_cannot_be_written_is_no_fault_of_the_trace(ungil: Run, trace: str) -> None:
    with Path("/dev/full").open("w") as full:
        outcome = ungil(
            "report",
            trace,
            "--sql",
            "SELECT * FROM holds",
            capture_output=False,
            stdout=full,
            stderr=subprocess.PIPE,
        )
    said = "ungil: the output is incomplete: no space left on device\n"
    assert (outcome.returncode, outcome.stderr) == (1, said)


def test_a_name_that_the_encoding_lacks_is_printed_as_well_as_it_can_be(
    ungil: Run, trace: str, environment: dict[str, str]
) -> None:
    ascii_only = environment | {"PYTHONIOENCODING": "ascii"}
    outcome = ungil("report", trace, "--sql", "SELECT char(233, 109) AS name", env=ascii_only)
    assert (outcome.returncode, outcome.stderr) == (0, "")
    assert outcome.stdout.split() == ["name", "?m"]
