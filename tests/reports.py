"""Reports made by hand, and what they look like: no tracing here."""

from __future__ import annotations

import io
import json
from typing import Any

from rich.cells import cell_len
from rich.console import Console

from ungil.report import parse, render


def spread(count: int, p50_us: float, p99_us: float, max_us: float) -> dict[str, float]:
    return {
        "count": count,
        "mean_us": p50_us * 1.01,
        "p50_us": p50_us,
        "p99_us": p99_us,
        "max_us": max_us,
    }


def thread(tid: int, name: str, held_s: float, waited_s: float, **changes: Any) -> dict[str, Any]:
    return {
        "tid": tid,
        "name": name,
        "held_s": held_s,
        "waited_s": waited_s,
        "cpu_s": held_s * 0.98,
        "holds": spread(830, 61.2, 180.0, 412.0),
        "waits": spread(815, 5021.0, 5340.0, 10211.0),
        "gaps": {"mean_ms": 6.04, "max_ms": 18.2},
        "voluntary": 829,
        "forced": 1,
        "main": tid == 4242,
        "context_switches": {"voluntary": 2460, "involuntary": 3},
        "drop_requests": 812,
        "lost_events": 0,
    } | changes


def convoy() -> dict[str, Any]:
    """A web server whose background thread computes."""
    cpu = thread(
        4244,
        "cpu-0",
        4.61,
        0.05,
        holds=spread(812, 5020.0, 5110.0, 121_000.0),
        waits=spread(812, 48.0, 160.0, 1903.0),
        voluntary=4,
        forced=808,
        context_switches={"voluntary": 816, "involuntary": 97},
    )
    report: dict[str, Any] = {
        "schema": 1,
        "python": "3.13.0",
        "duration_s": 5.02,
        "lost_events": 0,
        "lost_share": 0.0,
        "processes": [
            {
                "pid": 4242,
                "parent_pid": 4200,
                "argv": ["/usr/bin/python3", "server.py", "--port", "8000"],
                "python": "3.13.0",
                "not_recorded": None,
                "policy": "stock",
                "switch_interval_ms": 5.0,
                "unrecorded_threads": 0,
                "gils": [
                    {
                        "held_s": 4.93,
                        "contended_s": 4.55,
                        "handoffs": 1651,
                        "forced": 809,
                        "wanting_mean": 2.91,
                        "wanting_busy_mean": 2.91,
                        "threads": [
                            thread(4242, "MainThread", 0.02, 0.01),
                            thread(4243, "io-1", 0.05, 4.1),
                            cpu,
                            thread(4245, "io-2", 0.04, 0.4),
                        ],
                        "others": None,
                        "blame": [
                            {"victim": 4243, "culprit": 4244, "waited_s": 4.05},
                            {"victim": 4245, "culprit": 4244, "waited_s": 0.39},
                            {"victim": 4243, "culprit": 4245, "waited_s": 0.03},
                            {"victim": 4243, "culprit": None, "waited_s": 0.02},
                            {"victim": 4244, "culprit": 4243, "waited_s": 0.04},
                        ],
                        "long_holds": [
                            {
                                "tid": 4244,
                                "name": "cpu-0",
                                "start_s": 1.5,
                                "duration_ms": 121.0,
                                "waited_s": 0.24,
                                "waiters_max": 2,
                                "stack": [
                                    "resize (/srv/app/venv/lib/pillow/image.py:42)",
                                    "work (server.py:17)",
                                ],
                            },
                            {
                                "tid": 4244,
                                "start_s": 2.5,
                                "duration_ms": 61.0,
                                "waited_s": 0.06,
                                "waiters_max": 1,
                                "stack": ["resize (/srv/app/venv/lib/pillow/image.py:42)"],
                            },
                            {"tid": 4243, "start_s": 3.0, "duration_ms": 20.5, "stack": []},
                        ],
                    }
                ],
            },
            {
                "pid": 4300,
                "argv": ["/usr/bin/python3", "-c", "from multiprocessing import spawn"],
                "python": "3.13.0",
                "gils": [
                    {
                        "held_s": 1.0,
                        "contended_s": 0.0,
                        "handoffs": 3,
                        "forced": 0,
                        "wanting_mean": 0.2,
                        "wanting_busy_mean": 0.2,
                        "threads": [thread(4300, "MainThread", 1.0, 0.0)],
                        "blame": [],
                        "long_holds": [],
                    }
                ],
            },
            {
                "pid": 4301,
                "argv": ["pypy3", "worker.py"],
                "not_recorded": "PyPy's GIL does not call libc",
                "gils": [],
            },
        ],
        "findings": [
            {
                "kind": "convoy",
                "text": "io-1 waited 5.02 ms after 812 of its 830 blocking calls, behind cpu-0: "
                "4.1 of 5.0 s",
                "advice": "Move cpu-0 to a process, or try sys.setswitchinterval(0.0005).",
            },
            {"kind": "native-hold", "text": "resize (image.py:42) kept the GIL for 121 ms"},
        ],
        "notes": [],
    }
    return report


def with_threads(count: int) -> dict[str, Any]:
    report = convoy()
    gil = report["processes"][0]["gils"][0]
    gil["threads"] = [
        thread(5000 + index, f"worker-{index}", 0.001, index / 100) for index in range(count)
    ]
    gil["blame"] = [
        {"victim": 5000 + index, "culprit": 5000, "waited_s": index / 100}
        for index in range(1, count)
    ]
    gil["long_holds"] = []
    return report


def drawn(report: dict[str, Any], width: int = 120, height: int | None = None) -> str:
    """The report as lines of text, on a terminal if it has a height."""
    file = io.StringIO()
    console = Console(
        file=file,
        width=width,
        height=height,
        force_terminal=height is not None,
        color_system=None,
        highlight=False,
    )
    render(parse(json.dumps(report)), console)
    return file.getvalue()


def widest(text: str) -> int:
    return max(cell_len(line.rstrip()) for line in text.splitlines())


def heading(text: str) -> str:
    """The line with the heads of the columns of the table of threads."""
    return next(line for line in text.splitlines() if line.startswith("thread "))
