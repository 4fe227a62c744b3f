"""Limits for a part of a test."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import pytest

from ungil.limits import Judged, Limits
from ungil.testing.recording import Recording
from ungil.testing.verdict import broken_sentences


@contextmanager
def limited(recording: Recording, limits: Limits) -> Generator[list[Judged]]:
    """Fails the test if the block breaks `limits`; after it the list has what was judged."""
    result: list[Judged] = []
    with recording.span() as span:
        yield result
    result.append(span.judged)
    if broken := limits.broken(span.judged):
        pytest.fail(broken_sentences("call", broken), pytrace=False)
