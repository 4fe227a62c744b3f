"""What a change of policy does: figures from before it beside those since."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from ungil.cli.top.figures import Figures
from ungil.formatting import clock_duration, digits, duration

LOOKS_BEFORE = 10
"""Of so many looks before a change is known what they showed."""
SETTLING_S = 0.5
"""What the first look after a change shows is of both policies, if it comes within this time."""


@dataclass(frozen=True)
class _Shown:
    """What one look showed."""

    span_s: float
    waited: float
    longest_wait_s: float
    handoffs: float


@dataclass
class Effect:
    """The policy in force, since when, and what was seen before and since."""

    policy: str = ""
    was: str = ""
    changed_s: float | None = None
    _before: Sequence[_Shown] = ()
    _latest: deque[_Shown] = field(default_factory=lambda: deque[_Shown](maxlen=LOOKS_BEFORE))

    def changed(self, policy: str, was: str) -> None:
        """Another policy is in force from now on."""
        self._before, self.policy, self.was = tuple(self._latest), policy, was
        self.changed_s = time.monotonic()
        self._latest.clear()

    def add(self, all_figures: Sequence[Figures]) -> None:
        """A look has shown this."""
        if self.changed_s is not None and time.monotonic() - self.changed_s < SETTLING_S:
            return
        if spans := [it.interval_s for it in all_figures if it.interval_s > 0]:
            self._latest.append(
                _Shown(
                    max(spans),
                    sum(it.waited for it in all_figures),
                    max(it.longest_wait_s for it in all_figures),
                    sum(it.handoffs for it in all_figures),
                )
            )

    def sentence(self) -> str:
        """What has changed; empty if nothing was."""
        if self.changed_s is None:
            return ""
        ago = clock_duration(time.monotonic() - self.changed_s)
        head = f"{self.was} → {self.policy}, {ago} ago"
        if not self._before or not self._latest:
            return f"{head}: looking ..."
        waited = [_mean([it.waited for it in shown], shown) for shown in self._both()]
        handoffs = [_mean([it.handoffs for it in shown], shown) for shown in self._both()]
        longest = [max(it.longest_wait_s for it in shown) for shown in self._both()]
        return (
            f"{head}: waited {waited[0]:.2f} → {waited[1]:.2f} s/s, "
            f"longest {duration(longest[0])} → {duration(longest[1])}, "
            f"handoffs {digits(handoffs[0])} → {digits(handoffs[1])}/s"
        )

    def _both(self) -> tuple[Sequence[_Shown], Sequence[_Shown]]:
        return self._before, tuple(self._latest)


def _mean(numbers: Sequence[float], shown: Sequence[_Shown]) -> float:
    spans = [it.span_s for it in shown]
    return sum(number * span for number, span in zip(numbers, spans, strict=True)) / sum(spans)
