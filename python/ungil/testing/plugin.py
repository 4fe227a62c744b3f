"""The pytest plugin: the option `--gil`, the marker `gil` and the fixture `gil`.

pytest imports this in every run where ungil is installed, so it imports nothing that takes long,
and does nothing until it is asked for.
"""

from __future__ import annotations

import pytest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator
    from contextlib import AbstractContextManager
    from typing import Any

    from ungil.limits import Judged, Limits
    from ungil.testing.recording import Recording

MARKER = (
    "gil(max_hold, max_wait, fixtures=False): fail if the test keeps the GIL longer than max_hold,"
    " or waits for it longer than max_wait, on the processor; with fixtures=True also its setup and"
    " teardown"
)

_RECORDING = pytest.StashKey["Recording"]()
_WHY_NOT = pytest.StashKey[str]()
_JUDGED: pytest.StashKey[dict[str, dict[str, Any]]] = pytest.StashKey()


class Limited:
    """The fixture `gil`: limits for a part of a test."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording

    def limits(
        self, *, max_hold: str | None = None, max_wait: str | None = None
    ) -> AbstractContextManager[list[Judged]]:
        """Fail the test if the block inside of `with` keeps the GIL, or waits for it, too long.

        Limits are durations like "20ms". After the block the list that it gives has one `Judged`,
        with the holds and waits of the block. ungil.UsageError if a limit is no duration, or there
        is none.
        """
        from ungil.limits import Limits
        from ungil.testing.block import limited

        return limited(self._recording, Limits.parse(max_hold, max_wait))


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--gil`."""
    group = parser.getgroup("ungil", "the GIL")
    group.addoption(
        "--gil",
        action="store_true",
        help="record the GIL, and list tests by how long they waited for it, and lines of code by"
        " how long they kept it",
    )


def pytest_configure(config: pytest.Config) -> None:
    """The marker; and the summary, if it is wanted."""
    config.addinivalue_line("markers", MARKER)
    if config.getoption("gil"):
        from ungil.testing.summary import Summary

        config.pluginmanager.register(Summary(), "ungil-summary")


def pytest_unconfigure(config: pytest.Config) -> None:
    """Ends the recording, if there is one."""
    if recording := config.stash.get(_RECORDING, None):
        recording.stop()


@pytest.fixture(name="gil")
def _gil(pytestconfig: pytest.Config) -> Limited:
    """Limits for a part of a test: `with gil.limits(max_hold="20ms"): ...`."""
    return Limited(_recording(pytestconfig))


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, object, object]:
    """Judges the setup, if that is wanted."""
    return (yield from _phase(item, "setup"))


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Judges the test."""
    return (yield from _phase(item, "call"))


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, object]:
    """Judges the teardown, if that is wanted."""
    return (yield from _phase(item, "teardown"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Gives a report what was judged, which pytest-xdist carries to the controller with it."""
    report = yield
    phases = item.stash.get(_JUDGED, None)
    if phases is not None and (judged := phases.get(call.when)):
        report.ungil_gil = judged  # pyright: ignore[reportAttributeAccessIssue]
    return report


def _phase(item: pytest.Item, when: str) -> Generator[None, object, object]:
    """Lets a phase of a test happen, and fails it if it breaks its limits."""
    marker = item.get_closest_marker("gil")
    is_wanted = bool(item.config.getoption("gil"))
    if marker is None and not is_wanted:
        return (yield)
    limits = _limits(marker, when)
    if limits is None and not is_wanted:
        return (yield)
    from ungil.testing.verdict import broken_sentences, told

    with _recording(item.config).span() as span:
        result = yield
    judged = span.judged
    broken = limits.broken(judged) if limits else []
    item.stash.setdefault(_JUDGED, {})[when] = told(judged, broken)
    if broken:
        pytest.fail(broken_sentences(when, broken), pytrace=False)
    return result


def _limits(marker: pytest.Mark | None, when: str) -> Limits | None:
    """What the marker says of this phase. A marker that is wrong fails the setup."""
    if marker is None:
        return None
    from ungil.errors import UsageError
    from ungil.limits import Limits

    given = dict(marker.kwargs)
    fixtures = given.pop("fixtures", False)
    unknown = [*map(repr, marker.args), *(given.keys() - {"max_hold", "max_wait"})]
    if unknown:
        wrong = (
            f"it takes the keywords max_hold, max_wait and fixtures, not {unknown[0]}; "
            'write gil(max_hold="20ms")'
        )
    else:
        try:
            limits = Limits.parse(given.get("max_hold"), given.get("max_wait"))
        except UsageError as error:
            wrong = str(error)
        else:
            return limits if when == "call" or fixtures else None
    if when == "setup":
        pytest.fail(f"the marker gil is misused: {wrong}", pytrace=False)
    return None


def _recording(config: pytest.Config) -> Recording:
    """The recording of this process, which begins when it is needed for the first time."""
    recording = config.stash.get(_RECORDING, None)
    if recording is None:
        why = config.stash.get(_WHY_NOT, None) or _begin(config)
        if why is not None:
            pytest.fail(f"the GIL of this process cannot be judged: {why}", pytrace=False)
    return config.stash[_RECORDING]


def _begin(config: pytest.Config) -> str | None:
    """Begin a recording; a sentence if there can be none."""
    from ungil.errors import HookError

    try:
        from ungil.testing.recording import Recording

        config.stash[_RECORDING] = Recording()
        return None
    except ImportError as error:
        why = f"the native part of ungil cannot be loaded ({error})"
    except (HookError, OSError) as error:
        why = str(error)
    config.stash[_WHY_NOT] = why
    return why
