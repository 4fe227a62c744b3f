"""What the stub that LD_PRELOAD names costs each process that starts.

    python bench/preload.py [--rounds N] [--python PATH] [--json FILE] [--quick]

Every child of a scheduled program pays for it, Python or not, so its share is to be 50 us at most.
Two commands, each started many times one after the other: `true`, which can open no library and so
has the stub alone, and a Python that does nothing, which has the hook too. `stub` is the stub with
nothing asked; `asked` is a child of `ungil run`; `hook` is the hook preloaded by itself, as it was
before there was a stub. The difference is to the bare start of the same round; `bare again` is the
bare command a second time: as much as it differs from 0 is noise.
"""

import argparse
import os
import shutil
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from interleaving import Measured, Runs, Target, interleave, parse, parser, report
from rich.table import Table
from sampling import Failed
from starts import more, spread_of_more, table_of_starts

from ungil import _native

STARTS = 200
MOST_US = 50.0
ASKED = {"UNGIL_POLICY": "interactive"}


@dataclass(frozen=True)
class Preload:
    """What is preloaded."""

    name: str
    variables: dict[str, str] = field(default_factory=dict[str, str], hash=False)


STUB = {"LD_PRELOAD": _native.preload_value(None)}
HOOK = {"LD_PRELOAD": _native.hook_path()}
BARE = Preload("bare")
IDLE = Preload("stub", STUB)
VARIANTS = [
    BARE,
    Preload("bare again"),
    IDLE,
    Preload("stub, asked", STUB | ASKED),
    Preload("hook", HOOK),
    Preload("hook, asked", HOOK | ASKED),
]


def main() -> None:
    """Measures and prints."""
    options = parse(parser(__doc__, rounds=31))
    report(options, ["ungil"], _sections(options), _targets)


def _sections(options: argparse.Namespace) -> Iterator[tuple[Runs, Table]]:
    """A setting for each command."""
    commands = {
        "true": [shutil.which("true") or "/bin/true"],
        "python -S": [options.python, "-S", "-c", ""],
    }
    for name, words in commands.items():
        starts = STARTS if name == "true" else STARTS // 10

        def measure(variant: Preload, words: list[str] = words, starts: int = starts) -> Measured:
            return _start(words, variant, 5 if options.quick else starts)

        runs = interleave(name, VARIANTS, measure, options)
        yield runs, table_of_starts(runs, VARIANTS, BARE, "us", 0)


def _start(words: list[str], variant: Preload, starts: int) -> Measured:
    """Wall and CPU time of one start of `words`, in us."""
    environment = {"PATH": os.environ["PATH"], **variant.variables}
    began_s, cpu_s = time.perf_counter(), 0.0
    for _ in range(starts):
        process = os.posix_spawn(words[0], words, environment)
        _, status, used = os.wait4(process, 0)
        if status:
            raise Failed(f"{words[0]} with {variant.name} has ended with {status}")
        cpu_s += used.ru_utime + used.ru_stime
    wall_s = time.perf_counter() - began_s
    return {"wall_us": wall_s / starts * 1e6, "cpu_us": cpu_s / starts * 1e6}


def _targets(taken: list[Runs]) -> Iterator[Target]:
    """The stub's own share."""
    for runs in taken:
        if runs.setting != "true":
            continue
        for variant in VARIANTS[2:4]:
            cpu_us = more(runs, variant, BARE, "cpu_us")
            yield Target(
                f"{variant.name}: `true` uses at most {MOST_US:.0f} us more of the processor",
                statistics.median(cpu_us) <= MOST_US,
                spread_of_more(cpu_us, 0),
            )


if __name__ == "__main__":
    main()
