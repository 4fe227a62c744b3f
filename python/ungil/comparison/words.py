"""The sentences and numbers of a comparison, for the screen and the page alike."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from ungil.comparison.compared import Comparison, Row
from ungil.comparison.findings import ComparedFinding
from ungil.comparison.little import Little, more_calls
from ungil.comparison.metrics import FOR_LOCKS, Metric
from ungil.comparison.noise import LEAST_PARTS, Judged, Verdict
from ungil.comparison.runs import PARTS, Run
from ungil.formatting import digits, duration, plural, printable
from ungil.report.names import shortened

SECONDS = 10.0
"""Times are told for so long a run, whatever its length."""

NAME = 40
"""A longer name is cut in a sentence."""

VERDICTS: dict[Verdict, str] = {
    "better": "better",
    "worse": "worse",
    "more": "more",
    "less": "less",
    "within noise": "within noise",
    "unknown": "cannot be told",
}


def answer(comparison: Comparison) -> str:
    """What changed in all, and whether that is more than the noise: one sentence."""
    waited = comparison.total.waited
    if waited.before_median is None or waited.after_median is None:
        return "nothing can be compared: one side has no time in which a GIL was used"
    said = _waits(comparison, waited.before_median, waited.after_median)
    locks = _for_locks(comparison.total)
    return "; ".join([said, *([locks] if locks else []), *comparison.elsewhere])


def _for_locks(total: Row) -> str:
    """Whether threads waited longer, or less, for locks of the program; "" if not."""
    waited = total.metrics[FOR_LOCKS.key]
    if waited.verdict not in {"better", "worse"}:
        return ""
    before, after = (_seconds(it or 0.0) for it in (waited.before_median, waited.after_median))
    return f"threads waited {before} for locks in 10 s before, {after} after"


def _waits(comparison: Comparison, before: float, after: float) -> str:
    waited, calls = comparison.total.waited, _calls(comparison)
    if comparison.little is not None:
        return f"{_hardly(comparison.little)}{f'; {calls}' if calls else ''}"
    said = f"threads waited {_seconds(before)} in 10 s before, {_seconds(after)} after"
    made = f"; {calls}" if calls else ""
    changed = _changed(comparison)
    # After the calls it is one more thing that changed, not the exception.
    but = f"{'; ' if made else ', but '}{changed}" if changed else ""
    match waited.verdict:
        case "within noise":
            return f"{said}: no change beyond the noise{made}{but}"
        case "unknown":
            return (
                f"{said}: these runs are too few or too short to say whether that is more than the "
                f"noise{made}{but}; record more of each side"
            )
        case "better" if after <= 0:
            said += ": none is left (more than the noise)"
        case "worse" if before <= 0:
            return f"{said}: new (more than the noise)"
        case "more" | "less":
            said += f": {changed_by(waited)}, but no longer for each blocking call"
        case _:
            said += f": {changed_by(waited)} (more than the noise)"
    found = _worse_found(comparison) if waited.verdict != "worse" else ""
    return said + made + (f", but {found}" if found else "")


def _hardly(little: Little) -> str:
    if not little.before and not little.after:
        return "threads did not wait for the GIL, before or after"
    before, after = (_percent(it) for it in (little.before, little.after))
    return f"threads hardly waited for the GIL: {before} of their time before, {after} after"


def _percent(share: float) -> str:
    if 0 < share < 0.001:
        return "less than 0.1 %"
    return f"{100 * share:.1g} %"


def _calls(comparison: Comparison) -> str:
    """`they made 3.5 times more blocking calls after`, and how long they waited for each; or ""."""
    metrics = comparison.total.metrics
    more = more_calls(metrics)
    if more is None:
        return ""
    said = f"they made {digits(more, 2)} times more blocking calls"
    if comparison.little is not None:
        return f"{said} after"
    waited, calls = comparison.total.waited, metrics["blocking_calls"]
    each = [
        duration((wait or 0.0) / call) if call else "0"
        for wait, call in (
            (waited.before_median, calls.before_median),
            (waited.after_median, calls.after_median),
        )
    ]
    return f"{said}, and waited {each[0]} for each before, {each[1]} after"


def _changed(comparison: Comparison) -> str:
    """What did change where the sum of all waits does not tell: `heartbeat waited ...`; or ""."""
    both = (row for row in comparison.groups if row.status == "both" and row.waited.changed)
    # Who does not wait at all on one side has no ratio, and may be known by another name there.
    changed = [row for row in both if changed_by(row.waited) and not _is_for_calls(row)]
    if changed and not comparison.is_worse:
        # They wait most where it is worst: that is what somebody noticed.
        most = max(changed, key=lambda row: abs(row.waited.difference or 0.0))
        name = shortened(printable(most.name) or "(no name)", NAME) + at_its_end(most)
        return f"{name} waited {changed_by(most.waited)}"
    return _worse_found(comparison) or _finding_changed(
        comparison, [it for it in comparison.findings if it.cost.changed]
    )


def _is_for_calls(row: Row) -> bool:
    """Whether its wait only changed with the number of its calls, which is nothing by itself."""
    return row.waited.verdict in ("more", "less") and more_calls(row.metrics) is not None


def _worse_found(comparison: Comparison) -> str:
    """The finding for which a comparison is worse, though the waits in all are not."""
    worse = [it for it in comparison.findings if it.cost.verdict == "worse"]
    return _finding_changed(comparison, worse)


def _finding_changed(comparison: Comparison, found: Sequence[ComparedFinding]) -> str:
    """`the finding convoy is gone`: the costliest of those that were `found` changed."""
    if not found:
        return ""
    first = found[0]
    said = f"the finding {first.subject.kind}"
    other = {"gone": "new", "new": "gone"}.get(first.status)
    of_kind = (it for it in comparison.findings if it.subject.kind == first.subject.kind)
    moved = next((it for it in of_kind if it.status == other), None)
    if moved is None:
        return f"{said} {_cost_changed(first)}"
    # Whoever fixed one of them has not got rid of the kind.
    gone, new = (moved, first) if first.status == "new" else (first, moved)
    return f"{said} is gone {_where(gone)} and new {_where(new)}"


def _where(finding: ComparedFinding) -> str:
    """Where it was found: `in parse (parser.py)`."""
    subject = finding.subject
    if subject.function is not None:
        return f"in {printable(subject.function)}"
    who = subject.thread
    return "elsewhere" if who is None else f"for {shortened(printable(who), NAME)}"


def _cost_changed(finding: ComparedFinding) -> str:
    """`is gone`, `is new`, `costs 29 times less`."""
    by = changed_by(finding.cost)
    return f"is {finding.status}" if finding.status != "both" or not by else f"costs {by}"


def now_for(finding: ComparedFinding) -> str:
    """Whom it is about after, if that has another name: `the same, now for pool-*`; or ""."""
    was, now = finding.subject, finding.now
    if now is None:
        return ""
    who = now.thread if now.thread != was.thread and now.thread is not None else now.command
    said = f"now for {shortened(printable(who or '(no name)'), NAME)}"
    return said if finding.cost.changed else f"the same, {said}"


def matter(findings: Sequence[ComparedFinding]) -> list[ComparedFinding]:
    """Those that most runs of a side have: the others cost nothing in the median."""
    return [it for it in findings if it.cost.before_median or it.cost.after_median]


def _seconds(share: float) -> str:
    seconds = share * SECONDS
    if 0 < seconds < 0.1:
        return f"{digits(1e3 * seconds, 2)} ms"
    return f"{digits(seconds, 2)} s" if seconds else "0 s"


def changed_by(judged: Judged) -> str:
    """`7.8 times less`, `12 % more`; "" where that means nothing."""
    before, after = judged.before_median, judged.after_median
    if before is None or after is None or before <= 0 or after <= 0:
        return ""
    ratio, word = (before / after, "less") if after < before else (after / before, "more")
    if ratio >= 2:
        return f"{digits(ratio, 2)} times {word}"
    percent = 100 * abs(after - before) / before
    return f"{percent:.0f} % {word}" if percent >= 0.5 else "the same"


def amount(metric: Metric, value: float | None) -> str:
    """A number with its unit: times are told for ten seconds of a run."""
    if value is None:
        return "-"
    match metric.unit:
        case "s/s":
            return duration(value * SECONDS)
        case "us":
            return duration(value / 1e6)
        case "1/s":
            return f"{digits(value) if value else '0'}/s"


def conditions(runs: Sequence[Run]) -> str:
    """With what a side was recorded."""
    lengths = sorted(run.duration_s for run in runs)
    length = duration(lengths[0])
    if duration(lengths[-1]) != length:
        length += f" to {duration(lengths[-1])}"
    facts = [f"{plural(len(runs), 'run')} of {length}"]
    facts += [f"Python {' and '.join(_all(run.python for run in runs))}"]
    facts += _all(_schedule(run) for run in runs)
    facts += [cpu] if (cpu := _cpu(runs)) else []
    lost = sum(run.lost_events for run in runs)
    facts += [f"{plural(lost, 'event')} lost"] if lost else []
    return f"{', '.join(facts)}: {' '.join(run.file for run in runs)}"


def _all(words: Iterable[str]) -> list[str]:
    return sorted({word for word in words if word})


def _schedule(run: Run) -> str:
    if run.interval_ms is None:
        return ""
    what = "switch interval" if run.policy in (None, "stock") else f"policy {run.policy}, quantum"
    return f"{what} {digits(run.interval_ms)} ms"


def _cpu(runs: Sequence[Run]) -> str:
    """The CPU work of the processes that ended, for the longer side may have done more."""
    works = [
        sum(
            group["cpu_s"]
            for process in run.processes
            for gil in process["gils"]
            for group in gil["groups"]
        )
        for run in runs
    ]
    least, most = duration(min(works)), duration(max(works))
    if max(works) <= 0:
        return ""
    return f"CPU {least}" if least == most else f"CPU {least} to {most}"


def noise_of(comparison: Comparison) -> str:
    """What the noise was estimated from."""
    if not comparison.is_weak:
        return (
            "noise: the largest difference between two runs of one side; the table shows the median"
            " of each side"
        )
    parts = min(len(run.parts) for run in (comparison.before[0], comparison.after[0]))
    if parts < LEAST_PARTS:
        return (
            "noise: unknown, because each side has one run, and a run is too short to be cut into"
            " parts; record several runs of each side"
        )
    if parts < PARTS:
        return (
            f"noise: how far most of the {parts} parts of each run are from the whole run;"
            " record several runs of each side to know more"
        )
    return (
        f"noise: how far most of {PARTS} equal parts of each run are from the whole run, which"
        " misses what differs from run to run; record several runs of each side to know more"
    )


def told_status(status: Literal["both", "gone", "new"]) -> str:
    """`gone`, `new`, or "" for what both sides have."""
    return "" if status == "both" else status


def at_its_end(row: Row) -> str:
    """How many threads a row is of, if they are several: ` (8 threads)`, ` (8, then 2 threads)`."""
    before, after = (round(number) for number in row.threads)
    if row.status != "both":
        before = after = max(before, after)
    if before == after:
        return f" ({before:,} threads)" if before > 1 else ""
    return f" ({before:,}, then {after:,} threads)"
