"""The GIL of this process: what it costs, and which thread gets it next.

    from ungil import gil

    gil.install()  # once, at any time
    with gil.measure() as cost:
        handle(request)
    print(cost.waited_ns / cost.wall_ns)

    gil.set_policy("interactive")  # for all threads of this process
    with gil.priority("low"):  # for this one
        rebuild_the_index()

    gil.watch(wait_ms=50, call=print)  # says who held, and at which line
    gil.snapshot()  # what happened in the last seconds

A process is *installed* when both halves of this module work in it: it is counted (`stats`,
`measure`), and it is scheduled (`policy`, `set_policy`, `level`, `priority`).

| how it was started | it is counted | it is scheduled |
|---|---|---|
| by `ungil trace` | yes | with `--policy` |
| by `ungil run` | no | yes |
| with `UNGIL_POLICY` alone | yes | yes |
| in any way, and has called `install()` | yes | yes |
| by `os.fork()` in one that has called it | no | yes |
| in any other way | no | no |

What needs the half that is missing raises `ungil.errors.NotInstalled`; `install()` adds it.
"""

from ungil.gil.counters import Cost, ProcessStats, ThreadStats, measure, process_stats, stats
from ungil.gil.installation import install, installed
from ungil.gil.scheduling import (
    LevelChange,
    Policy,
    PolicyChange,
    level,
    policy,
    priority,
    set_policy,
)
from ungil.gil.watching import Stall, Watch, snapshot, watch

__all__ = [
    "Cost",
    "LevelChange",
    "Policy",
    "PolicyChange",
    "ProcessStats",
    "Stall",
    "ThreadStats",
    "Watch",
    "install",
    "installed",
    "level",
    "measure",
    "policy",
    "priority",
    "process_stats",
    "set_policy",
    "snapshot",
    "stats",
    "watch",
]
