"""`ungil fanout`: functions that raise what is no Exception have failed, as with all others."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_fanout.hosts import Run, jsons, write_hosts

TASKS = "tasks_that_leave.py"

WAYS = [
    ["tasks:leaves"],
    ["tasks:leaves_async", "--mode", "asyncio"],
    ["tasks:leaves_async", "--mode", "lean"],
    ["tasks:leaves", "--mode", "green"],
    ["tasks:leaves", "--engine", "processes:2"],
    ["tasks:leaves_async", "--engine", "processes:2"],
]


@pytest.mark.parametrize("words", WAYS, ids=" ".join)
def test_a_host_whose_function_leaves_has_failed(
    ungil: Run, folder: Path, words: list[str]
) -> None:
    options = ["--retries", "1", "--backoff", "0", "--journal", "done"]
    outcome = ungil("fanout", "--hosts", "hosts", "--json", *options, *words)
    assert outcome.returncode == 1
    failed = [it for it in jsons(outcome.stdout) if not it["ok"]]
    expected = ("sw2", "SystemExit", "SystemExit: boom", 2)
    assert [(it["host"], it["kind"], it["error"], it["attempts"]) for it in failed] == [expected]
    assert "3 hosts in " in outcome.stderr
    assert "2 ok, 1 failed (1 SystemExit)" in outcome.stderr
    written = [json.loads(line) for line in (folder / "done").read_text().splitlines()[1:]]
    assert [it["error"] for it in written if not it["ok"]] == ["SystemExit: boom"]


@pytest.mark.parametrize("form", ["--tag", "--gather", "--table"])
def test_every_form_tells_what_it_has_raised(ungil: Run, form: str) -> None:
    outcome = ungil("fanout", "--hosts", "hosts", form, "tasks:leaves")
    assert outcome.returncode == 1
    told = outcome.stdout + outcome.stderr
    assert "SystemExit" in told
    assert "boom" in told
    assert "cut off" not in told


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["tasks:cancelled"], "CancelledError: gone"),
        (["tasks:of_a_task"], "SystemExit: 0"),
        (["tasks:closes"], "GeneratorExit: of its own"),
        (["tasks:raises_its_own"], "NotEvenAnError: why"),
        (["tasks:interrupts"], "KeyboardInterrupt: not the user"),
        (["tasks:is_late", "--mode", "green"], "Timeout: 0.001 seconds"),
        (["tasks:ends_itself", "--mode", "green"], "GreenletExit: enough"),
    ],
)
def test_whatever_a_function_raises_is_its_failure(
    ungil: Run, words: list[str], error: str
) -> None:
    outcome = ungil("fanout", "--hosts", "hosts", "--json", *words)
    assert outcome.returncode == 1
    assert [(it["host"], it["error"]) for it in jsons(outcome.stdout)] == [
        (host, error) for host in ("sw1", "sw2", "sw3")
    ]
    assert "0 ok, 3 failed (3 " in outcome.stderr


def test_a_coroutine_that_raises_a_keyboard_interrupt_ends_all_and_that_is_no_success(
    ungil: Run, folder: Path
) -> None:
    write_hosts(folder, 1)
    outcome = ungil("fanout", "--hosts", "hosts", "tasks:interrupts_async")
    assert outcome.returncode == 130
    assert "sw1: cut off: still running when the fan-out stopped" in outcome.stderr
