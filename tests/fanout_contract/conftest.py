"""What every mode of a fan-out promises, in one test for all of them.

A test that takes `mode` runs in every mode, one that takes `way` also as a stream. One that takes
`streaming` runs in the modes that stream, one that takes `blocking` in those for functions, one
that takes `isolating` in those whose items have a context each.

What one mode alone promises is tested in tests/test_fanout_NAME.py, with the name of the mode.
"""

from __future__ import annotations

from collections.abc import Generator

import pytest
from fanout_contract.modes import GREEN, MODES, STREAMS, THREADS, WAYS, Mode, Way

CHOICES: dict[str, tuple[Mode | Way, ...]] = {
    "mode": MODES,
    "way": WAYS,
    "streaming": STREAMS,
    "blocking": (THREADS, GREEN),
    "isolating": tuple(way for way in WAYS if way.mode.isolates),
}


def mode_of(choice: Mode | Way) -> Mode:
    return choice.mode if isinstance(choice, Way) else choice


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    for name, choices in CHOICES.items():
        if name in metafunc.fixturenames:
            metafunc.parametrize(name, [_param(choice) for choice in choices])


def _param(choice: Mode | Way) -> object:
    marks = [pytest.mark.patched] if mode_of(choice) is GREEN else []
    return pytest.param(choice, id=str(choice), marks=marks)


@pytest.fixture(autouse=True)
def _prepared(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Generator[None]:
    """Nothing is left of a fan-out when its test has ended."""
    params = request.node.callspec.params
    [mode] = [mode_of(params[name]) for name in CHOICES if name in params]
    mode.begin(monkeypatch)
    yield
    mode.end()
