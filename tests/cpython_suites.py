"""CPython's own tests of a builtin type, run against the shared type that stands in for it.

The tests are those of the running interpreter. Their module is compiled once more, and in that copy
the builtin's name, and its displays (`{...}`, `[...]`) in the wanted class, mean the shared type.
"""

import ast
import importlib
import inspect
import traceback
import types
import unittest
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from ungil import share

try:
    support: Any = importlib.import_module("test.support")
except ImportError as error:
    raise ImportError(
        "this Python lacks CPython's `test` package: install it "
        "(Debian: libpython3-testsuite), or make .venv with another Python"
    ) from error

HEAP_SIZE = 1 << 30
# The syntax that makes a builtin without naming it.
DISPLAYS: dict[type, tuple[type[ast.expr], ...]] = {
    dict: (ast.Dict, ast.DictComp),
    list: (ast.List, ast.ListComp),
    set: (ast.Set, ast.SetComp),
}


def shared_in_own_heap(builtin: Callable[..., object], shared: type) -> type:
    """Make a class that is called like `builtin` and returns a `shared` in a heap of its own.

    It can be asked for `isinstance`, and be derived from, though what a derived class makes is
    no instance of it.
    """
    heap = share.Heap(max_size=HEAP_SIZE)

    class InHeap(type(shared)):
        def __call__(cls, *arguments: object, **keywords: object) -> object:
            return heap.share(builtin(*arguments, **keywords))

        def __instancecheck__(cls, instance: object) -> bool:
            return isinstance(instance, shared)

    return InHeap(shared.__name__, (shared,), {"__slots__": ()})


def suite(
    module: str,
    name: str,
    *,
    names: Mapping[str, object] | None = None,
    attributes: Mapping[str, object] | None = None,
    displays: tuple[type, ...] = (),
    omitted: Mapping[str, str],
) -> type[unittest.TestCase]:
    """Return the test case `name` of a module of the `test` package, for another type.

    In its module, `names` have other values; the class gets `attributes` (`type2test`); and its
    displays of the builtin types `displays` become calls of what their names mean.
    `omitted` says of each test that cannot pass why not; one that passes all the same is a failure.
    Not every Python has all of them.
    """
    case = _copy(module, name, dict(names or {}), displays)
    members = {"__module__": module, **(attributes or {}), **expected_failures(case, omitted)}
    return type(name, (case,), members)


def expected_failures(case: type, omitted: Mapping[str, str]) -> dict[str, Any]:
    """The tests of `case` that cannot pass, by name, marked with the reason why not."""
    return {
        test: pytest.mark.xfail(reason=reason, strict=True)(_own(function))
        for test, reason in omitted.items()
        if (function := getattr(case, test, None)) is not None
    }


def _own(function: Callable[[Any], None]) -> Callable[[Any], None]:
    """Wrap a test that fails: a mark on it is none of the class that it is inherited from."""

    def test(self: unittest.TestCase) -> None:
        # What the test leaves half made may not be fit to be finalised, and is nobody's concern.
        with support.catch_unraisable_exception():
            try:
                function(self)
            except BaseException as error:
                traceback.clear_frames(error.__traceback__)
                raise

    return test


def _copy(
    module: str, name: str, names: dict[str, object], displays: tuple[type, ...]
) -> type[unittest.TestCase]:
    original = importlib.import_module(module)
    path = inspect.getfile(original)
    tree = ast.parse(Path(path).read_text(encoding="utf-8"), path)
    own = {each.__name__ for each in getattr(original, name).__mro__ if each.__module__ == module}
    for statement in tree.body:
        if isinstance(statement, ast.ClassDef) and statement.name in own:
            _Calls(displays).visit(statement)
    copy = types.ModuleType(module)
    copy.__dict__.update(__file__=path, __package__=original.__package__)
    exec(compile(ast.fix_missing_locations(tree), path, "exec"), copy.__dict__)
    # Only now: what the module made while it was imported is made of the builtin.
    copy.__dict__.update(names)
    return getattr(copy, name)


class _Calls(ast.NodeTransformer):
    """Makes displays the arguments of calls."""

    def __init__(self, builtins: tuple[type, ...]) -> None:
        self.callee = {
            display: builtin.__name__ for builtin in builtins for display in DISPLAYS[builtin]
        }

    def generic_visit(self, node: ast.AST) -> ast.AST:
        node = super().generic_visit(node)
        callee = self.callee.get(type(node))  # pyright: ignore[reportArgumentType]
        is_value = isinstance(getattr(node, "ctx", ast.Load()), ast.Load)
        if callee is None or not is_value or not isinstance(node, ast.expr):
            return node
        return ast.copy_location(ast.Call(ast.Name(callee, ast.Load()), [node], []), node)
