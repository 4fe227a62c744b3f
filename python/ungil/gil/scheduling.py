"""Who gets the GIL of this very program next.

A program that was started by `ungil run`, or has called `ungil.gil.install()`, can change the
policy of its process and the level of its threads at any time.
"""

import threading
from dataclasses import dataclass
from types import TracebackType

from ungil import _native
from ungil.errors import NotInstalled
from ungil.gil.installation import is_off


@dataclass(frozen=True, slots=True)
class Policy:
    """How the GIL is scheduled."""

    name: str
    """`stock` is CPython's own way; docs/scheduling.md says what `interactive`, `fair`, `batch` and
    `priority` do"""
    quantum_ms: float | None
    """how many milliseconds a thread runs before an equal one is let in; None under `stock`, where
    `sys.getswitchinterval()` says it"""


class PolicyChange:
    """A policy that this process was given. A `with` block restores the one before at its end."""

    __slots__ = ("before", "policy")

    before: Policy
    """the policy that was in force before, which the end of a `with` block restores"""
    policy: Policy
    """the policy that was in force after the change"""

    def __init__(self, before: Policy, policy: Policy) -> None:
        """Made by `set_policy`."""
        self.before = before
        self.policy = policy

    def __enter__(self) -> "PolicyChange":
        """The process has its policy already."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Restore the policy before, also if the block raises, whatever was set meanwhile."""
        _native.gil_set_policy(self.before.name, self.before.quantum_ms)

    def __repr__(self) -> str:
        """What was changed."""
        return f"<PolicyChange {self.policy}, before {self.before}>"


def policy() -> Policy:
    """The policy of this process that is in force now.

    Raises `NotInstalled` if the process is not scheduled.
    """
    in_force = _native.gil_policy()
    if in_force is None:
        raise _not_scheduled()
    return Policy(*in_force)


def set_policy(name: str | None = None, *, quantum_ms: float | None = None) -> PolicyChange:
    """Change the policy of this process, at once and for all its threads.

        gil.set_policy("batch", quantum_ms=50)  # from now on
        with gil.set_policy("interactive"):  # in this block
            ...

    It stays until it is changed, or until the end of a `with` block. Waiting threads start their
    wait again. `quantum_ms` is in milliseconds; without it, the policy uses its own default.
    `set_policy(quantum_ms=2)` changes only the quantum. Forked children inherit both.

    Raises ValueError for an unknown name or an impossible quantum, TypeError if neither is given,
    `NotInstalled` if the process is not scheduled.
    """
    if name is None and quantum_ms is None:
        raise TypeError("set_policy() needs the name of a policy, a quantum_ms, or both")
    before = policy()
    _native.gil_set_policy(before.name if name is None else name, quantum_ms)
    return PolicyChange(before, policy())


class LevelChange:
    """A level that a thread was given. A `with` block restores the one before at its end."""

    __slots__ = ("_thread", "before", "level")

    before: str
    """the level that the thread had before, which the end of a `with` block restores"""
    level: str
    """the level that it was given"""

    def __init__(self, before: str, level: str) -> None:
        """Made by `priority`."""
        self.before = before
        self.level = level
        self._thread = threading.get_ident()

    def __enter__(self) -> "LevelChange":
        """The thread has its level already."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Give the thread the level that it had before, also if the block raises."""
        if threading.get_ident() != self._thread:
            raise RuntimeError("only the thread itself can restore its level")
        _native.gil_set_level(self.before)

    def __repr__(self) -> str:
        """What was changed."""
        return f"<LevelChange {self.level!r}, before {self.before!r}>"


def level() -> str:
    """The level of the calling thread; "normal" is what every thread begins with.

    Raises `NotInstalled` if the process is not scheduled.
    """
    found = _native.gil_level()
    if found is None:
        raise _not_scheduled()
    return found


def priority(level: str) -> LevelChange:
    """Give the calling thread the level "low", "normal" or "high", at once.

        with gil.priority("high"):  # in this block; without `with`, from now on
            ...

    It stays until it is changed, or until the end of a `with` block. Around an `await`, it applies
    to all tasks that the event loop runs in this thread meanwhile. Under `interactive`, `fair` and
    `batch` a level is worth four times the share of the one below; under `priority` a higher level
    goes first; under `stock` it means nothing.

    Raises ValueError for an unknown level, `NotInstalled` if the process is not scheduled.
    Ending the block in another thread raises RuntimeError.
    """
    before = _native.gil_set_level(level)
    if before is None:
        raise _not_scheduled()
    return LevelChange(before, level)


def _not_scheduled() -> NotInstalled:
    if is_off():
        return NotInstalled(
            "this Python is free-threaded and its GIL is off, so there is no GIL to schedule"
        )
    return NotInstalled(
        "the GIL of this process is not scheduled: call ungil.gil.install() first, or start the "
        "program with `ungil run`"
    )
