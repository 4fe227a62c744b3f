"""The threads of a process: who holds, who waits, and for whom."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, ClassVar, cast

from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.events import Resize
from textual.screen import Screen
from textual.widgets import DataTable, Footer, Input, Static

from ungil.cli.top import lines
from ungil.cli.top.columns import (
    BY_DEFAULT,
    COLUMNS,
    SORTABLE,
    name_width,
    ordered,
    told_apart_in,
)
from ungil.cli.top.effect import Effect
from ungil.cli.top.figures import Figures, Row
from ungil.cli.top.policy_screen import PolicyScreen
from ungil.cli.top.watched import Watched
from ungil.errors import UsageError
from ungil.formatting import printable

if TYPE_CHECKING:
    from ungil.cli.top.app import Top

# A cell has a space on both sides.
PADDING = 2
NARROWEST = 14
INTERVALS_S = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
BLAMED = 4


class ThreadsScreen(Screen[None]):
    """Shows processes that were attached to; leaves them itself unless it `is_only`."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "pause", "Pause"),
        Binding("s", "sort", "Sort"),
        Binding("slash", "filter", "Filter", key_display="/"),
        Binding("p", "policy", "Policy"),
        Binding("minus", "interval(-1)", "Faster", key_display="-"),
        Binding("plus", "interval(1)", "Slower", key_display="+"),
        Binding("escape", "back", "Back", show=False),
    ]

    def __init__(self, watched: Watched, interval_s: float, *, is_only: bool) -> None:
        super().__init__()
        self.watched = watched
        self.interval_s = interval_s
        self.is_only = is_only
        self.is_paused = False
        self.by = BY_DEFAULT
        self.pattern = ""
        self.shown: list[Figures] = []
        self.looks = 0
        self._effect = Effect()
        self._has_ended = False
        self._sooner = asyncio.Event()

    @property
    def top(self) -> Top:
        """The application."""
        return cast("Top", self.app)  # pyright: ignore[reportUnknownMemberType]

    def compose(self) -> ComposeResult:
        yield Static(id="title")
        yield Static("attached; the first numbers follow in a moment", id="gil")
        yield Static(id="holder")
        yield Static(id="effect")
        yield DataTable[Text](cursor_type="row", id="threads")
        yield Static(id="blame")
        yield Input(placeholder="part of a thread's name", id="filter", compact=True)
        yield Footer(compact=True, show_command_palette=False)

    def on_mount(self) -> None:
        self._make_columns()
        self.query_one(DataTable).focus()
        self._watch()

    def on_unmount(self) -> None:
        if not self.is_only:
            self.watched.leave()

    def on_resize(self, _event: Resize) -> None:
        self._make_columns()
        self._show()

    @work(exclusive=True)
    async def _watch(self) -> None:
        """Look, and show what is seen, until the process or the screen has ended."""
        # What was counted before the first look is of no known length.
        await asyncio.to_thread(self.watched.figures)
        while not self._has_ended:
            self._sooner.clear()
            try:
                await asyncio.wait_for(self._sooner.wait(), self.interval_s)
            except TimeoutError:
                pass
            else:
                continue
            if self.is_paused:
                continue
            seen = await asyncio.to_thread(self.watched.figures)
            if seen:
                self.shown = seen
                self._effect.add(seen)
            else:
                self._has_ended = True
            self.looks += 1
            self._show()

    # What is on the screen.

    def _make_columns(self) -> None:
        table = cast("DataTable[Text]", self.query_one(DataTable))
        table.clear(columns=True)
        widths = self._widths()
        for column, width in zip(COLUMNS, widths, strict=True):
            is_text = column.width is None or column is COLUMNS[0]
            title = column.title if is_text else column.title.rjust(width)
            label = Text(title, style="underline" if column is self.by else "not bold")
            table.add_column(label, width=width, key=column.title)

    def _widths(self) -> list[int]:
        """Of the columns: on a wide terminal the names get more, and the last gets what is left."""
        fixed = [
            name_width(self.size.width),
            *(it.width for it in COLUMNS[1:] if it.width is not None),
        ]
        left = self.size.width - sum(width + PADDING for width in fixed) - PADDING - 1
        return [*fixed, max(NARROWEST, left)]

    def _show(self) -> None:
        if not self.query("#title"):
            return  # it is being closed
        self.query_one("#title", Static).update(self._title())
        if not self.shown:
            return
        first = self.shown[0]
        self.query_one("#gil", Static).update(lines.gil(first, self.size.width - 2))
        self.query_one("#holder", Static).update(lines.holder(first))
        effect = self.query_one("#effect", Static)
        sentence = self._effect.sentence()
        effect.set_class(bool(sentence), "shown")
        effect.update(Text(sentence))
        blamed = sorted((b for it in self.shown for b in it.blamed), key=lambda b: -b.waited)
        self.query_one("#blame", Static).update(lines.blame(blamed[:BLAMED], self.size.width - 2))
        self._show_rows()

    def _show_rows(self) -> None:
        table = cast("DataTable[Text]", self.query_one(DataTable))
        key, scrolled = self._cursor(table), table.scroll_y
        rows = ordered(tuple(row for it in self.shown for row in it.rows), self.by)
        rows = [it for it in rows if self.pattern.lower() in it.name.lower()]
        shown = told_apart_in(rows, self.size.width)
        with self.top.batch_update():
            table.clear()
            for row, told in zip(rows, shown, strict=True):
                table.add_row(*(column.cell(told) for column in COLUMNS), key=_key(row))
            places = [_key(row) for row in rows]
            if key in places:
                table.move_cursor(row=places.index(key), scroll=False)
            table.scroll_to(y=scrolled, animate=False)

    @staticmethod
    def _cursor(table: DataTable[Text]) -> str | None:
        if not table.row_count:
            return None
        return table.coordinate_to_cell_key(table.cursor_coordinate).row_key.value

    def _title(self) -> Text:
        state = "ended" if self._has_ended else "paused" if self.is_paused else ""
        every = f"every {self.interval_s:g} s"
        filtered = f"/{self.pattern}" if self.pattern else ""
        right = "  ".join(it for it in (filtered, f"by {self.by.name}", state or every) if it)
        command = lines.command(self.shown[0].command) if self.shown else ""
        left = f"ungil top  {self.watched.pid}  "
        room = max(0, self.size.width - 2 - len(left) - len(right) - 2)
        command = lines.shortened(printable(command), room)
        return Text(f"{left}{command.ljust(room)}  {right}", no_wrap=True)

    # What keys do.

    def action_pause(self) -> None:
        """Leave what is shown as it is, or go on."""
        self.is_paused = not self.is_paused
        self._show()

    def action_sort(self) -> None:
        """Sort by the next column."""
        self.by = SORTABLE[(SORTABLE.index(self.by) + 1) % len(SORTABLE)]
        self._make_columns()
        self._show()

    def on_data_table_header_selected(self, event: DataTable.HeaderSelected) -> None:
        chosen = next(it for it in COLUMNS if it.title == event.column_key.value)
        if chosen.key is not None:
            self.by = chosen
            self._make_columns()
            self._show()

    def action_filter(self) -> None:
        """Ask for a part of a name."""
        field = self.query_one("#filter", Input)
        field.value = self.pattern
        field.add_class("shown")
        field.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        self.pattern = event.value
        self._show()

    def on_input_submitted(self, _event: Input.Submitted) -> None:
        self._end_filter()

    def _end_filter(self) -> None:
        self.query_one("#filter", Input).remove_class("shown")
        self.query_one(DataTable).focus()
        self._show()

    def action_back(self) -> None:
        """Take the filter back, or leave the process for the list, if there is one."""
        if self.query_one("#filter", Input).has_class("shown") or self.pattern:
            self.pattern = self.query_one("#filter", Input).value = ""
            self._end_filter()
        elif not self.is_only:
            self.top.pop_screen()

    def action_interval(self, step: int) -> None:
        """Look more or less often."""
        faster = [it for it in INTERVALS_S if it < self.interval_s]
        slower = [it for it in INTERVALS_S if it > self.interval_s]
        self.interval_s = (
            (slower or [self.interval_s])[0] if step > 0 else (faster or [self.interval_s])[-1]
        )
        self._sooner.set()
        self._show()

    def action_policy(self) -> None:
        """Choose a policy."""
        if self.shown and not self._has_ended:
            self.top.push_screen(PolicyScreen(self.shown[0].policy), self._obey)

    def _obey(self, policy: str | None) -> None:
        if policy is not None and policy != self.shown[0].policy:
            self._change(policy, self.shown[0].policy)

    @work
    async def _change(self, policy: str, was: str) -> None:
        try:
            await asyncio.to_thread(self.watched.obey, policy)
        except UsageError as error:
            self.notify(str(error), severity="error", timeout=10)
            return
        self._effect.changed(policy, was)
        self.top.keeps(self.watched, policy)
        self._show()


def _key(row: Row) -> str:
    return f"{row.pid}/{row.tid}/{row.name}"
