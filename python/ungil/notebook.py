"""`%gil` and `%%gil` in IPython and notebooks: what the GIL cost a line or a cell.

%load_ext ungil

%%gil
with ThreadPoolExecutor(4) as pool:
    list(pool.map(work, items))
"""

import ast
import time
from dataclasses import dataclass, replace
from html import escape
from threading import get_ident
from typing import Any

from ungil import gil
from ungil.formatting import duration

_FIELDS = ("waits", "waited_ns", "holds", "held_ns", "forced")
# Threads of the kernel's own, which every cell has, are told only if they did something.
_WORTH_TELLING_NS = 100_000


@dataclass(frozen=True, slots=True)
class Row:
    """What one thread did with the GIL in a cell."""

    name: str
    waits: int
    waited_ns: int
    holds: int
    held_ns: int
    forced: int


@dataclass(frozen=True, slots=True)
class CellCost:
    """What the GIL cost a cell; a notebook shows it as a table, a terminal as text."""

    wall_ns: int
    """how long the cell took"""
    cell: Row
    """what the thread did that ran the cell"""
    others: tuple[Row, ...]
    """what other threads did meanwhile, those that held the GIL longest first"""

    @property
    def sentences(self) -> list[str]:
        """What it means: how long the cell waited, and who held the GIL meanwhile."""
        cell = self.cell
        said = [
            f"The cell took {_time(self.wall_ns)}, held the GIL {_time(cell.held_ns)} and "
            f"waited {_time(cell.waited_ns)} for it, in {cell.waits} waits."
        ]
        holders = [f"{it.name} {_time(it.held_ns)}" for it in self.others if it.held_ns]
        if cell.waited_ns and holders:
            said.append(
                f"Others held it for {', '.join(holders)}. Counters do not tell which of them a "
                "wait was for: `ungil trace` does."
            )
        return said

    def __repr__(self) -> str:
        """Plain text, for a terminal."""
        lines = [*self.sentences, ""]
        table = [_HEAD, *(_cells(row) for row in (self.cell, *self.others))]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        for name, *numbers in table:
            right = (text.rjust(width) for text, width in zip(numbers, widths[1:], strict=True))
            lines.append("  ".join([name.ljust(widths[0]), *right]).rstrip())
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """A table, for a notebook."""
        head = "".join(f"<th>{text}</th>" for text in _HEAD)
        rows = "".join(
            "<tr>" + "".join(f"<td>{escape(text)}</td>" for text in _cells(row)) + "</tr>"
            for row in (self.cell, *self.others)
        )
        said = "".join(f"<p>{escape(sentence)}</p>" for sentence in self.sentences)
        return f"{said}<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


_HEAD = ["thread", "waits", "waited", "held", "forced releases"]


def _time(ns: int) -> str:
    return duration(ns / 1e9)


def _cells(row: Row) -> list[str]:
    numbers = (_time(row.waited_ns), _time(row.held_ns), str(row.forced))
    return [row.name, str(row.waits), *numbers]


class Measuring:
    """From the beginning of a cell to its end."""

    def __init__(self) -> None:
        """Begin. Raises HookError where the GIL cannot be counted."""
        gil.install()
        self._me = get_ident()
        self._threads = gil.stats()
        self._process = gil.process_stats()
        self._began_ns = time.monotonic_ns()

    def end(self) -> CellCost:
        """What it cost until now."""
        wall_ns = time.monotonic_ns() - self._began_ns
        threads, process = gil.stats(), gil.process_stats()
        rows: dict[int, Row] = {}
        for ident, after in threads.items():
            before = self._threads.get(ident)
            # Another thread may have the identifier of one that has ended.
            same = before if before is not None and before.tid == after.tid else None
            rows[ident] = _row(after.name, same, after)
        cell = rows.pop(self._me)
        # It includes what ungil itself does before and after the cell.
        cell = replace(cell, held_ns=min(cell.held_ns, wall_ns))
        running = [it for it in rows.values() if it.held_ns + it.waited_ns > _WORTH_TELLING_NS]
        all_of_it = _row("", self._process, process)
        told = [_values(row) for row in (cell, *rows.values())]
        rest = (whole - sum(of) for whole, *of in zip(_values(all_of_it), *told, strict=True))
        ended = Row("threads that have ended", *(max(0, number) for number in rest))
        # Two readings are not one moment: what ended meanwhile is less than nothing.
        if ended.held_ns + ended.waited_ns > _WORTH_TELLING_NS:
            running.append(ended)
        others = tuple(sorted(running, key=lambda row: -row.held_ns))
        return CellCost(wall_ns, cell, others)


def _values(row: Row) -> tuple[int, ...]:
    return tuple(getattr(row, field) for field in _FIELDS)


def _row(name: str, before: Any, after: Any) -> Row:
    """How much the counters of a thread, or of the process, have grown."""
    grown = (getattr(after, it) - (getattr(before, it) if before else 0) for it in _FIELDS)
    return Row(name, *grown)


def register(shell: Any) -> None:
    """Make the magics known to an IPython shell."""
    shell.register_magic_function(_Magic(shell), "line_cell", "gil")


def _display(cost: CellCost) -> None:
    from IPython import display

    module: Any = display
    module.display(cost)


class _Magic:
    """Runs a line or a cell, and shows what it cost; also if it raises."""

    __name__ = "gil"
    # IPython would replace what stands in braces.
    _ipython_magic_no_var_expand = True

    def __init__(self, shell: Any) -> None:
        self._shell = shell

    def __call__(self, line: str, cell: str | None = None) -> Any:
        """The value of the last expression, which IPython shows as that of the cell."""
        source = line if cell is None else cell
        statements, last = self._compiled(source)
        namespace = self._shell.user_ns
        measuring = Measuring()
        try:
            exec(statements, namespace)
            return None if last is None else eval(last, namespace)
        finally:
            _display(measuring.end())

    def _compiled(self, source: str) -> tuple[Any, Any]:
        """The statements of a cell, and its last one apart if that is an expression."""
        shell = self._shell
        tree = shell.transform_ast(shell.compile.ast_parse(shell.transform_cell(source)))
        last = None
        if tree.body and isinstance(tree.body[-1], ast.Expr):
            last = shell.compile(ast.Expression(tree.body.pop().value), "<gil>", "eval")
        return shell.compile(tree, "<gil>", "exec"), last
