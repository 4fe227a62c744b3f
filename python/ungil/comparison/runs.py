"""A trace as one run of a side: what it was recorded with, and what was measured."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import cast

from ungil._native import measure_trace
from ungil.comparison.measures import Finding, Measures, Process, Stretch

PARTS = 10
"""Into how many parts a run is cut, if that gives each `LEAST_PART_MS`."""
LEAST_PART_MS = 500.0


@dataclass(frozen=True)
class Run:
    """One trace."""

    file: str
    measures: Measures

    @property
    def whole(self) -> Stretch:
        """All of it."""
        return self.measures["whole"]

    @property
    def parts(self) -> list[Stretch]:
        """Its parts of equal length."""
        return self.measures["parts"]

    @property
    def run_s(self) -> float:
        """How long it was, without what came before any process had a second thread."""
        return self.whole["end_s"] - self.whole["start_s"]

    @property
    def duration_s(self) -> float:
        """From the start of the first process to the last word."""
        return self.measures["report"]["duration_s"]

    @property
    def lost_events(self) -> int:
        """Events that found no room in a ring."""
        return self.measures["report"]["lost_events"]

    @property
    def notes(self) -> list[str]:
        """What the recorder has to say."""
        return self.measures["report"]["notes"]

    @cached_property
    def first_process(self) -> dict[str, object]:
        """The process of the report that held and waited most, {} without any."""
        processes = self.measures["report"]["processes"]
        return processes[0] if processes else {}

    @property
    def python(self) -> str:
        """The version of Python, "" if no process had one."""
        return self.measures["report"]["python"]

    @property
    def policy(self) -> str | None:
        """The policy of the first process; None if nobody waited."""
        return cast("str | None", self.first_process.get("policy"))

    @property
    def interval_ms(self) -> float | None:
        """Its switch interval or quantum; None if nobody waited."""
        return cast("float | None", self.first_process.get("switch_interval_ms"))

    @property
    def findings(self) -> list[Finding]:
        """What is wrong in it."""
        found = cast("list[Finding]", self.measures["report"]["findings"])
        return [one for one in found if one["kind"] not in {"none", "not-recorded"}]

    @property
    def processes(self) -> list[Process]:
        """All of its commands."""
        return self.whole["processes"]

    def thread_names(self, pid: int) -> dict[int, str]:
        """The names of the threads of a process, by tid."""
        processes = self.measures["report"]["processes"]
        return {
            thread["tid"]: thread["name"]
            for process in processes
            if process["pid"] == pid
            for gil in process["gils"]
            for thread in gil["threads"]
        }

    def pattern(self, pid: int) -> str:
        """The pattern of a process's command line, "" if it had no GIL."""
        found = (process["pattern"] for process in self.processes if pid in process["pids"])
        return next(found, "")


def read_run(file: str, blame_after_ms: float) -> Run:
    """The run that a trace tells of. Raises what `_native.read_trace` does."""
    text = measure_trace(file, blame_after_ms, PARTS, LEAST_PART_MS)
    return Run(file, cast("Measures", json.loads(text)))
