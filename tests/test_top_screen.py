"""The screen of `ungil top`, driven by keys at 80x24 while it shows a real process."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import cast

from looking import Start, is_left, running
from rich.text import Text
from textual.pilot import Pilot
from textual.widgets import DataTable, Input, OptionList, Static

from ungil.cli.top.app import Top
from ungil.cli.top.policy_screen import PolicyScreen
from ungil.cli.top.processes_screen import ProcessesScreen
from ungil.cli.top.threads_screen import ThreadsScreen
from ungil.cli.top.watched import Watched

Drive = Callable[[Pilot[None], ThreadsScreen], Awaitable[None]]

SIZE = (80, 24)


def driven(pid: int, drive: Drive, size: tuple[int, int] = SIZE) -> None:
    """Show process `pid`, and press keys once something is seen of it."""

    async def main() -> None:
        app = Top(interval_s=0.1)
        with Watched(pid) as watched:
            app.begin_with(watched)
            async with app.run_test(size=size) as pilot:
                await until(pilot, lambda: isinstance(app.screen, ThreadsScreen))
                screen = app.screen
                assert isinstance(screen, ThreadsScreen)
                await until(pilot, lambda: screen.looks >= 2)
                await drive(pilot, screen)

    asyncio.run(main())


async def until(pilot: Pilot[None], is_so: Callable[[], bool]) -> None:
    """Until something is so; the suite's watchdog ends a wait in vain."""
    while not is_so():
        assert pilot.app.is_running, "the application has ended"
        await pilot.pause(0.02)


async def until_seen(pilot: Pilot[None], is_so: Callable[[list[str]], bool]) -> list[str]:
    """The lines of the first screen of which something is so."""
    while not is_so(seen := lines(pilot)):
        assert pilot.app.is_running, "the application has ended"
        await pilot.pause(0.02)
    return seen


def is_blame(line: str) -> bool:
    """Whether the taker is blamed for waits of the victim."""
    return line.lstrip().startswith("taker ") and " by victim" in line


def lines(pilot: Pilot[None]) -> list[str]:
    """What is on the screen, line by line."""
    return [
        "".join(segment.text for segment in strip).rstrip()
        for strip in pilot.app.screen._compositor.render_strips()  # pyright: ignore[reportPrivateUsage]
    ]


def names(screen: ThreadsScreen) -> list[str]:
    """The threads in the table, from the top."""
    table = cast("DataTable[Text]", screen.query_one(DataTable))
    return [str(table.get_row_at(index)[0])[2:] for index in range(table.row_count)]


def text(screen: ThreadsScreen, name: str) -> str:
    """What a line says."""
    content = screen.query_one(name, Static).content
    return content.plain if isinstance(content, Text) else str(content)


def test_at_80_by_24_everything_that_matters_is_there(start: Start) -> None:
    pid = running(start, "taking")

    async def drive(pilot: Pilot[None], screen: ThreadsScreen) -> None:
        # At some moment it is held, and a wait for it has been seen to its end.
        seen = await until_seen(
            pilot,
            lambda seen: "taker holds it, for" in " ".join(seen) and any(map(is_blame, seen[12:])),
        )
        assert len(seen) == SIZE[1]
        assert seen[0].startswith(f" ungil top  {pid}  python")
        assert " looked_at.py taking " in seen[0]
        assert seen[0].endswith("by time held  every 0.1 s")
        assert all(word in seen[1] for word in ("held", "contended", "handoffs/s", "stock"))
        assert "take (looked_at.py:" in seen[2]
        assert seen[3].split() == [
            *("thread", "hold", "wait", "free/s", "forced", "worst", "cpu", "where")
        ]
        (taker,) = [line for line in seen[4:12] if "taker" in line]
        assert "● taker" in taker
        assert "%" in taker
        assert "looked_at.py:" in taker
        for key in ("Pause", "Sort", "Filter", "Policy", "Faster", "Slower", "Quit"):
            assert key in seen[-1]

    driven(pid, drive)
    assert is_left(pid)


def test_threads_are_sorted_by_one_column_after_the_other(start: Start) -> None:
    async def drive(pilot: Pilot[None], screen: ThreadsScreen) -> None:
        await until(pilot, lambda: names(screen)[0] == "taker")
        await pilot.press("s")
        assert lines(pilot)[0].endswith("by time waited  every 0.1 s")
        await until(pilot, lambda: names(screen)[0] == "victim")
        for _ in range(5):
            await pilot.press("s")
        assert "by name" in lines(pilot)[0]
        assert names(screen) == sorted(names(screen))

    driven(running(start, "taking"), drive)


def test_long_names_are_cut_so_that_threads_of_a_pool_are_told_apart(start: Start) -> None:
    async def drive(pilot: Pilot[None], screen: ThreadsScreen) -> None:
        def pool() -> list[str]:
            return [name for name in names(screen) if name.startswith("Thread")]

        await until(pilot, lambda: len(pool()) == 6)
        assert all("…" in name for name in pool())
        assert {name[-2:] for name in pool()} == {f"_{number}" for number in range(6)}

    driven(running(start, "crowd"), drive)


def test_a_part_of_a_name_filters_and_escape_takes_that_back(start: Start) -> None:
    async def drive(pilot: Pilot[None], screen: ThreadsScreen) -> None:
        await pilot.press("slash", *"VIC")
        assert names(screen) == ["victim"]
        await pilot.press("enter")
        assert not screen.query_one("#filter", Input).has_class("shown")
        assert "/VIC" in lines(pilot)[0]
        # Keys are keys again.
        await pilot.press("s")
        assert names(screen) == ["victim"]
        await pilot.press("escape")
        assert len(names(screen)) == 4

    driven(running(start, "taking"), drive)


def test_nothing_moves_while_it_is_paused(start: Start) -> None:
    async def drive(pilot: Pilot[None], screen: ThreadsScreen) -> None:
        await pilot.press("space")
        assert lines(pilot)[0].endswith("paused")
        # One look may have been on its way.
        await pilot.pause(0.3)
        looks, seen = screen.looks, lines(pilot)
        await pilot.pause(0.5)
        assert (screen.looks, lines(pilot)) == (looks, seen)
        await pilot.press("space")
        await until(pilot, lambda: screen.looks > looks)

    driven(running(start, "computing"), drive)


def test_looks_come_more_and_less_often(start: Start) -> None:
    async def drive(pilot: Pilot[None], screen: ThreadsScreen) -> None:
        await pilot.press("plus")
        assert screen.interval_s == 0.2
        await pilot.press("minus", "minus")
        assert screen.interval_s == 0.1

    driven(running(start, "idle"), drive)


def test_a_policy_is_chosen_and_what_it_does_is_told(start: Start) -> None:
    async def drive(pilot: Pilot[None], screen: ThreadsScreen) -> None:
        await pilot.press("p")
        assert isinstance(pilot.app.screen, PolicyScreen)
        options = pilot.app.screen.query_one(OptionList)
        assert options.highlighted == 0
        await pilot.press("down", "enter")
        await until(pilot, lambda: "interactive" in text(screen, "#gil"))
        await until(pilot, lambda: "waited" in text(screen, "#effect"))
        told = text(screen, "#effect")
        assert told.startswith("stock → interactive, ")
        assert told.endswith("/s")
        assert all(word in told for word in ("longest", "handoffs"))
        # It takes two lines here, once these are laid out.
        await until(pilot, lambda: "handoffs" in " ".join(lines(pilot)[3:5]))

    driven(running(start, "computing"), drive)


def test_from_the_list_of_processes_to_one_and_back(start: Start) -> None:
    pid = running(start, "computing")

    async def main() -> None:
        app = Top(interval_s=0.1)
        async with app.run_test(size=SIZE) as pilot:
            await until(pilot, lambda: isinstance(app.screen, ProcessesScreen))
            table = cast("DataTable[Text]", app.screen.query_one(DataTable))
            await until(pilot, lambda: str(pid) in {it.value for it in table.rows})
            keys = ["⏎", "Look", "at", "it", "q", "Quit"]
            await until(pilot, lambda: lines(pilot)[-1].split() == keys)
            table.move_cursor(row=table.get_row_index(str(pid)))
            row = [str(it).strip() for it in table.get_row(str(pid))]
            assert (row[0], row[3]) == (str(pid), "can be attached to")
            await pilot.press("enter")
            await until(pilot, lambda: isinstance(app.screen, ThreadsScreen))
            screen = app.screen
            assert isinstance(screen, ThreadsScreen)
            assert screen.watched.pid == pid
            await until(pilot, lambda: screen.looks >= 1)
            assert not is_left(pid)
            await pilot.press("escape")
            await until(pilot, lambda: isinstance(app.screen, ProcessesScreen))
            await until(pilot, lambda: is_left(pid))

    asyncio.run(main())
