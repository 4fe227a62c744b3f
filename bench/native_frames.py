"""How often the native function of a long hold is named right, and what looking costs.

    python bench/native_frames.py [--seconds N] [--pythons NAME,...] [--only NAME,...] [--json FILE]

A thread keeps the GIL in a known function of each of 14 extensions (`programs/native_holds.py`),
on several Pythons, each with its packages in a folder of its own (`target/native-frames`). Counted
are the samples of its long holds in which native code was looked for. Right is one that names the
function, or at least its library, which is another one than the interpreter's where the extension
has one. A stop of the thread that showed no native code at all counts as wrong in the verdict.
Printed beside it: how long the thread stood still, and the program's CPU time with and
without native frames.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table
from surroundings import print_environment

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
from pythons import path_of

PROGRAM = Path(__file__).parent / "programs/native_holds.py"
FOLDER = Path(__file__).resolve().parent.parent / "target/native-frames"
PACKAGES = ["numpy", "orjson", "msgpack", "pyyaml", "regex", "pillow", "pydantic-core"]
PYTHONS = ["3.8", "3.11", "3.11-debian", "3.13"]
INTERPRETER = r"(lib)?python3[\w.]*"
GOAL = 0.95
EXTENSIONS = 10
"""So many of them meet that by themselves."""


@dataclass(frozen=True)
class Known:
    """What a hold is known to be in, as regular expressions of names."""

    function: str
    """Of the function that Python calls, or of its symbol."""
    library: str
    """The file of the library, of that function or of the one that runs."""


def builtin(module: str) -> str:
    """A library of the standard library: a file of its own, or part of the interpreter."""
    return rf"{INTERPRETER}|{module}\..*so"


KNOWN = {
    "_sre": Known(r"re\.Pattern\.match|.*sre.*match.*", INTERPRETER),
    "json": Known(r".*scan.*", builtin("_json")),
    "_pickle": Known(r"_pickle\.dumps", builtin("_pickle")),
    "list.sort": Known(r"builtins\.sorted|list\.sort", INTERPRETER),
    "int.__pow__": Known(r"builtins\.pow", INTERPRETER),
    "pyexpat": Known(r"pyexpat\.xmlparser\.Parse", builtin("pyexpat") + r"|libexpat\..*"),
    "numpy (objects)": Known(r"numpy\.ndarray\.sort|array_sort", r"_multiarray_umath\..*so"),
    "OpenBLAS": Known(r".*dgemm.*", r"lib.*openblas.*so"),
    "orjson": Known(r"(orjson\.)?loads", r"orjson\..*so"),
    "msgpack": Known(r".*unpackb", r"_cmsgpack\..*so"),
    "PyYAML": Known(r".*get_single_node", r"_yaml\..*so"),
    "regex": Known(r".*match", r"_regex\..*so"),
    "Pillow": Known(r".*rankfilter", r"_imaging\..*so"),
    "pydantic-core": Known(r".*validate_python.*", r"_pydantic_core\..*so"),
}


@dataclass
class Seen:
    """What the recorder saw of one hold on one Python."""

    samples: int = 0
    """Samples of the holds of the thread."""
    looks: int = 0
    """Of these, the ones in which native code was looked for."""
    functions: int = 0
    """Looks that named the function."""
    libraries: int = 0
    """Looks that named the function or the library."""
    told: str = ""
    """What was told most often."""
    stopped: dict[str, Any] | None = None
    cpu_ratio: float = 0.0
    """CPU time of the calls with native frames to that without."""

    @property
    def tries(self) -> int:
        """Looks, and stops of the thread that led to none."""
        return max(self.looks, self.stopped["times"] if self.stopped else 0)


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=6.0)
    parser.add_argument("--pythons", default=",".join(PYTHONS))
    parser.add_argument("--only", default=",".join(KNOWN))
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    names = options.only.split(",")
    print_environment(["ungil"])
    results: dict[str, dict[str, Seen]] = {}
    for python in options.pythons.split(","):
        interpreter = prepared(python)
        for name in names:
            seen = measure(interpreter, name, options.seconds)
            results.setdefault(name, {})[python] = seen
            print(f"{python:12} {name:16} {seen}", file=sys.stderr)
    console = Console(width=160)
    console.print(table(results))
    console.print(summary(results))
    if options.json is not None:
        plain = {
            name: {it: vars(seen) for it, seen in row.items()} for name, row in results.items()
        }
        options.json.write_text(json.dumps(plain, indent=1), encoding="utf-8")
    every = [seen for row in results.values() for seen in row.values()]
    met = {name: right_of(list(row.values())) >= GOAL for name, row in results.items()}
    right = right_of(every)
    verdict = "met" if right >= GOAL else "NOT MET"
    print(f"\n{verdict:8} at least {GOAL:.0%} of the looks and stops are right: {right:.1%}")
    print(f"{sum(met.values())} of {len(met)} extensions meet that by themselves")
    sys.exit(0 if right >= GOAL and sum(met.values()) >= min(EXTENSIONS, len(met)) else 1)


def right_of(every: list[Seen]) -> float:
    """The share of the looks, and of the stops that led to none, that is right."""
    return sum(it.libraries for it in every) / sum(it.tries for it in every)


def prepared(name: str) -> Path:
    """An interpreter with the packages."""
    folder = FOLDER / name
    interpreter = folder / "bin/python"
    if not (folder / "prepared").exists():
        subprocess.run([path_of(name), "-m", "venv", "--clear", folder], check=True)
        install = [interpreter, "-m", "pip", "install", "--quiet", "--only-binary=:all:"]
        subprocess.run([*install, *PACKAGES], check=True)
        (folder / "prepared").touch()
    return interpreter


def measure(interpreter: Path, name: str, seconds: float) -> Seen:
    """Trace one known hold with native frames, and without."""
    report, with_s = traced(interpreter, name, seconds)
    _, without_s = traced(interpreter, name, seconds / 2, "--no-native")
    seen = Seen(cpu_ratio=with_s / without_s)
    (process,) = report["processes"]
    seen.stopped = process["stopped"]
    told: dict[str, int] = {}
    for hold in holds_of(process):
        seen.samples += hold["samples"]
        seen.looks += hold["native_looks"]
        native = hold["native"]
        if native is None:
            continue
        function, library = is_right(KNOWN[name], native)
        seen.functions += native["samples"] if function else 0
        seen.libraries += native["samples"] if function or library else 0
        words = f"{native['function']} [{Path(native['library']).name}]"
        if native["innermost_library"] != native["library"]:
            words += f", in {native['innermost']} [{Path(native['innermost_library']).name}]"
        told[words] = told.get(words, 0) + native["samples"]
    seen.told = max(told, key=lambda words: told[words], default="nothing")
    return seen


def holds_of(process: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The long holds of the thread that keeps the GIL on purpose."""
    for gil in process["gils"]:
        yield from (
            hold for hold in gil["long_holds"] if hold["name"] == "keeping" and hold["contended"]
        )


def is_right(known: Known, native: dict[str, Any]) -> tuple[bool, bool]:
    """Whether the function is named, and whether its library is."""
    symbols = [line.split(" [")[0].split(" = ")[0] for line in native["stack"]]
    functions = [native["function"], native["innermost"], *symbols]
    libraries = [native["library"], native["innermost_library"]]
    function = any(re.fullmatch(known.function, it) for it in functions if it)
    library = any(re.fullmatch(known.library, Path(it).name) for it in libraries)
    return function and library, library


def traced(
    interpreter: Path, name: str, seconds: float, *options: str
) -> tuple[dict[str, Any], float]:
    """The report, and the CPU seconds that one call took while it was traced."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        words = ["-q", "-o", str(Path(folder) / "t.pftrace"), "--json", str(report), *options, "--"]
        traced = [sys.executable, "-m", "ungil", "trace", *words]
        subprocess.run(
            [*traced, interpreter, PROGRAM, name, str(seconds)],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        told = json.loads(report.read_text(encoding="utf-8"))
    holds = list(holds_of(told["processes"][0]))
    spent = [hold["cpu_ms"] / 1e3 for hold in holds if hold["cpu_ms"]]
    return told, median(spent) if spent else float("nan")


def table(results: dict[str, dict[str, Seen]]) -> Table:
    """A row for each extension."""
    shown = Table(title="looks that named the function / the function or its library")
    shown.add_column("extension")
    pythons = list(dict.fromkeys(python for row in results.values() for python in row))
    for python in pythons:
        shown.add_column(python, justify="right")
    shown.add_column("as it is told on the last of them")
    for name, row in results.items():
        cells = [cell(row[python]) if python in row else "-" for python in pythons]
        shown.add_row(name, *cells, row[pythons[-1]].told)
    return shown


def cell(seen: Seen) -> str:
    """Both counts, of how many."""
    return f"{seen.functions} / {seen.libraries} of {seen.looks}"


def summary(results: dict[str, dict[str, Seen]]) -> str:
    """All rows together, and what looking cost."""
    every = [seen for row in results.values() for seen in row.values()]
    looks = sum(it.looks for it in every) or 1
    functions, libraries = sum(it.functions for it in every), sum(it.libraries for it in every)
    stops = [it.stopped for it in every if it.stopped]
    lines = [
        f"{libraries} of {looks} looks are right ({libraries / looks:.1%}), "
        f"{functions} name the function ({functions / looks:.1%})",
        f"{looks} looks in {sum(it.samples for it in every)} samples",
    ]
    if stops:
        times = sum(it["times"] for it in stops)
        lines.append(
            f"{times} stops, of which {max(times - looks, 0)} did not lead to a Python line"
        )
        lines.append(
            f"{times} stops: median {median(it['p50_us'] for it in stops):.0f} us, "
            f"99 % below {median(it['p99_us'] for it in stops):.0f} us (medians of all runs), "
            f"the longest {max(it['max_us'] for it in stops):.0f} us"
        )
    ratios = [it.cpu_ratio for it in every if it.cpu_ratio == it.cpu_ratio]
    if ratios:
        lines.append(
            f"CPU time of a call with native frames to without: median {median(ratios):.3f}"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
