"""The suites of ungil.share and ungil.fanout on every free-threaded Python of this machine (long).

    python tests/free_threaded_suite.py [WORDS FOR PYTEST ...]

Each gets an environment in target/free-threaded, with ungil as it is here, and with what the tests
need as far as there are wheels. A test file that imports something else is left out, and named.
`make free-threaded-test` runs it; `make built-pythons BUILT_PYTHONS=free-threaded` builds one.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from pythons import Python, free_threaded

TESTS = Path(__file__).parent
PROJECT = TESTS.parent
FOLDER = PROJECT / "target" / "free-threaded"
# maturin and pip run in the environment that this runs in.
BIN = Path(sys.executable).parent
SUITES = ["test_share*.py", "test_fanout*.py"]
# Without these there is no suite.
TOOLS = [
    *("click", "hypothesis", "pytest", "pytest-asyncio", "pytest-repeat"),
    *("pytest-xdist", "rich"),
]
# Those that some tests are about, and that leave the GIL off.
LIBRARIES = [
    *("aiohttp", "httpx", "loky", "nornir", "nornir-rich", "nornir-utils", "numpy"),
    *("prometheus-client", "pyarrow", "requests", "trio", "uvicorn"),
]
# Variants of single tests, by the package that each needs.
VARIANTS = {"uvloop": "uvloop", "gevent": "green", "nornir_netmiko": "connections_of_plugins"}
# PyO3 builds for 3.14t and later alone; what we use of it is the same in 3.13t.
WITHOUT_VERSION_CHECK = {"UNSAFE_PYO3_SKIP_VERSION_CHECK": "1"}
GIL_IS_OFF = """\
import sys, ungil.fanout, ungil.gil, ungil.share
sys.exit(sys._is_gil_enabled() and "the import of ungil has switched the GIL on")
"""


def main() -> None:
    """Run them on each, and fail if one fails."""
    if not (pythons := free_threaded()):
        sys.exit(
            "there is no free-threaded Python here: make built-pythons BUILT_PYTHONS=free-threaded "
            "builds one, or name one with FREE_THREADED_PYTHONS=/path/to/python3.13t"
        )
    sys.exit(max(suites(python, sys.argv[1:]) for python in pythons))


def suites(python: Python, words: list[str]) -> int:
    """Run both on this Python; the exit code of pytest."""
    own = environment(python)
    subprocess.run([own, "-W", "error", "-c", GIL_IS_OFF], check=True)
    files = sorted(file for suite in SUITES for file in TESTS.glob(suite))
    missing = not_there(own, {name for file in files for name in imports(file)} | VARIANTS.keys())
    left_out = {it.name: sorted(imports(it) & missing) for it in files if imports(it) & missing}
    for name, packages in left_out.items():
        print(f"{python}: {name} is left out, which needs {', '.join(packages)}", flush=True)
    chosen = [str(it) for it in files if it.name not in left_out]
    variants = " and ".join(f"not {VARIANTS[name]}" for name in sorted(VARIANTS.keys() & missing))
    pytest = [own, "-m", "pytest", "--numprocesses", "auto", "--dist", "worksteal"]
    path = f"{own.parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        [*pytest, "-k", variants, *chosen, *words],
        cwd=PROJECT,
        env={**os.environ, "PATH": path},
        check=False,
    ).returncode


def environment(python: Python) -> Path:
    """The interpreter of an environment for this one, with ungil of now in it."""
    folder = FOLDER / str(python)
    own = folder / "bin" / "python"
    if not own.exists():
        subprocess.run([python.path, "-m", "venv", "--without-pip", folder], check=True)
    install(own, *TOOLS)
    for name in LIBRARIES:
        install(own, name, may_be_missing=True)
    install(own, "--force-reinstall", "--no-deps", str(wheel(own, python)))
    return own


def install(own: Path, *words: str, may_be_missing: bool = False) -> None:
    """Have pip install from wheels alone."""
    pip = [BIN / "pip", "--python", own, "install", "--quiet", "--only-binary=:all:"]
    done = subprocess.run([*pip, *words], capture_output=True, text=True, check=False)
    if done.returncode and not may_be_missing:
        sys.exit(f"pip install {' '.join(words)}: {done.stderr.strip()}")


def wheel(own: Path, python: Python) -> Path:
    """Ungil, built for it."""
    out = FOLDER / "wheels"
    for before in out.glob("*.whl"):
        before.unlink()
    variables = {"CARGO_TARGET_DIR": str(FOLDER / "build")}
    variables |= WITHOUT_VERSION_CHECK if python.version == (3, 13) else {}
    words = ["build", "--release", "--quiet", "--interpreter", own, "--out", out]
    subprocess.run(
        [BIN / "maturin", *words], cwd=PROJECT, env={**os.environ, **variables}, check=True
    )
    (built,) = out.glob("*.whl")
    return built


@cache
def imports(file: Path) -> frozenset[str]:
    """The packages that a file of tests imports, itself or by another one beside it."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    names: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.Import):
            names.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module.partition(".")[0])
        elif isinstance(node, ast.AnnAssign):
            # `ray: Any = import_module("ray")`
            names.update(re.findall(r"import_module\('(\w+)", ast.unparse(node)))
    beside = {name: TESTS / f"{name}.py" for name in names if (TESTS / f"{name}.py").exists()}
    return frozenset(names - beside.keys()).union(*map(imports, beside.values()))


def not_there(own: Path, names: Iterable[str]) -> set[str]:
    """Those of these packages that this interpreter cannot import; ours are in tests/."""
    ours = {it.name for it in TESTS.iterdir() if it.is_dir()}
    program = (
        "import sys; from importlib.util import find_spec\n"
        "print(*(name for name in sys.argv[1:] if find_spec(name) is None))"
    )
    asked = [own, "-c", program, *sorted(set(names) - ours - {"ungil"})]
    return set(subprocess.run(asked, capture_output=True, text=True, check=True).stdout.split())


if __name__ == "__main__":
    main()
