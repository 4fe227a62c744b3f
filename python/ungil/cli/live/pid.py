"""The number of a process on the command line."""

from __future__ import annotations

import re
from typing import overload

import click

from ungil.errors import UsageError


@overload
def process_number(_ctx: click.Context, _param: click.Parameter, value: str) -> int: ...
@overload
def process_number(_ctx: click.Context, _param: click.Parameter, value: None) -> None: ...
def process_number(_ctx: click.Context, _param: click.Parameter, value: str | None) -> int | None:
    """`value` as a number, if there is one; UsageError if it is none of a process."""
    if value is None:
        return None
    if not re.fullmatch("[0-9]+", value) or not 0 < int(value) < 2**31:
        raise UsageError(f"PID: {value!r} is not the number of a process")
    return int(value)
