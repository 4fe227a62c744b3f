"""`ungil top` on a screen: the application, from choosing a process to leaving it."""

from __future__ import annotations

import asyncio
import signal
from typing import ClassVar

from textual.app import App
from textual.binding import Binding, BindingType

from ungil.cli.top.processes_screen import ProcessesScreen
from ungil.cli.top.threads_screen import ThreadsScreen
from ungil.cli.top.watched import Watched


class Top(App[None]):
    """The application. After `run`, `last_words` is what is still to be said, maybe nothing."""

    TITLE = "ungil top"
    ENABLE_COMMAND_PALETTE = False
    CSS_PATH = "top.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "Quit"),
        Binding("ctrl+c", "quit", show=False, priority=True),
    ]

    def __init__(self, *, interval_s: float, children: bool = False) -> None:
        super().__init__()
        self.interval_s = interval_s
        self.children_too = children
        self.last_words = ""
        self._first: Watched | None = None

    def begin_with(self, watched: Watched) -> None:
        """Show these processes first, and leave them to the caller."""
        self._first = watched

    def on_mount(self) -> None:
        # Whoever ends it by a signal, or takes its terminal, leaves no process attached to.
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self.exit)
        if self._first is not None:
            self.push_screen(ThreadsScreen(self._first, self.interval_s, is_only=True))
        else:
            self.push_screen(ProcessesScreen())

    def keeps(self, watched: Watched, policy: str) -> None:
        """Remember how to have again a policy that is about to be taken back."""
        command = f"ungil policy {watched.pid} {policy}"
        if self.children_too:
            command += " --children"
        self.last_words = f"the policy is restored; to use {policy} again: {command}"
