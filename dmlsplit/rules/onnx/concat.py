"""Rules about ONNX's Concat, versions 1, 4, 11 and 13."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from dmlsplit.descriptors.diagnostics import Basis, Severity
from dmlsplit.descriptors.dims import compatible, shape_text
from dmlsplit.rules._concat import declared_fits, ranks_differ, sizes_alike, sizes_differ, types_differ
from dmlsplit.rules._model import Finding, Findings
from dmlsplit.rules._nodes import Fact, NodeRule
from dmlsplit.rules._sources import ONNX_CONCAT, ONNX_CONCAT_CHANGES, ONNX_CONCAT_SHAPES, ONNX_IR
from dmlsplit.rules.onnx.concat_facts import DATA_TYPES, OnnxConcat

_PAIR: Final = OnnxConcat(13, ((4, 2), (4, 3)), ("FLOAT", "FLOAT"), axis=1)


@NodeRule(
    "onnx/concat-opset-missing",
    "The model imports no opset that gives the version of the Concat.",
    "The version of Concat follows from the single opset import of domain '' or 'ai.onnx'; without one, a model of "
    "an IR version below 3 has opset 1. A function has its own imports.",
    sources=(ONNX_IR,),
    spoils={Fact.FORM},
    bad=replace(_PAIR, version=0),
    good=_PAIR,
)
def concat_opset_missing(n: OnnxConcat) -> Findings:
    if not n.version:
        yield Finding("", "the model imports no opset for the node, or several", "one opset import")


@NodeRule(
    "onnx/concat-opset-unknown",
    "The model imports an opset that is newer than the installed onnx.",
    "Concat is judged by its newest known version; a later opset may have changed it.",
    severity=Severity.NOTE,
    basis=Basis.OURS,
    sources=(ONNX_CONCAT_CHANGES,),
    bad=replace(_PAIR, opset=29, newest_opset=28),
    good=replace(_PAIR, opset=28, newest_opset=28),
)
def concat_opset_unknown(n: OnnxConcat) -> Findings:
    if n.opset is not None and n.newest_opset is not None and n.opset > n.newest_opset:
        message = f"opset {n.opset} is newer than the installed onnx, which supports up to {n.newest_opset}"
        yield Finding("", f"{message}; judged as Concat {n.version}", n.newest_opset, n.opset)


@NodeRule(
    "onnx/concat-no-inputs",
    "The Concat has no inputs.",
    "A Concat joins one or more tensors.",
    sources=(ONNX_CONCAT,),
    spoils={Fact.FORM},
    bad=replace(_PAIR, shapes=(), data_types=()),
    good=replace(_PAIR, shapes=((4, 2),), data_types=("FLOAT",)),
)
def concat_no_inputs(n: OnnxConcat) -> Findings:
    if not n.shapes:
        yield Finding("inputs", "there are none", "one tensor or more", 0)


@NodeRule(
    "onnx/concat-input-omitted",
    "An input of the Concat has no name.",
    "All inputs of a Concat are required.",
    sources=(ONNX_CONCAT, ONNX_IR),
    spoils={Fact.SHAPE, Fact.TYPE},
    bad=replace(_PAIR, omitted=(1,)),
    good=_PAIR,
)
def concat_input_omitted(n: OnnxConcat) -> Findings:
    for i in n.omitted:
        yield Finding(("inputs", i), "has no name", "a tensor", "")


@NodeRule(
    "onnx/concat-output-count",
    "The Concat does not have exactly one output.",
    "A Concat has one output, which has a name.",
    sources=(ONNX_CONCAT,),
    bad=replace(_PAIR, outputs=2),
    good=_PAIR,
)
def concat_output_count(n: OnnxConcat) -> Findings:
    if n.outputs != 1:
        yield Finding("outputs", f"there are {n.outputs}; a Concat has one", 1, n.outputs)
    elif n.output_omitted:
        yield Finding("output", "has no name", "a name", "")


@NodeRule(
    "onnx/concat-attribute-unknown",
    "The node has an attribute that Concat does not.",
    "`axis` is the only attribute of Concat.",
    sources=(ONNX_CONCAT,),
    bad=replace(_PAIR, other_attributes=("new_axis",)),
    good=_PAIR,
)
def concat_attribute_unknown(n: OnnxConcat) -> Findings:
    for name in n.other_attributes:
        yield Finding(name, "is not an attribute of Concat, which has axis", "axis", name)


@NodeRule(
    "onnx/concat-attribute-type",
    "The axis is not an INT.",
    "`axis` is a single integer.",
    sources=(ONNX_CONCAT,),
    spoils={Fact.AXIS},
    bad=replace(_PAIR, axis=None, mistyped_attributes=("axis",)),
    good=_PAIR,
)
def concat_attribute_type(n: OnnxConcat) -> Findings:
    for name in n.mistyped_attributes:
        yield Finding(name, "is not INT", "INT")


@NodeRule(
    "onnx/concat-axis-missing",
    "The axis is missing.",
    "The axis is required from version 4 on; in version 1 the default is 1.",
    sources=(ONNX_CONCAT, ONNX_CONCAT_CHANGES),
    needs={Fact.FORM, Fact.AXIS},
    spoils={Fact.AXIS},
    bad=replace(_PAIR, axis=None),
    good=replace(_PAIR, version=1, axis=None),
)
def concat_axis_missing(n: OnnxConcat) -> Findings:
    if n.given_axis is None:
        yield Finding("axis", f"is missing; Concat {n.version} requires it", "an axis")


@NodeRule(
    "onnx/concat-type-not-allowed",
    "This version of Concat does not allow the element type.",
    "Version 1 accepts only floats. bfloat16 was added in 13. No version accepts 8-bit floats or types below 8 bits.",
    sources=(ONNX_CONCAT, ONNX_CONCAT_CHANGES),
    needs={Fact.FORM, Fact.TYPE},
    spoils={Fact.TYPE},
    bad=replace(_PAIR, data_types=("FLOAT8E4M3FN",) * 2),
    good=replace(_PAIR, data_types=("BFLOAT16",) * 2),
)
def concat_type_not_allowed(n: OnnxConcat) -> Findings:
    allowed = DATA_TYPES.get(n.version, ())
    if n.data_type is not None and n.data_type not in allowed:
        expected = ", ".join(allowed)
        yield Finding("inputs", f"are {n.data_type}; Concat {n.version} allows {expected}", expected, n.data_type)


concat_types_differ = NodeRule(
    "onnx/concat-types-differ",
    "The inputs have different element types.",
    "All inputs and the output have the same type; Concat does not convert elements.",
    sources=(ONNX_CONCAT,),
    needs={Fact.FORM, Fact.TYPE},
    spoils={Fact.TYPE},
    bad=replace(_PAIR, data_types=("FLOAT", "FLOAT16")),
    good=_PAIR,
    check=types_differ,
)


@NodeRule(
    "onnx/concat-scalar",
    "An input has no dimensions.",
    "Scalars have no axis along which they could be joined.",
    sources=(ONNX_CONCAT, ONNX_CONCAT_SHAPES),
    needs={Fact.FORM, Fact.SHAPE},
    spoils={Fact.SHAPE, Fact.AXIS},
    bad=replace(_PAIR, shapes=((), ()), axis=0),
    good=replace(_PAIR, shapes=((1,), (1,)), axis=0),
)
def concat_scalar(n: OnnxConcat) -> Findings:
    for i, shape in enumerate(n.shapes):
        if shape == ():
            yield Finding(("inputs", i), "has no dimensions", "1 dimension or more", 0)


concat_rank_differs = NodeRule(
    "onnx/concat-rank-differs",
    "The inputs have different numbers of dimensions.",
    "All inputs must have the same shape except for the size of the axis.",
    sources=(ONNX_CONCAT, ONNX_CONCAT_SHAPES),
    needs={Fact.FORM, Fact.SHAPE},
    spoils={Fact.SHAPE, Fact.AXIS},
    bad=replace(_PAIR, shapes=((4, 2), (4, 3, 1))),
    good=_PAIR,
    check=ranks_differ,
)


@NodeRule(
    "onnx/concat-axis-out-of-range",
    "The axis is not a dimension of the inputs.",
    "The axis must be in 0 to rank - 1, or in -rank to -1 to count from the end.",
    sources=(ONNX_CONCAT, ONNX_CONCAT_SHAPES),
    needs={Fact.FORM, Fact.AXIS, Fact.SHAPE},
    spoils={Fact.AXIS},
    bad=replace(_PAIR, axis=2),
    good=replace(_PAIR, axis=-2, shapes=((4, 2), (3, 2))),
)
def concat_axis_out_of_range(n: OnnxConcat) -> Findings:
    if n.rank is not None and n.axis_index is None:
        message = f"is {n.given_axis}, out of range for {n.rank} dimensions"
        yield Finding("axis", message, f"-{n.rank} to {n.rank - 1}", n.given_axis)


@NodeRule(
    "onnx/concat-axis-negative",
    "The axis is negative, which the text of this version does not define.",
    "Negative axes, which count from the end, were added in version 11.",
    severity=Severity.WARNING,
    sources=(ONNX_CONCAT_CHANGES,),
    needs={Fact.FORM, Fact.AXIS},
    bad=replace(_PAIR, version=4, axis=-1),
    good=replace(_PAIR, version=11, axis=-1),
)
def concat_axis_negative(n: OnnxConcat) -> Findings:
    axis = n.given_axis
    if axis is not None and axis < 0 and n.version < 11:
        yield Finding(
            "axis", f"is {axis}; the text of Concat {n.version} does not define negative axes", "0 or more", axis
        )


concat_shape_differs = NodeRule(
    "onnx/concat-shape-differs",
    "The inputs' sizes differ in a dimension other than the axis.",
    "All inputs must have the same shape except for the size of the axis.",
    sources=(ONNX_CONCAT, ONNX_CONCAT_SHAPES),
    needs={Fact.FORM, Fact.AXIS, Fact.SHAPE},
    spoils={Fact.SHAPE},
    where=sizes_alike,
    bad=replace(_PAIR, shapes=((4, 2), (5, 3))),
    good=replace(_PAIR, shapes=((4, 2), ("N", 3))),
    check=sizes_differ,
)


@NodeRule(
    "onnx/concat-declared-type-differs",
    "The element type that the model declares for the output differs from that of the inputs.",
    "A Concat does not convert elements.",
    sources=(ONNX_CONCAT,),
    needs={Fact.FORM, Fact.TYPE},
    bad=replace(_PAIR, declared_type="FLOAT16"),
    good=replace(_PAIR, declared_type="FLOAT"),
)
def concat_declared_type_differs(n: OnnxConcat) -> Findings:
    if n.data_type is not None and n.declared_type not in (None, n.data_type):
        message = f"is declared {n.declared_type}, but the inputs are {n.data_type}"
        yield Finding("output", message, n.data_type, n.declared_type)


@NodeRule(
    "onnx/concat-declared-shape-differs",
    "The shape that the model declares for the output is wrong.",
    "A runtime that trusts the declaration reads or writes outside the tensor, or refuses the model.",
    sources=(ONNX_IR, ONNX_CONCAT_SHAPES),
    needs={Fact.FORM, Fact.AXIS, Fact.SHAPE},
    where=declared_fits,
    bad=replace(_PAIR, declared_shape=(4, 6)),
    good=replace(_PAIR, declared_shape=(4, "total")),
)
def concat_declared_shape_differs(n: OnnxConcat) -> Findings:
    if not compatible(n.declared_shape, n.output_shape):
        declared, shape = shape_text(n.declared_shape), shape_text(n.output_shape)
        yield Finding("output", f"is declared {declared}, but is {shape}", shape, declared)
