"""What lies one change beside an example: nodes, descriptors and bindings with one value that is another."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

import dmlsplit as dml
from dmlsplit.descriptors.any_operator import widened

Pool = Mapping[str, Sequence[Any]]
"""Field -> the values that examples have for it."""
UINT_MAX = 2**32 - 1


def nodes_beside(node: Any, pool: Pool) -> Iterator[tuple[str, Any]]:
    """The name of a fact, and the node with another value there: the next one, or another example's."""
    for field in fields(node):
        value = getattr(node, field.name)
        # A version is one of the specification's.
        near = () if field.name in ("version", "port_shapes") else _near(value, opens="shape" in field.name)
        for other in _others(value, [*near, *pool[field.name]]):
            yield field.name, replace(node, **{field.name: other})


def pool_of(examples: Iterable[Any]) -> Pool:
    """The values of each field in all the examples."""
    found: dict[str, list[Any]] = defaultdict(list)
    for example in examples:
        for field in fields(example):
            found[field.name].append(getattr(example, field.name))
    return found


def _others(value: Any, candidates: Iterable[Any]) -> list[Any]:
    """Those that are not `value`, each once."""
    found = {repr(other): other for other in candidates}
    found.pop(repr(value), None)
    return list(found.values())


def _near(value: Any, *, opens: bool = False) -> Iterator[Any]:
    """The other truth, the numbers beside a number, and a tuple with one entry changed, left out or repeated. `opens`:
    an entry may be unknown."""
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int):
        yield from (int(value) - 1, int(value) + 1, 0, -1)
    elif isinstance(value, tuple):
        for i, entry in enumerate(value):
            for other in (*_near(entry, opens=opens), *([None] if opens else [])):
                yield (*value[:i], other, *value[i + 1 :])
        if value:
            yield from (value[:-1], (*value, value[-1]))


def operators_beside(desc: dml.OperatorDesc | dml.AnyOperatorDesc) -> Iterator[tuple[str, Any]]:
    """The name of a member, and the descriptor with another value there; values that the struct cannot hold are left
    out."""
    if isinstance(desc, dml.AnyOperatorDesc):
        schema, members = widened(desc) if desc.operator.whole else (desc.operator, desc.members)
        for name, value in members.items():
            for other in _others(value, _members_near(value)):
                if (made := _made(lambda: dml.AnyOperatorDesc(schema, {**members, name: other}))) is not None:  # noqa: B023
                    yield name, made
        return
    for field in fields(desc):
        value = getattr(desc, field.name)
        for other in _others(value, _members_near(value)):
            if (made := _made(lambda: replace(desc, **{field.name: other}))) is not None:  # noqa: B023
                yield field.name, made


def _made(make: Any) -> Any:
    try:
        return make()
    except (dml.DescriptorError, ValueError):
        return None


def _members_near(value: Any) -> Iterator[Any]:
    if isinstance(value, dml.TensorDesc):
        yield None
        yield from (replace(value, type=other) for other in (0, 2))
        yield from (replace(value, desc=None if near is None else near) for near in _buffers_near(value.desc))
    elif isinstance(value, tuple):
        for i, entry in enumerate(value):
            if not isinstance(entry, dml.TensorDesc) or i == len(value) - 1:  # all tensors of an array are judged alike
                yield from ((*value[:i], other, *value[i + 1 :]) for other in _members_near(entry))
        yield from ((), None, value[:-1], (*value, *value[-1:]))
    elif isinstance(value, int):
        yield from (number for number in (value - 1, value + 1, 0, UINT_MAX) if number >= 0)


def _buffers_near(desc: dml.BufferTensorDesc | None) -> Iterator[dml.BufferTensorDesc | None]:
    """With one member changed alone, and with other sizes from which all else follows."""
    if desc is None:
        return
    yield None
    for field in fields(desc):
        value = getattr(desc, field.name)
        for other in _members_near(value):
            made = _made(lambda: replace(desc, **{field.name: other}))  # noqa: B023
            if made is not None:
                yield made
    sizes = desc.sizes or ()
    for other in _others(sizes, (*_near(sizes), (1, *sizes), sizes[1:], (1,) * (8 - len(sizes)) + sizes)):
        made = _made(lambda: dml.BufferTensorDesc(desc.data_type, other))  # noqa: B023
        if made is not None:
            yield made
