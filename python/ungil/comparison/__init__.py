"""Two sides of traces, before and after: what changed, and whether that is more than the noise.

`compare` makes a `Comparison` of measures; `text` and `page` show it, `data` is its JSON.
"""

from __future__ import annotations

from ungil.comparison.compared import Comparison, compare
from ungil.comparison.runs import Run, read_run

__all__ = ["Comparison", "Run", "compare", "read_run"]
