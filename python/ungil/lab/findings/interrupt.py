"""interrupt: how long Ctrl-C takes, if it arrives."""

from __future__ import annotations

from ungil.lab.chart import Ranked, Row, Rows
from ungil.lab.experiments.interrupt import WHERE, taken_s
from ungil.lab.findings import Found
from ungil.lab.findings.words import newest, pair, row
from ungil.lab.published import DEAF
from ungil.lab.results import Results
from ungil.lab.units import NEVER, SECONDS

POLICY, JOIN = "interactive", "join"


def found(results: Results) -> Found:
    """From Ctrl-C to KeyboardInterrupt, the main thread in join()."""
    pythons = results.pythons()
    python = newest(
        pythons,
        lambda it: taken_s(results, it, "stock", JOIN),
        lambda it: taken_s(results, it, POLICY, JOIN),
    )
    now = taken_s(results, python, "stock", JOIN)
    ungil = taken_s(results, python, POLICY, JOIN)
    others = (it for it in pythons if it != python)
    deaf = [it for it in others if taken_s(results, it, "stock", JOIN) == NEVER]
    return Found(
        _title(deaf, python, now, ungil),
        "from Ctrl-C to KeyboardInterrupt, the main thread in join()",
        SECONDS,
        "log",
        [
            *row("then: 2009", NEVER, "published"),
            *row(f"now: {python}", now, "stock"),
            *row(f"ungil {POLICY}", ungil, "ungil"),
        ],
        [
            Ranked(
                "From Ctrl-C to KeyboardInterrupt, by where the main thread is",
                "Never: it came only when the computing threads had ended by themselves.",
                [_panel(results, where) for where in WHERE],
                SECONDS,
                "log",
            )
        ],
    )


def _title(deaf: list[str], python: str, now: float | None, ungil: float | None) -> str:
    said = f"Ctrl-C never arrived on {deaf[-1]}" if deaf else "Ctrl-C never arrived in 2009"
    if now is None:
        return said
    said += f"; it {_takes(now)} on {python}"
    if ungil is None:
        return said
    both_arrive = NEVER not in (now, ungil)
    return f"{said} and {SECONDS(ungil) if both_arrive else _takes(ungil)} under ungil"


def _takes(value_s: float) -> str:
    return "never arrives" if value_s == NEVER else f"takes {SECONDS(value_s)}"


def _panel(results: Results, where: str) -> Rows:
    rows: list[Row] = row("Beazley 2009", NEVER, "published") if where in DEAF else []
    for python in results.pythons():
        stock, ungil = (taken_s(results, python, it, where) for it in ("stock", POLICY))
        rows += pair(python, stock, ungil)
    name = WHERE[where]
    return Rows(name if where == "compute" else f"in {name}", rows)
