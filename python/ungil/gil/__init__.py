"""The GIL of this very program: what it costs, and who gets it next.

from ungil import gil

gil.install()                       # once, at any time
with gil.measure() as cost:
    handle(request)
print(cost.waited_ns / cost.wall_ns)

gil.policy("interactive")           # for all threads of this process
with gil.priority("low"):           # for this one
    rebuild_the_index()
"""

from ungil.gil.counters import Cost, ThreadStats, install, installed, measure, stats
from ungil.gil.scheduling import Policy, Priority, level, policy, priority

__all__ = [
    "Cost",
    "Policy",
    "Priority",
    "ThreadStats",
    "install",
    "installed",
    "level",
    "measure",
    "policy",
    "priority",
    "stats",
]
