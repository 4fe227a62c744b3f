"""The choice of a policy."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from ungil._native import POLICIES

WHAT_FOR = {
    "stock": "CPython's own: the thread that the kernel wakes",
    "interactive": "threads that mostly wait go first",
    "fair": "every thread gets an equal share",
    "batch": "long slices: few handoffs, high throughput",
    "priority": "by the level of each thread",
}


class PolicyScreen(ModalScreen[str | None]):
    """Returns the name of a policy, or nothing."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,p,q", "dismiss", "Back")]

    def __init__(self, current: str) -> None:
        super().__init__()
        self._current = current

    def compose(self) -> ComposeResult:
        options = [
            Option(
                f"{'●' if name == self._current else ' '} {name:<12} {WHAT_FOR.get(name, '')}", name
            )
            for name in POLICIES
        ]
        with Vertical():
            yield Static("[b]policy[/b] until you quit; Enter applies it, Escape cancels")
            yield OptionList(*options)

    def on_mount(self) -> None:
        chosen = POLICIES.index(self._current) if self._current in POLICIES else 0
        self.query_one(OptionList).highlighted = chosen

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(event.option.id)
