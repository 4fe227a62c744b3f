"""What a check of `ungil doctor` has found."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Status(StrEnum):
    """How a check ended."""

    OK = "ok"
    WARN = "warn"
    """Something is missing, and tracing works without it."""
    FAIL = "fail"
    """Tracing does not work."""


@dataclass(frozen=True)
class Check:
    """One thing that was tried."""

    status: Status
    name: str
    text: str
    """What was found."""
    advice: str = ""
    """What to do about it; empty if there is nothing to do."""
