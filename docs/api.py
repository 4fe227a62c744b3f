"""Writes docs/api.md: everything public of ungil, from its docstrings.

    python docs/api.py            write it
    python docs/api.py --check    fail, and say how, if it is not what this would write

What is public is what stands in the `__all__` of the modules below. Nothing is imported: griffe
reads the source, and the stub of the native part. A public thing without a docstring is an error.
"""

from __future__ import annotations

import argparse
import difflib
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from griffe import (
    Alias,
    Attribute,
    Class,
    Expr,
    ExprName,
    Function,
    GriffeLoader,
    Module,
    Object,
    ParameterKind,
)

ROOT = Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "docs" / "api.md"
MODULES = (
    "ungil",
    "ungil.gil",
    "ungil.metrics",
    "ungil.metrics.prometheus",
    "ungil.metrics.opentelemetry",
    "ungil.metrics.wsgi",
    "ungil.metrics.asgi",
    "ungil.metrics.django",
    "ungil.share",
    "ungil.share.joblib",
    "ungil.fanout",
    "ungil.fanout.nornir",
    "ungil.errors",
)
# Public as well, and left out of `__all__` because they are named as builtins are.
NAMED_AS_BUILTINS = {"ungil.share": ("deque", "dict", "list", "set")}
BUILTINS = {name for names in NAMED_AS_BUILTINS.values() for name in names}
# What the Python half of a class calls of its native half, and nobody else.
OF_THE_OTHER_HALF = {
    "alone",
    "extend_by",
    "memory",
    "reorder",
    "repeat",
    "set_all",
    "snapshot",
    "walk",
}
HELD = "ungil._native.Held"
STARS = {ParameterKind.var_positional: "*", ParameterKind.var_keyword: "**"}
WIDTH = 88
HEAD = """\
# The Python API

This page is made from the docstrings by `make api`; changes to it are lost.
[sharing.md](sharing.md), [fanout.md](fanout.md) and [scheduling.md](scheduling.md) explain how the
parts are used.
Signatures are those that type checkers see. Times are in seconds, unless a name ends in `_ns` or
`_ms`.
"""


class Undocumented(Exception):
    """Public things are missing, or have no docstring."""


class Page:
    """The document, as far as it is written, and what is wrong with what it describes."""

    def __init__(self, package: Module) -> None:
        self._package = package
        self._problems: list[str] = []
        self._public: set[str] = set()
        self._signatures = Signatures(package, self._public)

    def text(self, modules: tuple[str, ...] = MODULES) -> str:
        """The whole of it. Raises Undocumented with every reason for that."""
        found = [(module, list(self._things(module))) for module in modules]
        self._public.update(it.canonical_path for _, things in found for _, it in things)
        contents = [f"* [`{module}`](#{anchor(module)})" for module, _ in found]
        parts = [HEAD, "\n".join(contents)]
        for module, things in found:
            parts += self._module(module, things)
        strangers = sorted(self._signatures.strangers)
        self._problems += [f"{path} is in a signature, and is not public" for path in strangers]
        if self._problems:
            raise Undocumented("\n".join(self._problems))
        return "\n\n".join(part.strip("\n") for part in parts if part) + "\n"

    def _things(self, path: str) -> Iterator[tuple[str, Object]]:
        """What is public in a module, by name, in the order of the alphabet."""
        module = self._at(path)
        names = [*map(str, module.exports or ()), *NAMED_AS_BUILTINS.get(path, ())]
        if not names:
            self._problems.append(f"{path} has no __all__")
        for name in sorted(names, key=str.lower):
            if name in module.members:
                yield name, resolved(module.members[name])
            else:
                self._problems.append(f"{path}.{name} is in __all__, and is not there")

    def _at(self, path: str) -> Object:
        parts = path.split(".")[1:]
        return resolved(self._package[".".join(parts)]) if parts else self._package

    def _module(self, path: str, things: list[tuple[str, Object]]) -> Iterator[str]:
        yield f"## `{path}`"
        yield self._docstring(self._at(path))
        titles = {name: title(path, name, it) for name, it in things}
        yield "\n".join(f"* [{line}](#{anchor(line)})" for line in titles.values())
        for name, it in things:
            yield f"### {titles[name]}"
            home = it.canonical_path.rpartition(".")[0]
            if home != path and home in MODULES:
                where = title(home, it.name, it)
                yield f"The same as [`{it.canonical_path}`](#{anchor(where)})."
            else:
                yield from self._thing(name, it)

    def _thing(self, name: str, it: Object) -> Iterator[str]:
        if isinstance(it, Class):
            yield from self._class(name, it)
        elif isinstance(it, Function):
            yield code(*self._signatures.all(it))
            yield self._docstring(it)
        elif isinstance(it, Attribute):
            yield code(self._signatures.value(it))
            yield self._docstring(it)

    def _class(self, name: str, it: Class) -> Iterator[str]:
        shown = [base for base in it.bases if not self._is_internal(base)]
        bases = f"({', '.join(map(self._signatures.expression, shown))})" if shown else ""
        made = it.members.get("__init__") or it.members.get("__new__")
        said = "" if made is None or made.docstring is None else made.docstring.value
        decorators = [f"@{decorator.value}" for decorator in it.decorators if is_dataclass(it)]
        lines = [*decorators, f"class {name}{bases}"]
        # The fields of a dataclass are told below, and users do not make what others make.
        if isinstance(made, Function) and not said.startswith("Made by") and not is_dataclass(it):
            lines.append(self._signatures.one(made, name))
        yield code(*lines)
        yield self._docstring(it)
        yield said
        attributes, functions = self._members(it)
        if attributes:
            yield "\n".join(
                f"* `{self._signatures.value(attribute)}`: {paragraph(self._docstring(attribute))}"
                for attribute in attributes
            )
        for overloads in functions:
            yield code(*(line for one in overloads for line in self._signatures.all(one)))
            said = [one for one in overloads if one.docstring is not None]
            yield self._docstring((said or overloads)[-1])

    def _members(self, it: Class) -> tuple[list[Attribute], list[list[Function]]]:
        """Attributes and methods of a class and of its internal bases, in the order of source."""
        attributes: dict[str, Attribute] = {}
        functions: dict[str, list[Function]] = {}
        for owner in (it, *it.mro()):
            if owner is not it and owner.canonical_path in self._public:
                continue
            for name in {**owner.members, **owner.overloads}:
                if name.startswith("_") or name in OF_THE_OTHER_HALF:
                    continue
                if name in attributes or name in functions:
                    continue
                member = owner.members.get(name)
                if isinstance(member, Attribute):
                    attributes[name] = member
                elif isinstance(member, Function):
                    functions[name] = [member]
                elif name in owner.overloads and member is None:
                    functions[name] = owner.overloads[name]
        return list(attributes.values()), list(functions.values())

    def _is_internal(self, base: object) -> bool:
        path: str = getattr(base, "canonical_path", str(base))
        return path.startswith("ungil.") and path not in self._public

    def _docstring(self, it: Object) -> str:
        if it.docstring is None:
            self._problems.append(f"{it.path} has no docstring")
            return ""
        return it.docstring.value.strip()


def resolved(it: Object | Alias) -> Object:
    """What an imported name stands for."""
    return it.final_target if isinstance(it, Alias) else it


def title(module: str, name: str, it: Object) -> str:
    """The heading of a public thing."""
    kind = "value" if isinstance(it, Attribute) else it.kind.value
    if isinstance(it, Class) and is_exception(it):
        kind = "exception"
    return f"{kind} `{module}.{name}`"


def is_dataclass(it: Class) -> bool:
    """Whether its constructor is made from its fields."""
    return "dataclass" in it.labels


def is_exception(it: Class) -> bool:
    """Whether a class is an exception: its bases lead to a builtin one."""
    ends = [base for one in (it, *it.mro()) for base in map(str, one.bases)]
    return any(end.endswith(("Exception", "Error")) for end in ends)


def anchor(heading: str) -> str:
    """How code-hosting sites link to a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def code(*lines: str) -> str:
    """A block of code; it is no program, so no "python" that type checkers would look at."""
    return "```py\n" + "\n".join(lines) + "\n```"


def paragraph(text: str) -> str:
    """Text in one line, as an item of a list has it."""
    return " ".join(text.split())


class Signatures:
    """Writes signatures as users see them: with public names, and without what is ours alone."""

    def __init__(self, package: Module, public: set[str]) -> None:
        self._package = package
        self._public = public
        self.strangers: set[str] = set()
        """Classes of ours that stand in a signature and are not public."""

    def expression(self, written: object) -> str:
        """An annotation, a base or a default."""
        if not isinstance(written, Expr):
            return str(written)
        text = "".join(
            self._name(part) if isinstance(part, ExprName) else str(part)
            for part in written.iterate(flat=True)
        )
        # What makes a proxy is no business of who makes a lock.
        return re.sub(r" \| _native\.Held\b|\b(_native|builtins)\.", "", text)

    def _name(self, name: ExprName) -> str:
        found = self._found(name)
        if isinstance(found, Class) and not found.name.startswith("_"):
            path = found.canonical_path
            if path not in self._public and path != HELD:
                self.strangers.add(path)
            return f"share.{name.name}" if found.name in BUILTINS else name.name
        # A variable of types or an alias.
        return name.name if isinstance(found, Module) else name.name.removeprefix("_")

    def _found(self, name: ExprName) -> Object | None:
        """What of ours a name means, if it does."""
        module = name.parent.module if isinstance(name.parent, Object) else None
        if name.name in BUILTINS and module is not None and name.name not in module.members:
            return None  # griffe would look for it in the package around the module, too.
        try:
            return resolved(self._package[name.canonical_path.removeprefix("ungil.")])
        except KeyError:
            return None

    def value(self, it: Attribute) -> str:
        """A name with its type, or with what it stands for."""
        if it.annotation is None or str(it.annotation) == "TypeAlias":
            return it.name if it.value is None else f"{it.name} = {self.expression(it.value)}"
        return f"{it.name}: {self.expression(it.annotation)}"

    def all(self, it: Function) -> list[str]:
        """How a function can be called: its overloads, or itself."""
        return [self.one(overload) for overload in it.overloads or [it]]

    def one(self, it: Function, made: str | None = None) -> str:
        """One way to call a function, on several lines if it is long; or to make a `made`."""
        before = "@classmethod\n" if "classmethod" in it.labels else ""
        before += "async " if "async" in it.labels else ""
        head = f"{before}def {it.name}" if made is None else made
        returns = "" if made or it.returns is None else f" -> {self.expression(it.returns)}"
        listed = list(self._parameters(it))
        line = f"{head}({', '.join(listed)}){returns}"
        if len(line.rpartition("\n")[2]) <= WIDTH:
            return line
        return f"{head}(\n" + "".join(f"    {one},\n" for one in listed) + f"){returns}"

    def _parameters(self, it: Function) -> Iterator[str]:
        """The parameters of a function, without the object that it is a method of."""
        is_method = isinstance(it.parent, Class) and "staticmethod" not in it.labels
        shown = [one for one in list(it.parameters)[is_method:] if one.name != "held"]
        before: ParameterKind | None = None
        for one in shown:
            if before is ParameterKind.positional_only and one.kind is not before:
                yield "/"
            if one.kind is ParameterKind.keyword_only and before not in (
                ParameterKind.keyword_only,
                ParameterKind.var_positional,
            ):
                yield "*"
            stars = "" if one.kind is None else STARS.get(one.kind, "")
            text = stars + one.name
            if one.annotation is not None:
                text += f": {self.expression(one.annotation)}"
            if one.default is not None and not stars:
                text += f" = {self.expression(one.default)}"
            yield text
            before = one.kind
        if before is ParameterKind.positional_only:
            yield "/"


def load(folder: Path = ROOT / "python", package: str = "ungil") -> Module:
    """Read the source of a package."""
    loader = GriffeLoader(search_paths=[folder], allow_inspection=False)
    loaded = loader.load(package, try_relative_path=False)
    loader.resolve_aliases(implicit=False, external=False)
    assert isinstance(loaded, Module)
    return loaded


def main() -> None:
    """Write the document or check it; the status is 1 if there is anything to say."""
    arguments = argparse.ArgumentParser(description="Write docs/api.md from the docstrings.")
    arguments.add_argument("--check", action="store_true", help="only compare")
    only_check: bool = arguments.parse_args().check
    try:
        text = Page(load()).text()
    except Undocumented as error:
        sys.exit(str(error))
    if not only_check:
        DOCUMENT.write_text(text)
        return
    old = DOCUMENT.read_text() if DOCUMENT.exists() else ""
    difference = difflib.unified_diff(
        old.splitlines(), text.splitlines(), "docs/api.md", "what make api writes", lineterm=""
    )
    if lines := list(difference):
        sys.exit("\n".join([*lines, "docs/api.md is not what `make api` writes: run it"]))


if __name__ == "__main__":
    main()
