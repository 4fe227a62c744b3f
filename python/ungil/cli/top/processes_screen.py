"""The processes to choose from: those with a Python in them that this user may look into."""

from __future__ import annotations

import asyncio
import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, cast

from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.events import Resize
from textual.screen import Screen
from textual.widgets import DataTable, Footer, Static

from ungil._native import look_at_recorded, process_policy
from ungil.cli.proc import Process, is_python, processes
from ungil.cli.top import lines
from ungil.cli.top.threads_screen import ThreadsScreen
from ungil.cli.top.watched import Watched
from ungil.errors import Error
from ungil.formatting import printable, share

if TYPE_CHECKING:
    from ungil.cli.top.app import Top

EVERY_S = 2.0
COLUMNS = (("     pid", 8), (" cpu", 4), ("threads", 7), ("hook", 22))
# A cell has a space on both sides.
PADDING = 2
NARROWEST = 14


@dataclass(frozen=True)
class Candidate:
    """A process, how busy it is, and how one would get at it."""

    process: Process
    cpu: float | None
    state: str


class ProcessesScreen(Screen[None]):
    """A list; Enter looks at one."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "look", "Look at it", priority=True)]

    def __init__(self) -> None:
        super().__init__()
        self._before: dict[int, tuple[float, float]] = {}

    @property
    def top(self) -> Top:
        """The application."""
        return cast("Top", self.app)  # pyright: ignore[reportUnknownMemberType]

    def compose(self) -> ComposeResult:
        yield Static("ungil top  choose a process", id="title")
        yield Static("looking for processes ...", id="notice")
        yield DataTable[Text](cursor_type="row", id="processes")
        yield Footer(compact=True, show_command_palette=False)

    def on_mount(self) -> None:
        self._make_columns()
        self.query_one(DataTable).focus()
        self._list()

    def _make_columns(self) -> None:
        table = cast("DataTable[Text]", self.query_one(DataTable))
        table.clear(columns=True)
        rest = self.size.width - sum(width + PADDING for _, width in COLUMNS) - PADDING - 1
        for title, width in (*COLUMNS, ("command", max(NARROWEST, rest))):
            table.add_column(title, width=width)

    @work(exclusive=True)
    async def _list(self) -> None:
        while True:
            found = await asyncio.to_thread(self._candidates)
            if self.is_current:
                self._show(found)
            await asyncio.sleep(EVERY_S)

    def _candidates(self) -> list[Candidate]:
        found: list[Candidate] = []
        for it in processes():
            if it.pid == os.getpid() or os.geteuid() not in (0, it.uid) or not is_python(it.pid):
                continue
            now_s = time.monotonic()
            before = self._before.get(it.pid)
            self._before[it.pid] = (now_s, it.cpu_s)
            cpu = (it.cpu_s - before[1]) / (now_s - before[0]) if before else None
            found.append(Candidate(it, cpu, _state(it.pid)))
        return sorted(found, key=lambda it: (-(it.cpu or 0), -it.process.threads, it.process.pid))

    def _show(self, found: list[Candidate]) -> None:
        table = cast("DataTable[Text]", self.query_one(DataTable))
        cursor = (
            table.coordinate_to_cell_key(table.cursor_coordinate).row_key.value
            if table.row_count
            else None
        )
        with self.top.batch_update():
            table.clear()
            for it in found:
                cpu = "   ?" if it.cpu is None else share(it.cpu, 1).rjust(4)
                table.add_row(
                    Text(str(it.process.pid).rjust(8)),
                    Text(cpu),
                    Text(str(it.process.threads).rjust(7)),
                    Text(it.state, style="" if it.state.startswith("can") else "green"),
                    Text(printable(lines.command(it.process.command)), no_wrap=True),
                    key=str(it.process.pid),
                )
            pids = [str(it.process.pid) for it in found]
            if cursor in pids:
                table.move_cursor(row=pids.index(cursor), scroll=False)
        self.query_one("#notice", Static).update(
            Text(f"{len(found)} with a Python, of this user", style="dim")
            if os.geteuid()
            else Text(f"{len(found)} with a Python, of all users", style="dim")
        )

    def action_look(self) -> None:
        """Attach to the one under the cursor."""
        table = cast("DataTable[Text]", self.query_one(DataTable))
        if table.row_count:
            key = table.coordinate_to_cell_key(table.cursor_coordinate).row_key.value
            self._begin(int(key or 0))

    def on_resize(self, _event: Resize) -> None:
        self._make_columns()

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        self._begin(int(event.row_key.value or 0))

    @work(exclusive=True, group="attach")
    async def _begin(self, pid: int) -> None:
        self.query_one("#notice", Static).update(f"attaching to {pid} ...")
        children = self.top.children_too
        attaching = asyncio.ensure_future(
            asyncio.to_thread(lambda: Watched(pid, children=children))
        )
        try:
            watched = await asyncio.shield(attaching)
        except asyncio.CancelledError:
            # Somebody quits meanwhile; what is about to be attached to is left.
            attaching.add_done_callback(_leave)
            raise
        except Error as error:
            self.notify(str(error), severity="error", timeout=10)
            return
        self.top.push_screen(ThreadsScreen(watched, self.top.interval_s, is_only=False))


def _leave(attached: asyncio.Future[Watched]) -> None:
    if not attached.cancelled() and attached.exception() is None:
        attached.result().leave()


def _state(pid: int) -> str:
    """Whether the hook is there, and what it does; or that it can be brought there."""
    if look_at_recorded(pid) is not None:
        return "recorded by another"
    try:
        policy, _ = process_policy(pid)
    except (OSError, RuntimeError):
        return "can be attached to"
    return f"scheduled, {policy}"
