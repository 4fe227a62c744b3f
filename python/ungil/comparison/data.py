"""The comparison as JSON, schema 1: `docs/diff.md` describes it key by key."""

from __future__ import annotations

from typing import Any

from ungil.comparison.compared import Comparison, Row
from ungil.comparison.findings import ComparedFinding
from ungil.comparison.noise import Judged
from ungil.comparison.runs import Run
from ungil.comparison.words import answer

SCHEMA = 1


def data(comparison: Comparison) -> dict[str, Any]:
    """What `ungil diff --json` prints."""
    return {
        "schema": SCHEMA,
        "answer": answer(comparison),
        "verdict": comparison.total.waited.verdict,
        "worse": comparison.is_worse,
        "noise": "parts" if comparison.is_weak else "runs",
        "warnings": comparison.warnings,
        "before": [_run(run) for run in comparison.before],
        "after": [_run(run) for run in comparison.after],
        "total": _row(comparison.total),
        "commands": [_row(row) for row in comparison.commands],
        "gils": [_row(row) for row in comparison.gils],
        "groups": [_row(row) for row in comparison.groups],
        "findings": [_finding(finding) for finding in comparison.findings],
    }


def _run(run: Run) -> dict[str, Any]:
    return {
        "file": run.file,
        "python": run.python,
        "policy": run.policy,
        "switch_interval_ms": run.interval_ms,
        "duration_s": run.duration_s,
        "run_s": run.run_s,
        "lost_events": run.lost_events,
        "notes": run.notes,
    }


def _row(row: Row) -> dict[str, Any]:
    return {
        "command": row.which.command,
        "gil": row.which.gil,
        "pattern": row.which.group,
        "name": row.name,
        "threads_before": row.threads[0],
        "threads_after": row.threads[1],
        "status": row.status,
        "metrics": {key: _judged(judged) for key, judged in row.metrics.items()},
    }


def _judged(judged: Judged) -> dict[str, Any]:
    return {
        "unit": judged.metric.unit,
        "better": judged.metric.better,
        "before": judged.before,
        "after": judged.after,
        "before_median": judged.before_median,
        "after_median": judged.after_median,
        "difference": judged.difference,
        "noise": judged.noise,
        "noise_of": judged.basis,
        "verdict": judged.verdict,
    }


def _finding(finding: ComparedFinding) -> dict[str, Any]:
    subject = finding.subject
    return {
        "kind": subject.kind,
        "command": subject.command,
        "gil": subject.gil,
        "thread": subject.thread,
        "function": subject.function,
        "now": None
        if finding.now is None
        else {"command": finding.now.command, "thread": finding.now.thread},
        "status": finding.status,
        "runs_before": finding.found[0],
        "runs_after": finding.found[1],
        "text": finding.text,
        "cost": _judged(finding.cost),
    }
