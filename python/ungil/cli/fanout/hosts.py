"""The hosts of `ungil fanout`: a file of lines, of CSV, or of JSON lines, read as it is needed.

| format  | a host is                                  | recognised by                    |
|---------|--------------------------------------------|----------------------------------|
| `lines` | a word; `#` begins a comment               | nothing else fits                |
| `csv`   | a row; the first row names the fields      | the file is named `.csv`         |
| `jsonl` | an object, or a string, in a line          | `.jsonl`, `.ndjson`; a `{` first |

A line that is no host is an item as well: it fails with a sentence that names the line, and the
others run. A host that was there before is left out, and counted.
"""

from __future__ import annotations

import codecs
import csv
import io
import json
import re
import shlex
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

from ungil.errors import UsageError
from ungil.fanout.frontend import NamedFailure
from ungil.formatting import reason

Fields = dict[str, Any]

FORMATS = ("lines", "csv", "jsonl")
_SUFFIXES = {".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl"}

# A longer line is no host; it is read in pieces and not kept.
_LONGEST_LINE = 1 << 16

_WIDE_MARKS = {
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}


# The address of a host in IPv6, as in URLs. What else begins so is an array, or a section.
_ADDRESS = re.compile(r"\[[0-9A-Fa-f:.]*:[^]]*\]")


class Host:
    """One host: its name, its fields as text, and the value that a function is called with.

    Two with equal values are the same host.
    """

    __slots__ = ("fields", "name", "value")

    def __init__(self, name: str, fields: dict[str, str], value: str | Fields) -> None:
        self.name = name
        self.fields = fields
        self.value = value

    @property
    def identity(self) -> str:
        """What tells it from others."""
        return self.value if isinstance(self.value, str) else json.dumps(self.value, sort_keys=True)


class BadLine(NamedFailure):
    """A line of the hosts that is no host."""

    @property
    def failure(self) -> str:
        """The way in which all of them fail."""
        return "bad line"


class NoHost:
    """What stands in the place of a bad line, so that it has an outcome."""

    __slots__ = ("error", "name")

    def __init__(self, name: str, error: BadLine) -> None:
        self.name = name
        self.error = error

    @property
    def identity(self) -> str:
        """What tells it from others."""
        return self.name


class _Mistake(Exception):
    """What is wrong with a line, without its number."""


class Interrupted(Exception):
    """Nobody wants more hosts: raised where the next line is waited for."""


class Hosts:
    """The hosts of a file, each once, and a `NoHost` for each line that is none.

    `-` is the standard input. UsageError if the file cannot be read, or is nothing of the kind.
    """

    def __init__(self, path: str, format: str | None = None, *, was_named: bool = True) -> None:
        self.path = path
        self.was_named = was_named
        """Whether somebody has said that they are there."""
        self.name = "the standard input" if path == "-" else path
        self.repeated = 0
        self.first_repeated = ""
        """Which line has a host for the second time, and which host."""
        self._waits = False
        self._file = self._opened()
        self._begin = self._first_bytes()
        self.format = format or self._recognised()
        self._refuse_brackets()
        self._number = 0
        self._lines = self._numbered()
        self._hosts = self._each_once()
        self._count: int | None = None
        # The fields that every host has; None if each has its own.
        self.fields: list[str] | None = ["host"]
        self._parse: Callable[[bytes], Host | None] = self._plain
        if self.format == "csv":
            self.fields = self._header()
            self._parse = self._row
        elif self.format == "jsonl":
            self.fields = None
            self._parse = self._object

    def __len__(self) -> int:
        """About how many there are. TypeError if only the end of the input will tell."""
        if self._count is None:
            raise TypeError("nobody has counted the hosts")
        return self._count - self.repeated

    def count(self) -> None:
        """Reads the file once to know how many lines there are, if it can be read twice."""
        if self.path == "-" or not self._file.seekable():
            return
        with Path(self.path).open("rb") as file:
            lines = sum(1 for line in file if (word := line.strip()) and word[:1] != b"#")
        self._count = max(0, lines - (self.format == "csv"))

    def __iter__(self) -> Iterator[Host | NoHost]:
        return self

    def __next__(self) -> Host | NoHost:
        return next(self._hosts)

    def interrupt(self) -> None:
        """Ends the wait for a line, if there is one; for the handler of a signal."""
        if self._waits:
            raise Interrupted

    def _each_once(self) -> Iterator[Host | NoHost]:
        seen: set[str] = set()
        for line in self._lines:
            try:
                host = self._parse(line)
            except _Mistake as mistake:
                where = f"{self.name}, line {self._number}"
                yield NoHost(where, BadLine(str(mistake)))
                continue
            if host is None:
                continue
            identity = host.identity
            if identity in seen:
                self.repeated += 1
                if self.repeated == 1:
                    self.first_repeated = f"line {self._number}: {host.name}"
                continue
            seen.add(identity)
            yield host

    def _opened(self) -> BinaryIO:
        if self.path == "-":
            if not has_input():
                raise UsageError("there is no standard input to read hosts from")
            return sys.stdin.buffer
        try:
            file = Path(self.path).open("rb")  # noqa: SIM115
        except OSError as error:
            raise UsageError(f"cannot read the hosts {self.path!r}: {reason(error)}") from error
        return file

    def _first_bytes(self) -> bytes:
        """The first line, which says what kind of file it is."""
        begin = self._read(_LONGEST_LINE)
        for mark, encoding in _WIDE_MARKS.items():
            if begin.startswith(mark):
                raise UsageError(
                    f"{self.name} is {encoding}, but hosts must be UTF-8: convert it with "
                    f"iconv -f {encoding} -t UTF-8"
                )
        return begin.removeprefix(codecs.BOM_UTF8)

    def _recognised(self) -> str:
        suffix = Path(self.path).suffix.lower()
        if suffix in _SUFFIXES:
            return _SUFFIXES[suffix]
        return "jsonl" if self._begin.lstrip().startswith(b"{") else "lines"

    def _refuse_brackets(self) -> None:
        begin = self._begin.strip()
        if self.format == "csv" or not _is_in_brackets(begin.decode(errors="replace")):
            return
        array = "hosts.json" if self.path == "-" else self.path
        raise UsageError(
            f"{self.name} begins with '[', which no host does; write one host per line, CSV or "
            f"JSON lines (of a JSON array, jq -c '.[]' {shlex.quote(array)} makes these)"
        )

    def _read(self, most: int) -> bytes:
        try:
            self._waits = True
            return self._file.readline(most)
        except Interrupted:
            return b""
        except IsADirectoryError:
            raise UsageError(f"cannot read the hosts {self.path!r}: is a directory") from None
        except OSError as error:
            raise UsageError(f"cannot read {self.name}: {reason(error)}") from error
        finally:
            self._waits = False

    def _numbered(self) -> Iterator[bytes]:
        """The lines; `_number` is the number of the last."""
        line = self._begin
        while line:
            self._number += 1
            while (
                len(line) >= _LONGEST_LINE
                and not line.endswith(b"\n")
                and (more := self._read(_LONGEST_LINE))
            ):
                line = line[:_LONGEST_LINE] + more[-1:]
            yield line
            line = self._read(_LONGEST_LINE)

    def _plain(self, line: bytes) -> Host | None:
        text = _decoded(line).strip()
        if text.startswith("#") or not text:
            return None
        words = text.split()
        for place, word in enumerate(words):
            if word.startswith("#"):
                del words[place:]
                break
        if len(words) > 1:
            raise _Mistake(
                f"{len(words)} words, but a line is one host; for several fields, use CSV or JSON "
                "lines"
            )
        if _is_in_brackets(words[0]):
            raise _Mistake(f"{words[0]!r} begins with '['")
        name = _checked(words[0])
        return Host(name, {"host": name}, name)

    def _header(self) -> list[str]:
        for line in self._lines:
            text = _decoded_header(line, self.name)
            if not text.strip():
                continue
            names = [name.strip() for name in next(csv.reader([text]))]
            if "host" not in names:
                raise UsageError(
                    f"the first line of {self.name} names the fields {', '.join(names)}, "
                    "and none of them is host"
                )
            twice = next((name for name in names if name and names.count(name) > 1), None)
            if twice is not None:
                raise UsageError(
                    f"the first line of {self.name} names the field {twice!r} more than once; give "
                    "each column a name of its own"
                )
            return names
        raise UsageError(f"{self.name} is empty, but the first line of CSV names the fields")

    def _row(self, line: bytes) -> Host | None:
        text = _decoded(line)
        if not text.strip():
            return None
        names = self.fields or []
        # A field in quotes may contain the end of a line.
        while text.count('"') % 2 and (more := next(self._lines, b"")):
            text += _decoded(more)
        try:
            values = next(csv.reader(io.StringIO(text, newline=""), strict=True))
        except csv.Error as error:
            raise _Mistake(f"not CSV ({error})") from None
        if len(values) != len(names):
            many = f"{len(values)} field{'' if len(values) == 1 else 's'}"
            raise _Mistake(f"{many}, but the first line names {len(names)}")
        fields = {name: value.strip() for name, value in zip(names, values, strict=True)}
        return Host(_checked(fields["host"]), fields, fields)

    def _object(self, line: bytes) -> Host | None:
        text = _decoded(line)
        if not text.strip():
            return None
        try:
            value: Any = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise _Mistake(f"not JSON ({error})") from None
        if isinstance(value, str):
            return Host(_checked(value), {"host": value}, value)
        if not isinstance(value, dict):
            raise _Mistake('neither a string nor an object with the field "host"')
        item = cast("Fields", value)
        if "host" not in item:
            raise _Mistake('an object without the field "host"')
        if not isinstance(item["host"], str):
            raise _Mistake(f'the field "host" is {json.dumps(item["host"])}, not a string')
        fields = {name: it if isinstance(it, str) else json.dumps(it) for name, it in item.items()}
        return Host(_checked(fields["host"]), fields, item)


def has_input() -> bool:
    """Whether there is a standard input. What stands in for a closed one has no bytes."""
    return hasattr(sys.stdin, "buffer")


def _decoded(line: bytes) -> str:
    if len(line) > _LONGEST_LINE:
        raise _Mistake(f"longer than {_LONGEST_LINE:,} bytes")
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        raise _Mistake(f"not UTF-8 (byte {line[error.start]:#04x} at {error.start + 1})") from None


def _decoded_header(line: bytes, name: str) -> str:
    try:
        return _decoded(line)
    except _Mistake as mistake:
        raise UsageError(f"the first line of {name} is {mistake}") from None


def _is_in_brackets(text: str) -> bool:
    return text.startswith("[") and _ADDRESS.match(text) is None


def _checked(name: str) -> str:
    """The name of a host, if it can be one."""
    if not name:
        raise _Mistake("no host")
    if name.startswith("-"):
        # A command would take it for an option, and some options run commands.
        raise _Mistake(f"{name!r} begins with a dash")
    if not name.isprintable():
        raise _Mistake(f"{name!r} has characters that cannot be printed")
    return name
