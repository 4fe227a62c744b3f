"""Classes whose instances can be shared."""

import builtins
import collections
import copy
import dataclasses
import functools
import hashlib
import inspect
import typing
from collections.abc import Callable, Iterable, Iterator
from types import CellType, FunctionType, GetSetDescriptorType, NoneType, UnionType
from typing import Any, TypeVar, Union, cast, dataclass_transform, overload

from ungil import _native
from ungil.share._deque import deque as shared_deque
from ungil.share._dict import dict as shared_dict
from ungil.share._handle import Handled, type_name
from ungil.share._list import list as shared_list
from ungil.share._monitor import Monitor
from ungil.share._set import set as shared_set

T = TypeVar("T")

# What is written in an annotation, and what can be in the field before and after it is shared.
_CONTAINERS: builtins.dict[type, type] = {
    builtins.dict: shared_dict,
    builtins.list: shared_list,
    builtins.set: shared_set,
    collections.deque: shared_deque,
}
# The numbers that fit where others are expected, as for every type checker.
_NUMBERS: builtins.dict[type, tuple[type, ...]] = {float: (int,), complex: (float, int)}


class _Struct(Handled, _native.SharedStruct, Monitor):
    """What the classes inherit that `struct` makes."""

    __slots__ = ()

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        # A shared one as a handle, a local one as what it is.
        return super().__reduce__() if _native.is_shared(self) else (restored, _taken_apart(self))

    def __copy__(self) -> object:
        return restored(*_taken_apart(self))

    def __deepcopy__(self, memo: builtins.dict[int, Any]) -> object:
        class_, values = _taken_apart(self)
        # Before what is in it, which it may be itself.
        copied = _Struct.__new__(class_)
        memo[id(self)] = copied
        return _filled(copied, [copy.deepcopy(value, memo) for value in values])


def restored(class_: type[Any], values: Iterable[object]) -> object:
    """Return a local struct with these fields; what a pickled one calls."""
    return _filled(_Struct.__new__(class_), values)


def _taken_apart(struct: Any) -> tuple[type[Any], builtins.list[object]]:
    return cast("type[Any]", type(struct)), [
        getattr(struct, field.name) for field in dataclasses.fields(struct)
    ]


def _filled(struct: Any, values: Iterable[object]) -> object:
    for field, value in zip(dataclasses.fields(struct), values, strict=True):
        # Also of a frozen one.
        object.__setattr__(struct, field.name, value)
    return struct


@overload
def struct(class_: type[T], /) -> type[T]: ...
@overload
def struct(
    class_: None = None, /, *, order: bool = ..., frozen: bool = ..., kw_only: bool = ...
) -> Callable[[type[T]], type[T]]: ...
@dataclass_transform(field_specifiers=(dataclasses.field, dataclasses.Field))
def struct(class_: type[T] | None = None, /, **options: bool) -> Any:
    """Make a class a dataclass whose instances can be shared.

        @share.struct
        class Account:
            owner: str
            balance: int = 0

        heap.root["ann"] = Account("ann")
        ann = heap.root["ann"]
        share.incr(ann, "balance", 5)

    An instance is local at first. Putting it into a heap copies it, as with a dict: the heap
    returns an instance of the same class whose fields are in the heap. Fields hold what can be
    shared and fits their annotation, in a heap or not; a wrong type raises TypeError. An annotation
    of dict or list means the shared one as well. Methods, properties and class attributes are the
    class's own, in each process; there are no attributes other than the fields.

    The options are those of dataclasses. Another process finds the class by its qualified name and
    its fields, if it has declared it; nothing is imported.
    Raises TypeError for an annotation that says nothing about values; Any fits everything.
    """
    if class_ is None:
        return functools.partial(_declared, options=options)
    if not isinstance(class_, type):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"@share.struct is for a class, not for {class_!r}")
    return _declared(class_, options)


def incr(obj: object, field: str, by: object = 1, /) -> Any:
    """Add `by` to the number in a field in one step, and return the sum.

    Raises TypeError if either is not a number, or `by` does not fit the field.
    """
    try:
        return _native.struct_incr(cast(_native.SharedStruct, obj), field, by)
    except TypeError:
        _check("incr", obj)
        raise


def cas(obj: object, field: str, old: object, new: object, /) -> bool:
    """Give a field the value `new` if it equals `old`, in one step; return whether it did."""
    try:
        return _native.struct_cas(cast(_native.SharedStruct, obj), field, old, new)
    except TypeError:
        _check("cas", obj)
        raise


def _check(function: str, obj: object) -> None:
    """Raise TypeError for what is no struct, but is given to a function for them."""
    if isinstance(obj, _Struct):
        return
    own = f": call {function}() of the object itself" if hasattr(obj, function) else ""
    raise TypeError(
        f"share.{function}() changes a field of an instance of a @share.struct class, not of"
        f" {type_name(obj)}{own}"
    ) from None


def _declared(class_: type, options: builtins.dict[str, bool]) -> type:
    made = _rebuilt(class_)
    cast(Any, dataclasses.dataclass)(made, **options)
    fields = dataclasses.fields(cast(Any, made))
    hints = _hints(made, class_)
    described: builtins.list[tuple[str, str, tuple[type, ...]]] = []
    for field in fields:
        accepted = _accepted(made, field.name, hints[field.name])
        classes = {class_ for classes in accepted.values() for class_ in classes}
        described.append((field.name, " | ".join(accepted), tuple(classes)))
    module = _module(made)
    names = [module, made.__qualname__, *(text for field in described for text in field[:2])]
    digest = hashlib.blake2b("\0".join(names).encode(), digest_size=8).digest()
    schema = _native.StructSchema(
        int.from_bytes(digest, "little"), module, made.__qualname__, described
    )
    own = inspect.get_annotations(made)
    for index, field in enumerate(fields):
        if field.name in own:
            setattr(made, field.name, schema.attribute(made, index))
    made.__struct__ = schema  # pyright: ignore[reportAttributeAccessIssue]
    schema.declare(made)
    return made


def _rebuilt(class_: type) -> type:
    """Make the class once more, with the base of structs and without a `__dict__`."""
    structs = [base for base in class_.__bases__ if issubclass(base, _native.SharedStruct)]
    if len(structs) > 1:
        raise TypeError(f"{class_.__name__} inherits from more than one struct")
    bases = tuple(base for base in class_.__bases__ if base is not object)
    if not structs:
        bases = (*bases, _Struct)
    members: builtins.dict[str, Any] = {
        name: value
        for name, value in class_.__dict__.items()
        if name not in ("__dict__", "__weakref__")
    }
    if members.get("__slots__", ()) != ():
        raise TypeError(f"{class_.__name__} has __slots__: its fields would not be shared")
    for name in inspect.get_annotations(class_):
        # Or a field that is declared again would have the attribute of the base as its default.
        if isinstance(getattr(class_, name, None), GetSetDescriptorType):
            members[name] = dataclasses.field()
    try:
        made = type(class_)(class_.__name__, bases, {**members, "__slots__": ()})
    except TypeError as error:
        if (builtin := _builtin(class_)) is None:
            raise
        raise TypeError(
            f"{class_.__name__} cannot be a struct, because it inherits from {builtin.__name__}:"
            f" declare a field of that type instead"
        ) from error
    if made.__dictoffset__:
        ways = [base.__name__ for base in bases if base.__dictoffset__]
        raise TypeError(
            f"{class_.__name__} would have attributes that are not shared, because of its base"
            f" {' and '.join(ways)}: give that `__slots__ = ()`, or declare it as a struct too"
        )
    # What `super()` and `__class__` mean in its methods.
    for cell in _class_cells(members.values()):
        if cell.cell_contents is class_:
            cell.cell_contents = made
    return made


def _builtin(class_: type) -> type | None:
    """The class of its bases whose instances have a layout of their own."""
    of_c = (base for base in class_.__mro__ if base.__module__ == "builtins")
    return next((base for base in of_c if base is not object), None)


def _class_cells(members: typing.Iterable[object]) -> Iterator[CellType]:
    for member in members:
        if isinstance(member, property):
            yield from _class_cells((member.fget, member.fset, member.fdel))
        inner = getattr(member, "__wrapped__", None)
        if inner is not None:
            yield from _class_cells((inner,))
        if isinstance(member, FunctionType) and "__class__" in member.__code__.co_freevars:
            yield (member.__closure__ or ())[member.__code__.co_freevars.index("__class__")]


def _hints(made: type, class_: type) -> builtins.dict[str, object]:
    """What the annotations of a class mean; its own name, the class that was made of it."""
    try:
        hints = typing.get_type_hints(made, localns={made.__name__: made})
    except NameError as error:
        raise TypeError(
            f"{made.__name__} has an annotation that cannot be evaluated yet: {error}"
        ) from None
    return {name: made if hint is class_ else hint for name, hint in hints.items()}


def _accepted(made: type, field: str, hint: object) -> builtins.dict[str, tuple[type, ...]]:
    """The names of what fits an annotation, each with the classes that are meant by it."""
    if hint is Any:
        return {"Any": (object,)}
    origin = typing.get_origin(hint)
    if origin in (Union, UnionType):
        parts = [_accepted(made, field, part) for part in typing.get_args(hint)]
        return {name: classes for part in parts for name, classes in part.items()}
    if origin is typing.Literal:
        values: tuple[object, ...] = typing.get_args(hint)
        return {_name(type(value)): (type(value),) for value in values}
    class_: object = origin or hint
    if not isinstance(class_, type):
        raise TypeError(
            f"{made.__name__}.{field}: {hint!r} does not say which values fit; Any allows all"
        )
    for plain, shared in _CONTAINERS.items():
        if class_ in (plain, shared):
            return {plain.__name__: (plain, shared)}
    return {_name(class_): (class_, *_NUMBERS.get(class_, ()))}


def _name(class_: type[Any]) -> str:
    if class_ is NoneType:
        return "None"
    if class_.__module__ == "builtins":
        return class_.__qualname__
    return f"{_module(class_)}.{class_.__qualname__}"


def _module(class_: type) -> str:
    # The main module has this name in a process that multiprocessing spawned.
    return "__main__" if class_.__module__ == "__mp_main__" else class_.__module__
