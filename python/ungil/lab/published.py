"""What the texts published, whole: facts as data, each with its text.

Times are seconds unless a name says otherwise. What an experiment shows beside today's figures is
made of these; `Experiment.published` has the ones that say most.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


class Gaps(NamedTuple):
    """A row of Tim Peters' table: the gaps between the turns of one thread."""

    threads: int
    tid: int
    mean_ms: float
    longest_ms: float
    at: int
    """In which turn the longest gap ended."""
    turns: int


PETERS = (
    Gaps(1, 0, 0.01, 47.98, 2_313, 103_305),
    Gaps(2, 0, 0.04, 12.41, 22_985, 22_985),
    Gaps(2, 1, 0.05, 15.06, 18_494, 22_079),
    Gaps(3, 0, 0.07, 0.73, 517, 14_530),
    Gaps(3, 1, 0.07, 1.02, 14_018, 14_101),
    Gaps(3, 2, 0.07, 1.02, 14_013, 14_107),
    Gaps(4, 0, 0.09, 1.06, 298, 10_765),
    Gaps(4, 1, 0.10, 1.04, 10_475, 10_506),
    Gaps(4, 2, 0.10, 1.05, 10_469, 10_513),
    Gaps(4, 3, 0.10, 0.94, 10_461, 10_509),
    Gaps(5, 0, 0.11, 1.08, 2_550, 8_853),
    Gaps(5, 1, 0.12, 1.11, 4_399, 8_422),
    Gaps(5, 2, 0.12, 1.08, 2_074, 8_425),
    Gaps(5, 3, 0.12, 1.11, 8_385, 8_424),
    Gaps(5, 4, 0.12, 1.00, 8_379, 8_425),
    Gaps(6, 0, 0.13, 1.39, 5_312, 7_646),
    Gaps(6, 1, 0.14, 1.50, 6_894, 6_970),
    Gaps(6, 2, 0.14, 1.31, 746, 6_972),
    Gaps(6, 3, 0.14, 1.53, 6_883, 6_972),
    Gaps(6, 4, 0.14, 1.31, 6_509, 6_971),
    Gaps(6, 5, 0.14, 1.39, 729, 6_971),
    Gaps(7, 0, 0.16, 1.61, 1_396, 6_213),
    Gaps(7, 1, 0.17, 1.56, 2_792, 5_981),
    Gaps(7, 2, 0.17, 1.60, 2_786, 5_982),
    Gaps(7, 3, 0.17, 1.52, 1_136, 5_982),
    Gaps(7, 4, 0.17, 1.66, 1_130, 5_981),
    Gaps(7, 5, 0.17, 1.57, 1_126, 5_980),
    Gaps(7, 6, 0.17, 1.56, 2_765, 5_978),
)
"""Tim Peters, 18 May 2002: Windows 98SE, time.clock, 1.0 s for each number of threads."""

COUNTED = 100_000_000
"""From where David Beazley, 2009, counted down; also the numbers of his `-1 in xrange(...)`."""
COUNTDOWN: Mapping[str, float] = {"in sequence": 24.6, "two threads": 45.5, "on one core": 38.0}
"""Wall time; "two threads" on two cores."""
TICK_S = 6.6
"""Of `-1 in xrange(100000000)`, which is one tick."""

DEAF: tuple[str, ...] = ("join", "lock")
"""Where a main thread is to which Ctrl-C never comes, the same talk says."""

ECHO_THREADS = (0, 1, 2, 4)
"""Beside how many computing threads Victor Skvortsov's server of 2021 echoed."""
ECHO_A_SECOND: Mapping[float, tuple[int, ...]] = {
    0.1: (30_000, 5, 2, 0),
    0.01: (30_000, 50, 30, 15),
    0.005: (30_000, 100, 50, 30),
    0.001: (30_000, 500, 280, 200),
    0.0001: (30_000, 3_200, 1_700, 1_000),
    0.00001: (30_000, 11_000, 5_500, 2_800),
    0.000001: (30_000, 10_000, 4_500, 2_500),
}
"""Its requests a second, by the switch interval in seconds, of which 0.005 is Python's own.

"Python behind the scenes #13: the GIL and its effects on Python multithreading", in
tenthousandmeters.com, 22 September 2021: one client on the same machine, which has two cores, sends
a byte by TCP as fast as it can.
"""
SWITCH_INTERVAL_S = 0.005


class Calls(NamedTuple):
    """System calls of the countdown on a kernel."""

    system: str
    sequence: int
    threads: int
    two_cores: int


CALLS = (
    Calls("Unix", 736, 1_149, 1_149),
    Calls("Mac", 117, 3_300_000, 9_500_000),
)


class Whole(NamedTuple):
    """What a whole process of nornir's author, 2020, took for 10,000 hosts."""

    rtt_s: float
    workers: str
    """Threads of nornir 3.0 beta, or GOMAXPROCS of gornir."""
    user_s: float
    system_s: float
    cpu_percent: int
    wall_s: float


NORNIR = (
    Whole(0.05, "100", 0.78, 0.29, 19, 5.532),
    Whole(0.05, "200", 0.79, 0.34, 39, 2.854),
    Whole(0.05, "500", 0.65, 0.37, 73, 1.389),
    Whole(0.05, "1,000", 0.81, 0.37, 118, 0.995),
    Whole(0.05, "1,500", 0.73, 0.48, 125, 0.969),
    Whole(0.05, "2,000", 0.78, 0.47, 125, 0.993),
    Whole(0.05, "5,000", 0.78, 0.47, 126, 0.987),
    Whole(0.05, "10,000", 0.82, 0.37, 123, 0.962),
    Whole(0.1, "100", 0.77, 0.30, 10, 10.551),
    Whole(0.1, "200", 0.75, 0.32, 19, 5.424),
    Whole(0.1, "500", 0.79, 0.35, 47, 2.376),
    Whole(0.1, "1,000", 0.82, 0.35, 84, 1.391),
    Whole(0.1, "1,500", 0.86, 0.56, 119, 1.192),
    Whole(0.1, "2,000", 0.89, 0.62, 128, 1.177),
    Whole(0.1, "5,000", 0.89, 0.84, 136, 1.266),
    Whole(0.1, "10,000", 1.08, 0.74, 140, 1.292),
    Whole(0.3, "100", 0.82, 0.24, 3, 31.016),
    Whole(0.3, "200", 0.74, 0.27, 6, 15.381),
    Whole(0.3, "500", 0.75, 0.30, 16, 6.360),
    Whole(0.3, "1,000", 0.73, 0.38, 33, 3.354),
    Whole(0.3, "1,500", 0.82, 0.42, 50, 2.460),
    Whole(0.3, "2,000", 0.94, 0.42, 67, 2.004),
    Whole(0.3, "5,000", 1.15, 1.28, 154, 1.575),
    Whole(0.3, "10,000", 1.14, 1.04, 141, 1.535),
    Whole(1, "100", 0.70, 0.28, 0, 100.55),
    Whole(1, "200", 0.75, 0.19, 1, 50.445),
    Whole(1, "500", 0.64, 0.30, 4, 20.335),
    Whole(1, "1,000", 0.77, 0.28, 10, 10.360),
    Whole(1, "1,500", 0.73, 0.39, 15, 7.364),
    Whole(1, "2,000", 0.86, 0.37, 22, 5.507),
    Whole(1, "5,000", 1.04, 0.79, 60, 3.005),
    Whole(1, "10,000", 1.43, 1.11, 97, 2.598),
)
GORNIR = (
    Whole(0.05, "default", 0.16, 0.04, 185, 0.111),
    Whole(0.05, "1", 0.09, 0.03, 74, 0.158),
    Whole(0.05, "100", 0.15, 0.12, 187, 0.139),
    Whole(0.1, "default", 0.12, 0.11, 144, 0.160),
    Whole(0.1, "1", 0.10, 0.03, 62, 0.208),
    Whole(0.1, "100", 0.19, 0.13, 168, 0.192),
    Whole(0.3, "default", 0.13, 0.08, 57, 0.363),
    Whole(0.3, "1", 0.10, 0.02, 29, 0.425),
    Whole(0.3, "100", 0.15, 0.14, 74, 0.387),
    Whole(1, "default", 0.17, 0.05, 19, 1.071),
    Whole(1, "1", 0.08, 0.05, 11, 1.121),
    Whole(1, "100", 0.14, 0.13, 25, 1.078),
)


class Imports(NamedTuple):
    """A million `import os` on Python 2.5.1, Marek Majkowski, 2007."""

    threads: str
    wall_s: float
    user_s: float
    system_s: float
    futex: int
    read: int
    llseek: int


FUTEX = (
    Imports("pthread", 2.061, 1.728, 0.332, 1_000_020, 142, 4_504),
    Imports("GNU Pth", 1.572, 1.560, 0.008, 0, 142, 4_504),
)
FUTEX_S = 1.014676
"""What strace says that the 1,000,020 calls took."""
APPLICATION: Mapping[str, int] = {
    "futex": 15_192,
    "sendto": 896,
    "stat": 8,
    "poll": 1_936,
    "recvfrom": 1_076,
    "open": 28,
    "write": 6,
}
"""System calls of the real application with which he began."""
APPLICATION_FUTEX_PERCENT = 67.62
"""Of the application's time in system calls."""

POSH_S: Mapping[str, tuple[float, ...]] = {
    "threads": (433.4, 466.5, 468.3, 471.0, 472.8, 473.2, 473.4, 474.2),
    "processes": (439.2, 225.3, 155.9, 116.6, 94.1, 80.4, 69.2, 61.7),
}
"""Valvåg et al., 2003, table 2: two matrices of 200 by 200, by one to eight workers."""
POSH: Mapping[str, tuple[float, ...]] = {
    "threads": (100.0, 100.7, 108.1, 108.7, 109.1, 109.2, 109.2, 109.4),
    "processes": (101.3, 52.0, 36.0, 26.9, 21.7, 18.6, 16.0, 14.2),
}
"""Their tables 1 and 2, where one thread is 100.

The 100.7 of two threads is as it is printed; their seconds make it 107.6.
"""


def as_json() -> dict[str, Any]:
    """All of it, by experiment."""
    return {
        "fairness": [row._asdict() for row in PETERS],
        "countdown": {
            "n": COUNTED,
            "wall_s": dict(COUNTDOWN),
            "system_calls": [row._asdict() for row in CALLS],
        },
        "tick": {"n": COUNTED, "tick_s": TICK_S},
        "interrupt": {"never_in": list(DEAF)},
        "response": {
            "threads": list(ECHO_THREADS),
            "echoes_per_s": {f"{interval_s:g}": of for interval_s, of in ECHO_A_SECOND.items()},
        },
        "fanout": {
            "nornir": [row._asdict() for row in NORNIR],
            "gornir": [row._asdict() for row in GORNIR],
        },
        "futex": {
            "imports": [row._asdict() for row in FUTEX],
            "futex_s": FUTEX_S,
            "application": dict(APPLICATION),
            "application_futex_percent": APPLICATION_FUTEX_PERCENT,
        },
        "matmul": {how: {"wall_s": POSH_S[how], "one_thread_is_100": POSH[how]} for how in POSH},
    }
