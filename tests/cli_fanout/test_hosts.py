"""`ungil fanout`: files of hosts."""

from __future__ import annotations

import codecs
import json
import subprocess
from pathlib import Path

import pytest
from cli_fanout.hosts import Run, jsons
from terminals import Start

TASKS = "tasks_to_run.py"


def test_a_file_may_have_comments_blank_lines_crlf_and_a_mark(ungil: Run, folder: Path) -> None:
    text = "# all of them\r\n\r\nsw1\r\n  sw2  # the second\r\n\t\r\nsw3"
    (folder / "hosts").write_bytes(codecs.BOM_UTF8 + text.encode())
    outcome = ungil("fanout", "--hosts", "hosts", "--json", "tasks:length")
    assert [told["host"] for told in jsons(outcome.stdout)] == ["sw1", "sw2", "sw3"]
    assert outcome.returncode == 0


def test_lines_that_are_no_hosts_fail_and_the_others_run(ungil: Run, folder: Path) -> None:
    bad = [b"two words", b"-oProxyCommand=x", b"caf\xe9", b"nul\0", b"x" * 70_000, b"sw1"]
    (folder / "hosts").write_bytes(b"sw1\n" + b"\n".join(bad) + b"\nsw2\n")
    outcome = ungil("fanout", "--hosts", "hosts", "--retries", "3", "--json", "tasks:length")
    assert outcome.returncode == 1
    told = jsons(outcome.stdout)
    assert {one["host"]: one.get("error") for one in told} == {
        "sw1": None,
        "sw2": None,
        "hosts, line 2": "2 words, but a line is one host; for several fields, "
        "use CSV or JSON lines",
        "hosts, line 3": "'-oProxyCommand=x' begins with a dash",
        "hosts, line 4": "not UTF-8 (byte 0xe9 at 4)",
        "hosts, line 5": r"'nul\x00' has characters that cannot be printed",
        "hosts, line 6": "longer than 65,536 bytes",
    }
    assert all(one["attempts"] == 1 and one["kind"] == "bad line" for one in told if not one["ok"])
    assert "ungil: hosts: 1 repeated host left out, first line 7: sw1\n" in outcome.stderr
    assert "2 ok, 5 failed (5 bad line)" in outcome.stderr


def test_csv_names_its_fields(ungil: Run, folder: Path) -> None:
    rows = 'name,host\nCore, sw1\n"two\nlines",sw2\nx\n\n"open,sw3\n'
    (folder / "hosts.csv").write_text(rows)
    outcome = ungil("fanout", "--hosts", "hosts.csv", "--json", "--", "echo", "{name} {host}")
    told = {one["host"]: one for one in jsons(outcome.stdout)}
    assert told["sw1"]["value"]["stdout"] == "Core sw1\n"
    assert told["sw2"]["value"]["stdout"] == "two\nlines sw2\n"
    assert told["sw2"]["item"] == {"name": "two\nlines", "host": "sw2"}
    assert told["hosts.csv, line 5"]["error"] == "1 field, but the first line names 2"
    assert told["hosts.csv, line 7"]["error"].startswith("not CSV (")
    outcome = ungil("fanout", "--hosts", "hosts.csv", "--json", "tasks:fields")
    assert {one["host"]: one for one in jsons(outcome.stdout)}["sw1"]["value"] == [
        ["host", "sw1"],
        ["name", "Core"],
    ]


def test_json_lines_have_a_host_each(ungil: Run) -> None:
    text = (
        '{"host": "sw1", "port": 22, "up": true}\n"sw2"\n[1]\n{"host": 3}\n{"host":\n{"hst": "x"}\n'
    )
    outcome = ungil("fanout", "--json", "--", "echo", "{host} {port}", input=text)
    told = {one["host"]: one for one in jsons(outcome.stdout)}
    assert told["sw1"]["value"]["stdout"] == "sw1 22\n"
    assert told["sw1"]["item"] == {"host": "sw1", "port": 22, "up": True}
    assert told["sw2"]["error"] == "no field 'port', only host"
    neither = 'neither a string nor an object with the field "host"'
    assert told["the standard input, line 3"]["error"] == neither
    no_string = 'the field "host" is 3, not a string'
    assert told["the standard input, line 4"]["error"] == no_string
    assert told["the standard input, line 5"]["error"].startswith("not JSON (")
    assert told["the standard input, line 6"]["error"] == 'an object without the field "host"'


def test_the_same_host_with_other_fields_is_another(ungil: Run, folder: Path) -> None:
    (folder / "hosts.csv").write_text("host,port\nsw1,22\nsw1,23\nsw1,22\n")
    outcome = ungil("fanout", "--hosts", "hosts.csv", "--json", "--", "echo", "{port}")
    ports = [one["value"]["stdout"] for one in jsons(outcome.stdout)]
    assert sorted(ports) == ["22\n", "23\n"]
    assert "1 repeated host left out, first line 4: sw1" in outcome.stderr


def test_hosts_are_read_as_they_are_needed(start: Start) -> None:
    process = start("fanout", "--json", "--limit", "1", "--", "echo", "{}", stdin=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    for name in ("sw1", "sw2", "sw3"):
        process.stdin.write(f"{name}\n")
        process.stdin.flush()
    process.stdin.close()
    assert [json.loads(line)["host"] for line in process.stdout] == ["sw1", "sw2", "sw3"]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
def test_a_file_in_another_encoding_is_told_which(ungil: Run, folder: Path, encoding: str) -> None:
    (folder / "hosts").write_text("sw1\nsw2\n", encoding=encoding)
    outcome = ungil("fanout", "--hosts", "hosts", "tasks:length")
    name = encoding.upper()
    assert (outcome.returncode, outcome.stdout, outcome.stderr) == (
        2,
        "",
        f"ungil: hosts is {name}, but hosts must be UTF-8: convert it with iconv -f {name} -t "
        "UTF-8\n",
    )


def test_an_empty_file_is_told_and_no_failure(ungil: Run, folder: Path) -> None:
    (folder / "hosts").write_text("# nothing\n")
    outcome = ungil("fanout", "--hosts", "hosts", "tasks:length")
    assert (outcome.returncode, outcome.stdout) == (0, "")
    assert outcome.stderr == "ungil: hosts has no hosts\n"
    outcome = ungil("fanout", "tasks:length")
    assert (outcome.returncode, outcome.stderr) == (2, "ungil: the standard input has no hosts\n")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("hosts.json", '["sw1",\n "sw2"]\n'),
        ("hosts.json", '[\n  {"host": "sw1"}\n]\n'),
        ("hosts.jsonl", '["sw1", "sw2"]\n'),
        ("inventory", "[switches]\nsw1\n"),
    ],
)
def test_what_begins_with_a_bracket_is_no_file_of_hosts(
    ungil: Run, folder: Path, name: str, text: str
) -> None:
    (folder / name).write_text(text)
    outcome = ungil("fanout", "--hosts", name, "tasks:length")
    assert (outcome.returncode, outcome.stdout, outcome.stderr) == (
        2,
        "",
        f"ungil: {name} begins with '[', which no host does; write one host per line, CSV or JSON "
        f"lines (of a JSON array, jq -c '.[]' {name} makes these)\n",
    )


def test_an_address_in_brackets_is_a_host_and_a_section_is_not(ungil: Run) -> None:
    text = "[2001:db8::1]:8080\n[::1]\n[switches]\n"
    outcome = ungil("fanout", "--json", "--", "echo", "{}", input=text)
    assert outcome.returncode == 1
    told = {it["host"]: it for it in jsons(outcome.stdout)}
    assert told["[::1]"]["ok"]
    assert told["[2001:db8::1]:8080"]["ok"]
    assert told["the standard input, line 3"]["error"] == "'[switches]' begins with '['"


def test_two_columns_of_one_name_are_refused(ungil: Run, folder: Path) -> None:
    (folder / "hosts.csv").write_text("host,ip, host\nsw1,1,sw2\n")
    outcome = ungil("fanout", "--hosts", "hosts.csv", "tasks:fields")
    assert (outcome.returncode, outcome.stdout, outcome.stderr) == (
        2,
        "",
        "ungil: the first line of hosts.csv names the field 'host' more than once; give each "
        "column a name of its own\n",
    )
