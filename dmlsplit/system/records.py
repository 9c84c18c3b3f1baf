"""Frozen dataclasses that are cheap to define.

A process that judges one small model defines about a hundred classes, and a frozen dataclass compiles six methods for
each: that was a sixth of the time of `dmlsplit check`. A record compiles `__init__` alone; its other methods are
closures over its fields. What users construct (descriptors, options, bindings) is a plain dataclass, whose signature
documentation tools and editors show with its types.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import MISSING, FrozenInstanceError, dataclass, field, fields
from operator import attrgetter
from typing import Any, NoReturn, TypeVar, cast, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(cls: type[T], /) -> type[T]:
    """Returns `cls` as a frozen dataclass with slots, whose instances are equal, hashable and shown by their fields."""
    made: Any = _constant(cls)
    shown = tuple(each.name for each in fields(made) if each.repr)
    compared = attrgetter(*[each.name for each in fields(made) if each.compare])
    hashed = attrgetter(*[each.name for each in fields(made) if (each.compare if each.hash is None else each.hash)])

    def __eq__(self: T, other: object) -> bool:
        return compared(self) == compared(other) if other.__class__ is self.__class__ else NotImplemented

    def __hash__(self: T) -> int:
        return hash(hashed(self))

    def __repr__(self: T) -> str:
        return f"{self.__class__.__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"

    for method in (__eq__, __hash__, __repr__):
        if method.__name__ not in vars(cls):
            setattr(made, method.__name__, method)
    return cast(type[T], made)


@dataclass_transform(frozen_default=True, eq_default=False, field_specifiers=(field,))
def entity(cls: type[T], /) -> type[T]:
    """Returns `cls` as a frozen dataclass with slots, each of whose instances is equal to itself alone."""
    return _constant(cls)


def _constant(cls: type[T]) -> type[T]:
    made: Any = dataclass(init=False, eq=False, repr=False, slots=True)(cls)
    put = {each.name: getattr(made, each.name).__set__ for each in fields(made)}

    def __getstate__(self: T) -> Sequence[object]:
        return tuple([getattr(self, name) for name in put])

    def __setstate__(self: T, state: Sequence[object]) -> None:
        for write, value in zip(put.values(), state, strict=True):
            write(self, value)

    made.__init__ = _initializer(made, put)
    made.__setattr__, made.__delattr__ = _refuse_assignment, _refuse_deletion
    made.__getstate__, made.__setstate__ = __getstate__, __setstate__
    return cast(type[T], made)


def _initializer(cls: Any, put: dict[str, Any]) -> Any:
    """Returns an `__init__` that takes the fields of `cls` as that of a dataclass does, and calls `__post_init__`. It
    writes through the descriptors of the slots in `put`, since `__setattr__` refuses."""
    scope: dict[str, Any] = {"__name__": cls.__module__, "MISSING": MISSING}
    taken, written = ["self"], []
    for number, each in enumerate(sorted(fields(cls), key=lambda each: bool(each.kw_only))):
        if each.kw_only and "*" not in taken:
            taken.append("*")
        scope[f"put{number}"], value = put[each.name], each.name
        if each.default is not MISSING:
            scope[f"default{number}"] = each.default
            taken.append(f"{each.name}=default{number}")
        elif each.default_factory is not MISSING:
            scope[f"make{number}"] = each.default_factory
            taken.append(f"{each.name}=MISSING")
            value = f"make{number}() if {each.name} is MISSING else {each.name}"
        else:
            taken.append(each.name)
        written.append(f" put{number}(self, {value})\n")
    after = " self.__post_init__()\n" if hasattr(cls, "__post_init__") else ""
    exec(f"def __init__({', '.join(taken)}):\n{''.join(written)}{after} return", scope)
    made = scope["__init__"]
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    made.__annotations__ = {**{each.name: each.type for each in fields(cls)}, "return": None}
    return made


def _refuse_assignment(self: object, name: str, value: object) -> NoReturn:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_deletion(self: object, name: str) -> NoReturn:
    raise FrozenInstanceError(f"cannot delete field {name!r}")
