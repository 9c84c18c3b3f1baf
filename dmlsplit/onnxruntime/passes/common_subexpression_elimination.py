"""Equal nodes are computed once.

Source: constant_sharing.cc, common_subexpression_elimination.cc and ensure_unique_dq_for_node_unit.cc of ONNX Runtime:
before any other pass each input that reads a DequantizeLinear gets a DequantizeLinear of its own, and two of them are
never merged. Attributes that a node lacks are added with their defaults, and two nodes' attributes are compared one by
one, in the order of the hash table that contains them. Observed with all versions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final, TypeAlias

import numpy as np
import onnx

from dmlsplit.descriptors.dims import is_static, numbers
from dmlsplit.formats.onnx.tensors import no_external_data, value_of
from dmlsplit.models.graph import Doubt, Facts, Graph, Node, Value
from dmlsplit.models.schemas import schema_of
from dmlsplit.onnxruntime.operator_traits import row_of
from dmlsplit.system.errors import InputError

_SHARED_TYPES: Final = frozenset({"FLOAT16", "FLOAT", "DOUBLE", "INT32", "INT64"})
_MOST_SHARED: Final = 8
"""The most elements of a constant that is shared."""

_Type: TypeAlias = onnx.AttributeProto
_COMPARED: Final = frozenset({_Type.FLOAT, _Type.INT, _Type.STRING, _Type.FLOATS, _Type.INTS, _Type.STRINGS})
"""The attribute types that are compared, besides tensors of one element; a node with an attribute of another type
equals no other node."""
_COMPARED_NUMBERS: Final[Mapping[int, str]] = {
    onnx.TensorProto.FLOAT: "<f4",
    onnx.TensorProto.FLOAT16: "<f2",
    onnx.TensorProto.INT64: "<i8",
}
"""The tensor types that all versions compare by value if the elements are in raw_data. Observed."""

_BUCKETS: Final = 8
"""The buckets of the hash table of a node's attributes; it grows with more attributes."""
_FNV_OFFSET: Final = 0xCBF29CE484222325
_FNV_PRIME: Final = 0x100000001B3
"""The constants of FNV-1a, the hash function of names."""

_Key: TypeAlias = tuple[object, ...]

UNMERGED: Final = "DequantizeLinear"
"""The operator that is computed once for each of its readers."""


def constant_sharing(graph: Graph) -> None:
    """Makes readers of small constants with equal types, shapes and elements read the first of them, in place. Only
    constants of the model's own graph are merged; those that a graph inside a node reads, and those of branches, stay:
    ONNX Runtime does this only once, before a branch takes its If's place."""
    if not graph.facts.is_main:
        return
    first: dict[_Key, Value] = {}
    instead = {}
    branches = graph.facts.branches
    for name in graph.facts.given_constants:
        data_type, shape = graph.facts.data_type(name), graph.facts.shape(name)
        if shape is not None and is_static(shape) and not 0 < math.prod(numbers(shape)) <= _MOST_SHARED:
            continue
        value = graph.value(name)
        apart = value.is_output or name in branches.of or name in branches.readers
        if apart or any(value in reader.captured for reader in value.readers):
            continue
        array = graph.facts.elements(name) if data_type in _SHARED_TYPES else None
        if array is not None and 0 < array.size <= _MOST_SHARED:
            instead[value] = first.setdefault((data_type, array.shape, array.tobytes()), value)
    graph.redirect_all({value: other for value, other in instead.items() if value is not other})


def common_subexpression_elimination(graph: Graph) -> None:
    """Makes readers of several equal outputs read the first one, in the order of the walk, in place.

    Outputs of the graph, and the nodes that compute them, stay. The number of a node's outputs is not compared, so
    Splits with different numbers of outputs may be merged: the sizes are then unknown.
    """
    order = graph.walk()
    if order is not graph.without_twins:
        _merge(graph, order, lambda node: ())
        graph.without_twins = order if graph.walk() is order else None


def first_subexpression_elimination(graph: Graph) -> None:
    """Makes readers of equal outputs read the first one, in place, before anything is folded. A branch that takes its
    If's place is processed separately from the nodes around it."""
    branches = graph.facts.branches
    if any(node.name in branches.of for node in graph.nodes if branches.of):
        nodes = sorted(graph.nodes, key=lambda node: branches.order(node.name))
        _merge(graph, nodes, lambda node: branches.chain(node.name))
    else:
        common_subexpression_elimination(graph)


def _merge(graph: Graph, nodes: Iterable[Node], apart: Callable[[Node], _Key]) -> None:
    """Makes readers of equal nodes' outputs read those of the first one, in place, and removes nodes that are then
    unused. Nodes for which `apart` returns different keys are not equal. Splits that differ only in their number of
    outputs are marked as doubtful."""
    first: dict[_Key, Value] = {}
    equal: dict[Value, Value] = {}
    splits: dict[_Key, list[Node]] = {}
    for node in nodes:
        key = (*_key(node, equal, graph.facts), apart(node))
        if node.op_type == "Split" and node.inputs and node.inputs[0].name:
            splits.setdefault(key, []).append(node)
        for i, value in enumerate(node.outputs):
            if value.name:
                other = first.setdefault((i, *key), value)
                if other is not value:
                    equal[value] = other
    for twins in splits.values():
        if len({len(node.outputs) for node in twins}) > 1:
            for node in twins:
                node.doubts |= {Doubt.TWINS_DIFFER}
    touched = [value.producer for value in equal if not value.is_output]
    graph.redirect_all({value: other for value, other in equal.items() if not value.is_output})
    for twin in dict.fromkeys(touched):
        if twin is not None and not twin.is_used:
            graph.remove(twin)


def _key(node: Node, equal: Mapping[Value, Value], facts: Facts) -> _Key:
    """Returns a key that is equal for equal nodes; for a node that is never merged, its index. `equal` maps values to
    the first equal one."""
    if node.op_type in ("", UNMERGED) or row_of(node.op_type).random:
        return (node.index, node.is_inserted)
    if node.is_inserted and node.op_type == "Reshape":  # around a Gemm: each reads a constant of its own
        return node.number
    names, attributes = [], []
    for attribute in node.proto.attribute[:]:
        is_compared = attribute.type in _COMPARED
        content = attribute.SerializeToString() if is_compared else _number(attribute, facts.compares_all_numbers)
        if content is None:
            return (node.index,)
        names.append(attribute.name)
        attributes.append(content)
    read = [_read(node, i, equal.get(value, value)) for i, value in enumerate(node.inputs)]
    order = _order(node.op_type, facts.opset, tuple(names))
    return (node.op_type, tuple(read), *[attributes[each] if isinstance(each, int) else each for each in order])


@lru_cache(maxsize=4096)
def _order(op_type: str, opset: int, names: tuple[str, ...]) -> Sequence[int | bytes]:
    """Returns, in the order of the hash table, the indices in `names` of a node's attributes and, where the node lacks
    one attribute with a default, that default. In which order ONNX Runtime adds several is not the same in all
    versions: such a node has the key of its own attributes, and equals only nodes with the same ones."""
    schema = schema_of(op_type, opset)
    given = [] if schema is None else [each.default_value for each in schema.attributes.values()]
    lacking = [each for each in given if each.name and each.name not in names]
    added = lacking if len(lacking) == 1 else []
    if len(names) + len(added) > _BUCKETS:
        return sorted(range(len(names)), key=names.__getitem__)
    kept = _table(_table(names))  # the table of the file's attributes is copied
    found: dict[str, int | bytes] = {name: i for i, name in enumerate(names)}
    found |= {each.name: each.SerializeToString() for each in added}
    return [found[name] for name in _table([each.name for each in added], kept)]


def _table(names: Iterable[str], table: Sequence[str] = ()) -> list[str]:
    """Returns the keys of a hash table (std::unordered_map of Visual C++) in order, after the names are added to
    `table`: the first name of a bucket comes last, each further one before those of the same bucket."""
    keys = list(table)
    for name in names:
        bucket = _bucket(name)
        keys.insert(next((i for i, key in enumerate(keys) if _bucket(key) == bucket), len(keys)), name)
    return keys


def _bucket(name: str) -> int:
    code = _FNV_OFFSET
    for byte in name.encode():
        code = (code ^ byte) * _FNV_PRIME % 2**64
    return code % _BUCKETS


def _number(attribute: onnx.AttributeProto, all_numbers: bool) -> bytes | None:
    """Returns bytes that are equal for equal tensors of one element; None for an attribute that equals no other.

    If `all_numbers`, tensors are compared by their bytes; otherwise by value: -0 equals 0, and NaN equals nothing.
    """
    tensor = attribute.t
    if attribute.type != _Type.TENSOR or list(tensor.dims) != [1]:
        return None
    name = f"{attribute.name}:{tensor.data_type}:".encode()
    if all_numbers:
        try:
            array = value_of(tensor, no_external_data)
        except InputError:
            return None
        return None if array is None else name + array.tobytes()
    stored = _COMPARED_NUMBERS.get(tensor.data_type)
    if stored is None or len(tensor.raw_data) != np.dtype(stored).itemsize:
        return None
    number = np.frombuffer(tensor.raw_data, stored)[0]
    return None if number != number else name + (number + 0).tobytes()


def _read(node: Node, index: int, value: Value) -> object:
    """Returns a key that is equal for inputs that read one tensor; `value` is the tensor of the input at `index` of a
    node.

    A reader that reads a DequantizeLinear through a removed Identity shares the DequantizeLinear in front of that
    Identity; Shapes that have been made to read one tensor share it as well.
    """
    if value.producer is None or value.producer.proto.op_type != UNMERGED:
        return value.name
    if value.is_shared and node.op_type == "Shape":
        return (value.name, node.op_type)
    name = node.proto.input[index]
    return (value.name, node.index, index) if name == value.name else (value.name, name)
