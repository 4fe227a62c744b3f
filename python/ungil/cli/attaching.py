"""What commands say of a process that runs: how it was attached to, or why it cannot be."""

from __future__ import annotations

from ungil._native import look_at_recorded
from ungil.cli import proc
from ungil.errors import UsageError
from ungil.formatting import duration, reason


def way_in(stopped_s: float | None) -> str:
    """How a process was attached to, from what `Recorder.attach` returned."""
    if stopped_s is None:
        return "through its control page"
    return f"by ptrace: it stopped one of its threads for {duration(stopped_s)}"


def refuse_if_recorded(pid: int, who: str) -> None:
    """UsageError if `who` would end the recording of process `pid` by another ungil.

    A process tells one recorder at a time, and the other one would not know that it is over.
    """
    if look_at_recorded(pid) is not None:
        raise UsageError(
            f"another ungil is recording process {pid}, and {who} would end that recording; "
            f"wait until it ends, or look once with: ungil dump {pid}"
        )


def refusal(pid: int, error: OSError | RuntimeError, cannot_be: str = "attached to") -> UsageError:
    """What the native part says, in a sentence about process `pid`."""
    if not proc.is_mounted():
        return UsageError(f"process {pid} cannot be inspected: {proc.ABSENT}")
    if isinstance(error, FileNotFoundError | ProcessLookupError):
        return UsageError(f"there is no process {pid}")
    why = reason(error) if isinstance(error, OSError) else str(error)
    return UsageError(f"process {pid} cannot be {cannot_be}: {why}")
