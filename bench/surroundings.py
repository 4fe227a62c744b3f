"""What numbers depend on, and how they are written down."""

import json
import os
import platform
import shlex
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path


def environment(packages: Sequence[str], python: str = sys.executable) -> dict[str, str]:
    """What the numbers depend on."""
    cpus = [
        line.partition(":")[2].strip()
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        if line.startswith("model name")
    ]
    known = [
        f"{package} {found or 'not installed'}"
        for package, found in zip(packages, versions(packages, python), strict=True)
    ]
    return {
        "date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "commit": _commit(),
        "command": shlex.join(["python", *sys.argv]),
        "cpu": f"{cpus[0] if cpus else platform.machine()}, {os.cpu_count()} cores",
        "kernel": f"{platform.system()} {platform.release()}",
        "python": _python(python),
        "versions": ", ".join(known),
        "load": " ".join(f"{load:.2f}" for load in os.getloadavg()),
    }


def print_environment(packages: Sequence[str], python: str = sys.executable) -> dict[str, str]:
    """Print what the numbers depend on, as the first lines of a block of RESULTS.md."""
    known = environment(packages, python)
    for name, value in known.items():
        print(f"{name:9} {value}", flush=True)
    return known


def versions(packages: Sequence[str], python: str = sys.executable) -> list[str | None]:
    """Of the packages that are installed for the interpreter under test."""
    asked = """
import importlib.metadata, json, sys
found = {d.metadata["Name"].lower(): d.version for d in importlib.metadata.distributions()}
print(json.dumps([found.get(name) for name in sys.argv[1:]]))
"""
    run = subprocess.run(
        [python, "-c", asked, *packages], capture_output=True, text=True, check=True
    )
    return json.loads(run.stdout)


def _commit() -> str:
    here = str(Path(__file__).parent)
    git = ["git", "-C", here, "describe", "--always", "--dirty", "--exclude", "*"]
    try:
        return subprocess.run(git, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _python(path: str) -> str:
    """Implementation and version of the interpreter under test."""
    words = "import platform as p; print(p.python_implementation(), p.python_version())"
    run = subprocess.run([path, "-c", words], capture_output=True, text=True, check=True)
    return run.stdout.strip()


def spread(values: Sequence[float]) -> str:
    """Median, and the least and the greatest."""
    return f"{statistics.median(values):.3f} ({min(values):.3f}-{max(values):.3f})"
