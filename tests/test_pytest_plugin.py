"""The pytest plugin, in a pytest of its own: which tests fail, and what is said of them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from suite import PROGRAMS, run_python

SUITE = PROGRAMS / "judged_suite.py"
ROOT = Path(__file__).parent.parent
FAILING = {
    "test_keeps",
    "test_thread_keeps",
    "test_waits",
    "test_asyncio_keeps",
    "test_anyio_keeps[asyncio]",
    "test_parameter[300]",
    "test_fixture_of_its_own",
    "test_block",
    "test_keeps_and_fails",
    "test_wrong_duration",
    "test_wrong_argument",
    "test_no_limit",
}
PASSING = {
    "test_bytecode",
    "test_parameter[1]",
    "test_fixture_of_others",
    "test_forks",
    "test_collects_garbage",
    "test_unmarked",
}


class Ran:
    """A pytest that has run `SUITE`, or some other one."""

    def __init__(self, folder: Path, *options: str, suite: Path = SUITE) -> None:
        results = folder / "results.xml"
        # Not the settings of this repository.
        settings = folder / "pytest.ini"
        settings.write_text("[pytest]\nasyncio_default_fixture_loop_scope = function\n")
        always = ["-q", "-c", str(settings), "-p", "no:cacheprovider", f"--junitxml={results}"]
        self.process: subprocess.CompletedProcess[str] = run_python(
            "-m", "pytest", *always, *options, suite, cwd=folder
        )
        self.out = self.process.stdout
        assert results.exists(), self.out + self.process.stderr
        self.said: dict[str, str] = {}
        for case in ElementTree.parse(results).iter("testcase"):
            messages = [it.get("message", "") for it in case if it.tag in ("failure", "error")]
            name = case.get("name", "")
            self.said[name] = "\n".join([self.said.get(name, ""), *messages]).strip()

    def failing(self) -> set[str]:
        """The tests that did not pass."""
        return {name for name, said in self.said.items() if said}


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    return Ran(tmp_path_factory.mktemp("ran"))


def test_a_test_fails_that_keeps_the_gil_or_waits_for_it(ran: Ran) -> None:
    assert ran.failing() == FAILING, ran.out
    assert ran.said.keys() - FAILING == PASSING


def test_the_sentence_names_thread_time_line_and_limit(ran: Ran) -> None:
    assert re.search(
        r"MainThread kept the GIL for \d[\d.]+ms in keeps \(.*judged_suite\.py:\d+\); the hold "
        r"lasted \d[\d.]+ms, of which the thread ran \S+ \(max_hold is 50ms\)",
        ran.said["test_keeps"],
    ), ran.said["test_keeps"]
    assert re.search(
        r"\S+ waited for the GIL while its holders ran or slept for \S+ms, most of it for "
        r"MainThread; the wait lasted \S+ms \(max_wait is 50ms\)",
        ran.said["test_waits"],
    ), ran.said["test_waits"]


def test_setup_and_teardown_are_named_apart(ran: Ran) -> None:
    said = ran.said["test_fixture_of_its_own"]
    assert "in the setup, MainThread kept the GIL" in said
    assert "in the teardown, MainThread kept the GIL" in said


def test_what_a_test_raises_itself_goes_first(ran: Ran) -> None:
    assert "LookupError: its own" in ran.said["test_keeps_and_fails"]


@pytest.mark.parametrize(
    ("test", "sentence"),
    [
        ("test_wrong_duration", "max_hold: 'fast' is not a duration; write a number and its unit"),
        ("test_wrong_argument", "takes the keywords max_hold, max_wait and fixtures, not '20ms'"),
        ("test_no_limit", "no limit was given; pass max_hold, max_wait, or both"),
    ],
)
def test_a_marker_that_is_wrong_fails_its_test_once_with_a_sentence(
    ran: Ran, test: str, sentence: str
) -> None:
    said = ran.said[test]
    assert sentence in said
    assert len(said.splitlines()) == 1, said


@pytest.mark.parametrize("workers", [(), ("-n2",)], ids=["alone", "xdist"])
def test_a_summary_lists_slow_tests_and_lines_also_of_workers(
    tmp_path: Path, workers: tuple[str, ...]
) -> None:
    ran = Ran(tmp_path, "--gil", *workers, "-k", "waits or unmarked or fixture_of_others")
    summary = ran.out.partition("= GIL =")[2]
    assert re.search(r"\n +\S+ +\S+  \S*::test_waits\n", summary), ran.out
    assert re.search(r"\n +\S+ +\d+  in keeps \(.*judged_suite\.py:\d+\), in ", summary), ran.out
    assert ran.failing() == {"test_waits"}


def test_an_interpreter_that_cannot_be_judged_is_one_sentence(tmp_path: Path) -> None:
    suite = tmp_path / "test_it.py"
    suite.write_text(
        "import pytest\n\n@pytest.mark.gil(max_hold='20ms')\n"
        "@pytest.mark.parametrize('number', [1, 2])\ndef test_it(number): pass\n\n"
        "def test_other(): pass\n"
    )
    # As on a Python for which the native part is not made.
    (tmp_path / "conftest.py").write_text("import sys\nsys.modules['ungil._native'] = None\n")
    ran = Ran(tmp_path, suite=suite)
    assert ran.failing() == {"test_it[1]", "test_it[2]"}
    for test in sorted(ran.failing()):
        said = ran.said[test].splitlines()
        assert len(said) == 1, said
        assert "the GIL of this process cannot be judged: the native part of ungil" in said[0]


def test_the_examples_of_the_guide_keep_their_limits(tmp_path: Path) -> None:
    guide = (ROOT / "docs" / "testing.md").read_text(encoding="utf-8")
    examples = re.findall(r"```python\n(.*?)```", guide, re.DOTALL)
    assert examples
    suite = tmp_path / "test_examples.py"
    suite.write_text("\n".join(examples))
    ran = Ran(tmp_path, suite=suite)
    assert not ran.failing(), ran.out
    assert len(ran.said) == 5


def test_a_plugin_that_nobody_asks_for_imports_nothing(tmp_path: Path) -> None:
    suite = tmp_path / "test_it.py"
    suite.write_text(
        "import sys\ndef test_it():\n"
        "    ours = {name for name in sys.modules if name.split('.')[0] == 'ungil'}\n"
        "    assert ours == {'ungil', 'ungil.errors', 'ungil.testing', 'ungil.testing.plugin'}\n"
    )
    assert not Ran(tmp_path, suite=suite).failing()


def test_a_run_leaves_nothing_behind(tmp_path: Path) -> None:
    (temporary := tmp_path / "temporary").mkdir()
    words = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "test_parameter", str(SUITE)]
    subprocess.run(
        [sys.executable, *words],
        env={"PATH": "/usr/bin", "TMPDIR": str(temporary), "PYTEST_ADDOPTS": "--gil"},
        cwd=tmp_path,
        check=False,
        capture_output=True,
    )
    assert not list(temporary.glob("ungil-*"))
