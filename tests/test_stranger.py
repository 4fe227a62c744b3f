"""What `make stranger` tells of a command, and which commands it does not type."""

from __future__ import annotations

from pathlib import Path

import pytest
import reader
from documented import Command, everything_typed
from platforms.systems import Unmade
from stranger import DOCUMENTS, PROJECT, Done, chosen, line

SHOWN = Command(7, "echo one  # a comment", ["one"], [], 0)


def test_a_command_is_right_if_it_ended_and_printed_as_its_document_says() -> None:
    right = Done("docs/tutorials/cache.md", SHOWN, 0, 0.26, "one\n")
    assert right.is_right
    assert line(right) == ("cache:7", "echo one", "0.3 s", "0", "as shown")


def test_another_status_and_other_output_are_wrong_and_told() -> None:
    failed = Done("README.md", SHOWN, 3, 0, "one\n")
    other = Done("README.md", SHOWN, 0, 0, "two\n", lacking=["one"])
    assert (failed.is_right, line(failed)[-1]) == (False, "exit code 0 was expected")
    assert (other.is_right, line(other)[-1]) == (False, "other output: one")


def test_what_is_not_typed_has_a_reason_and_most_is_typed() -> None:
    typed = [
        it.typed for name in DOCUMENTS for it in everything_typed((PROJECT / name).read_text())
    ]
    left_out = [it for it in typed if reader.reason(it)]
    assert all(it.startswith(("make ", "pip install .", "ungil fanout")) for it in left_out)
    assert len(left_out) < len(typed) / 10


def test_the_tutorials_are_those_that_are_there() -> None:
    there = {it.stem for it in (PROJECT / "docs/tutorials").glob("*.md")}
    assert set(reader.TUTORIALS) == there
    assert [Path(it).stem for it in chosen("cach")] == ["README", "cache"]


@pytest.mark.parametrize(("pattern", "said"), [("(", "is no pattern"), ("x", "there are convoy,")])
def test_a_wrong_pattern_is_one_sentence(pattern: str, said: str) -> None:
    with pytest.raises(Unmade, match=said):
        chosen(pattern)
