"""Folds the small integer tensors that lengths are computed from: one node at a time, within bounds.

A partly known shape keeps its known sizes through operators that only move or combine elements.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from copy import deepcopy
from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import onnx
from onnx import helper, numpy_helper

from dmlsplit.descriptors.dims import Shape
from dmlsplit.formats.onnx.tensors import MAX_ELEMENTS, MAX_RANK, Array, ReadExternal, value_of
from dmlsplit.models.schemas import schema_of


class Constant(NamedTuple):
    """An array with the state of each element: 1 is known, 0 is unknown, -n is the n-th symbol of the model."""

    array: Array
    known: Array

    @classmethod
    def of(cls, array: Array) -> Constant:
        return cls(array, np.ones(array.shape, np.int64))

    @property
    def whole(self) -> bool:
        """True if all elements are known."""
        return bool(np.count_nonzero(self.known == 1) == self.known.size)

    def without_symbols(self) -> Constant:
        """Returns a Constant in which the elements that are symbols are unknown."""
        return Constant(self.array, self.known * (self.known == 1))


MOVING: Final = frozenset(
    {"Concat", "Flatten", "Gather", "Identity", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze"}
)
"""Operators that move elements. The first input is moved, and the others give the positions; a Concat moves all its
inputs."""
ELEMENTWISE: Final = frozenset(
    {
        *("Abs", "Add", "And", "Cast", "Ceil", "Div", "Equal", "Floor", "Greater", "GreaterOrEqual", "Less"),
        *(
            "LessOrEqual",
            "Max",
            "Min",
            "Mod",
            "Mul",
            "Neg",
            "Not",
            "Or",
            "Pow",
            "Reciprocal",
            "Sqrt",
            "Sub",
            "Sum",
            "Where",
            "Xor",
        ),
    }
)
WHOLE: Final = frozenset({"ConstantOfShape", "CumSum", "Range", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceSum"})
FOLDED: Final = MOVING | ELEMENTWISE | WHOLE
_MOST_KEPT: Final = 1024
"""The most bytes of a node and of its inputs whose result is kept for equal nodes."""


def attributes_of(node: onnx.NodeProto, opset: int) -> dict[str, onnx.AttributeProto] | None:
    """Returns the attributes of a node that its operator has, by name; None if one has a type other than its schema's,
    or if the operator is unknown.

    Attributes that the operator does not have are omitted: onnx's evaluator would decode them, and read the files that
    their tensors name.
    """
    types = _attribute_types(node.op_type, opset)
    if types is None:
        return None
    own = {a.name: a for a in node.attribute[:] if a.name in types}
    # Before IR version 2 attributes had no type.
    if any(a.type not in (types[name], onnx.AttributeProto.UNDEFINED) for name, a in own.items()):
        return None
    return own


@lru_cache(maxsize=256)
def _attribute_types(operator: str, opset: int) -> Mapping[str, int] | None:
    schema = schema_of(operator, opset)
    return None if schema is None else {name: int(attribute.type) for name, attribute in schema.attributes.items()}


def of_shape(node: onnx.NodeProto, shape: Shape, symbols: Mapping[str, int], opset: int) -> Constant | None:
    """Returns the result of a Shape or Size node whose input has this shape, with unknown sizes as unknown elements;
    None if it cannot be determined. `symbols` maps the names of sizes to their numbers, from 1."""
    if node.op_type == "Size":
        sizes = [dim for dim in shape if isinstance(dim, int)]
        known = len(sizes) == len(shape)
        return Constant.of(np.array(math.prod(sizes) % 2**63, np.int64)) if known else None
    attributes = attributes_of(node, opset)
    if attributes is None:
        return None
    bounds = {name: attribute.i for name, attribute in attributes.items()}
    part = shape[slice(bounds.get("start"), bounds.get("end"))]
    values = [dim if isinstance(dim, int) else 0 for dim in part]
    mask = [-symbols.get(dim, 0) if isinstance(dim, str) else int(dim is not None) for dim in part]
    return Constant(np.array(values, np.int64), np.array(mask, np.int64))


def fold(
    node: onnx.NodeProto, inputs: Sequence[Constant | None], opset: int, read_external: ReadExternal
) -> Constant | None:
    """Returns the first output of a node whose operator is in FOLDED, computed from its inputs; None if it is unknown,
    too large, or the node is faulty.

    Raises InputError if a tensor among its attributes is malformed.
    """
    given = [constant for constant in inputs if constant is not None]
    # an operator that moves elements moves its first inputs; the others give the positions
    moved = len(inputs) if node.op_type == "Concat" else 1
    if not given or not _is_small(node, given) or not _is_known_enough(node, given, moved):
        return None
    if node.op_type == "Identity" and len(inputs) == 1 and _attribute_types(node.op_type, opset) is not None:
        return given[0]
    alone = _alone(node, opset, read_external)
    if alone is None:
        return None
    array = _run(alone, [None if constant is None else constant.array for constant in inputs], opset)
    if array is None or array.size > MAX_ELEMENTS:
        return None
    if all(constant.whole for constant in given):
        return Constant.of(array)
    if node.op_type in MOVING:
        masks = [c and (c.known if i < moved else c.array) for i, c in enumerate(inputs)]
        known = _run(alone, masks, opset)
    else:
        known = np.ones(array.shape, np.int64)
        for constant in given:
            known = known * (constant.known == 1)
    return None if known is None or known.shape != array.shape else Constant(array, known)


def _is_small(node: onnx.NodeProto, given: Sequence[Constant]) -> bool:
    """True if no output can have more than MAX_ELEMENTS elements, even if inputs are broadcast or a shape is filled."""
    combinations = 1
    for constant in given:
        combinations *= max(constant.array.size, 1)
        if combinations > MAX_ELEMENTS:
            return False
    if node.op_type == "Range":
        return _is_short_range([constant.array for constant in given])
    if node.op_type != "ConstantOfShape":
        return True
    sizes = given[0].array
    if sizes.dtype.kind not in "iu" or sizes.size > MAX_RANK or (sizes < 0).any():
        return False
    return bool(math.prod(sizes.ravel().tolist()) <= MAX_ELEMENTS)


def _is_known_enough(node: onnx.NodeProto, given: Sequence[Constant], moved: int) -> bool:
    """False if an unknown element of an input could become any element of the result.

    This applies to operators in WHOLE, and to operators in MOVING if an input from number `moved` on has an unknown
    element.
    """
    partly = [not constant.whole for constant in given]
    return not any(partly) or not (node.op_type in WHOLE or (node.op_type in MOVING and any(partly[moved:])))


def _is_short_range(arrays: Sequence[Array]) -> bool:
    """True if a Range of these start, end and step is of integers and has at most MAX_ELEMENTS elements."""
    if len(arrays) != 3 or any(array.dtype.kind not in "iu" or array.size != 1 for array in arrays):
        return False
    start, end, step = (int(array.item()) for array in arrays)
    return step != 0 and (end - start) // step <= MAX_ELEMENTS


def _alone(node: onnx.NodeProto, opset: int, read_external: ReadExternal) -> onnx.NodeProto | None:
    """Returns a node with the operator and its own attributes only, tensors in them read, for onnx's evaluator, which
    would look for external data in the current folder. None if an attribute does not fit its schema, or its tensor is
    large or not of numbers."""
    attributes = attributes_of(node, opset)
    types = _attribute_types(node.op_type, opset)
    if attributes is None or types is None:
        return None
    alone = onnx.NodeProto(op_type=node.op_type)
    for name, attribute in attributes.items():
        copy = alone.attribute.add(name=name, type=types[name])
        if types[name] == onnx.AttributeProto.TENSOR:
            array = value_of(attribute.t, read_external)
            if array is None or array.dtype.kind not in "biuf":
                return None
            copy.t.CopyFrom(numpy_helper.from_array(array))
        else:
            copy.i, copy.f, copy.s = attribute.i, attribute.f, attribute.s
            copy.ints.extend(attribute.ints)
    return alone


_Given: TypeAlias = tuple[np.dtype[Any], tuple[int, ...], bytes]
"""An array as a part of a key: its type, its shape, and its elements."""


def _run(operator: onnx.NodeProto, arrays: Sequence[Array | None], opset: int) -> Array | None:
    """Returns the result of a node of this operator and attributes for these inputs; None if it does not run. Results
    of a few numbers are kept, because the layers of a model, and models, compute the same sizes again and again."""
    given = [array for array in arrays if array is not None]
    size = operator.ByteSize() + sum([array.nbytes for array in given])
    if operator.op_type in WHOLE or size > _MOST_KEPT or any(array.dtype.kind not in "biuf" for array in given):
        return _computed(operator, arrays, opset)
    key = tuple([None if each is None else (each.dtype, each.shape, each.tobytes()) for each in arrays])
    return _kept(operator.SerializeToString(), key, opset)


@lru_cache(maxsize=1024)
def _kept(operator: bytes, given: tuple[_Given | None, ...], opset: int) -> Array | None:
    arrays = [None if each is None else np.ndarray(each[1], each[0], each[2]) for each in given]
    found = _computed(onnx.NodeProto.FromString(operator), arrays, opset)
    if found is not None:
        found.setflags(write=False)
    return found


def _computed(operator: onnx.NodeProto, arrays: Sequence[Array | None], opset: int) -> Array | None:
    """Returns the first output of an operator for these inputs (None: omitted), as onnx's reference evaluator computes
    it; None if that fails, or if the output is not a tensor."""
    from onnx.reference import ReferenceEvaluator

    names = ["" if array is None else f"i{i}" for i, array in enumerate(arrays)]
    alone = deepcopy(operator)
    alone.input.extend(names)
    alone.output.append("o")
    values = [onnx.ValueInfoProto(name=name) for name in names if name]
    graph = helper.make_graph([alone], "g", values, [onnx.ValueInfoProto(name="o")])
    given: dict[str, Any] = {name: array for name, array in zip(names, arrays, strict=True) if name}
    try:
        with np.errstate(all="ignore"):
            found: Any = next(iter(ReferenceEvaluator(graph, opsets={"": opset}).run(None, given)))
    except Exception:
        # The reference evaluator raises whatever numpy does; a node that does not run has no constant.
        return None
    return np.asarray(found) if isinstance(found, (np.ndarray, np.generic)) else None
