"""What is done, written down, so that another run need not do it again.

A journal is a file of JSON lines. The first says what it is the journal of; each of the others is
an item that has finished, with the key that the item is known by:

    {"ungil_journal": 1, "function": "tasks.backup", "key": null}
    {"ok": true, "key": "sw1", "value": 17}
    {"ok": false, "key": "sw2", "kind": "timeout", "error": "not done within 30 s"}

A line is written before anybody can take the item's outcome, by one call of the system. So a
process that is killed loses what ran in that moment, and nothing else. A machine that loses its
power loses what the system had not put on the disk yet. A last line without its end, from a full
disk for example, is cut off when the journal is opened again.

Items that succeeded are done; those that failed are tried again. What was done before a run began
is known from the start of it: two equal items of one run both run.
"""

import fcntl
import json
import os
import stat
import sys
from functools import partial

from ungil._native import CutOff
from ungil.fanout._failures import Stopped, failure, sentence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from io import BufferedReader
    from types import ModuleType
    from typing import Any

    from ungil._native import Outcome

_VERSION = 1
_FIRST = b'{"ungil_journal": '
_DONE = '{"ok": true, "key": '
_PIECE = 1 << 14

_encode = json.JSONEncoder().encode
_encode_key = json.JSONEncoder(sort_keys=True).encode
_decode = json.JSONDecoder().raw_decode


class Journal:
    """A journal that is open, and locked against other runs.

    `function` is what the items are done by, and `key` gives what an item is known by: something
    that JSON can hold, by default the item itself. A journal of another function or key is refused.

    Raises ValueError for a file that is no journal, or another one's, RuntimeError for one that
    another run has open, and OSError.
    """

    def __init__(
        self,
        path: "str | os.PathLike[str]",
        function: str,
        key: "Callable[[Any], object] | None" = None,
    ) -> None:
        self.path = os.fspath(path)
        self._function = function
        self._key = key
        # Where the line of each item that is done begins: the values stay in the file.
        self._done: dict[str, int] = {}
        # What was read of them last, and where it begins.
        self._piece = (0, b"")
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        self._file: BufferedReader = os.fdopen(os.open(self.path, flags, 0o666), "rb")
        try:
            if not stat.S_ISREG(os.fstat(self._file.fileno()).st_mode):
                raise ValueError(
                    f"the journal {self.path!r} is not a regular file; name another one"
                )
            self._lock()
            self._read()
        except BaseException:
            self._file.close()
            raise

    def __len__(self) -> int:
        """How many items earlier runs have done."""
        return len(self._done)

    def resume(self, item: "Any") -> "tuple[Any] | None":
        """The value of an item that an earlier run has done, in a tuple; else None.

        A value that JSON could not hold is None. TypeError if the item has no key.
        """
        place = self._done.get(self._key_of(item))
        if place is None:
            return None
        return (json.loads(self._line_at(place)).get("value"),)

    def finished(self, outcome: "Outcome") -> None:
        """Writes down what became of an item. OSError if that cannot be done."""
        error = outcome.exception
        if error is None:
            line = f"{_DONE}{self._key_of(outcome.item)}{_value(outcome.value)}}}\n"
        elif not isinstance(error, CutOff | Stopped):
            why = f'"kind": {_encode(failure(error))}, "error": {_encode(sentence(error))}'
            line = f'{{"ok": false, "key": {self._key_of(outcome.item)}, {why}}}\n'
        else:
            return  # It runs again.
        self._write(line)

    def close(self) -> None:
        """Lets go of the file."""
        self._file.close()

    def __del__(self) -> None:
        # A fan-out that nobody has iterated is never closed.
        if hasattr(self, "_file"):
            self.close()

    def _key_of(self, item: "Any") -> str:
        key = item if self._key is None else self._key(item)
        try:
            return _encode_key(key)
        except (TypeError, ValueError, RecursionError) as error:
            wanted = (
                "key, a function that returns a text for each item"
                if self._key is None
                else ("a key that JSON can hold")
            )
            raise TypeError(f"the journal needs {wanted}: {key!r} is none ({error})") from error

    def _line_at(self, place: int) -> bytes:
        # The file's own position is moved by whoever writes meanwhile.
        begin, piece = self._piece
        if not begin <= place < begin + len(piece):
            begin, piece = place, b""
        while (end := piece.find(b"\n", place - begin)) < 0:
            more = os.pread(self._file.fileno(), _PIECE, begin + len(piece))
            if not more:
                raise ValueError(f"the journal {self.path!r} was cut off while it was in use")
            begin, piece = place, piece[place - begin :] + more
        self._piece = begin, piece
        return piece[place - begin : end]

    def _write(self, line: str) -> None:
        data = line.encode()
        try:
            while data:
                data = data[os.write(self._file.fileno(), data) :]
        except OSError as error:
            raise OSError(error.errno, error.strerror, self.path) from error

    def _lock(self) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RuntimeError(
                f"the journal {self.path!r} is in use by another run: wait until that ends, or "
                "name another file"
            ) from None

    def _read(self) -> None:
        """Takes in what is done; begins the journal if there is none."""
        place = 0
        for number, line in enumerate(self._file, 1):
            if number == 1 and not line.startswith(_FIRST[: len(line)]):
                raise ValueError(f"{self.path!r} is not a journal of a fan-out; name another file")
            if not line.endswith(b"\n"):
                os.truncate(self._file.fileno(), place)
                break
            try:
                if number == 1:
                    self._check(json.loads(line))
                else:
                    self._take(line.decode(), place)
            except (ValueError, KeyError, TypeError) as error:
                if isinstance(error, _Refused):
                    raise ValueError(str(error)) from None
                raise ValueError(
                    f"line {number} of the journal {self.path!r} is damaged; remove that line, "
                    "and ungil does its item again"
                ) from error
            place += len(line)
        if place == 0:
            first = {"ungil_journal": _VERSION, "function": self._function, "key": self._key_name}
            self._write(f"{_encode(first)}\n")

    @property
    def _key_name(self) -> str | None:
        return None if self._key is None else qualified_name(self._key)

    def _check(self, first: "dict[str, Any]") -> None:
        if first["ungil_journal"] != _VERSION:
            raise _Refused(f"the journal {self.path!r} comes from a newer version of ungil")
        for name, mine in (("function", self._function), ("key", self._key_name)):
            if first[name] != mine:
                raise _Refused(
                    f"the journal {self.path!r} was written with {name} {first[name]}, not {mine}: "
                    "name another file, or remove it to do everything again"
                )

    def _take(self, line: str, place: int) -> None:
        if line.startswith(_DONE):
            # As it was written here: a million lines are read in the time that this takes.
            _, end = _decode(line, len(_DONE))
            self._done[line[len(_DONE) : end]] = place
        else:
            entry = json.loads(line)
            if entry["ok"]:
                self._done[_encode_key(entry["key"])] = place


class _Refused(ValueError):
    """The journal is a good one, of something else."""


def _value(value: "Any") -> str:
    try:
        return f', "value": {_encode(value)}'
    except (TypeError, ValueError, RecursionError):
        return ""


def qualified_name(fn: "Callable[..., Any]") -> str:
    """How a function is called in journals: the same in every run of the same program."""
    while (inner := getattr(fn, "func", None)) is not None and isinstance(fn, partial):
        fn = inner
    module = getattr(fn, "__module__", None) or type(fn).__module__
    name = getattr(fn, "__qualname__", None) or type(fn).__qualname__
    if module == "__main__":
        module = _name_of_main(sys.modules["__main__"])
    return f"{module}.{name}"


def _name_of_main(main: "ModuleType") -> str:
    """The name under which others would import the program."""
    spec = main.__spec__
    if spec is not None:
        return spec.name.removesuffix(".__main__")
    path = getattr(main, "__file__", None)
    return "__main__" if path is None else path.rpartition("/")[2].removesuffix(".py")
