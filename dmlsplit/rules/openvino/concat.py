"""Rules about OpenVINO's Concat-1.

They follow the text of the specification; a rule also notes where OpenVINO was observed to deviate.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from dmlsplit.descriptors.diagnostics import Basis, Severity
from dmlsplit.descriptors.dims import compatible, shape_text
from dmlsplit.rules._concat import declared_fits, ranks_differ, sizes_alike, sizes_differ, types_differ
from dmlsplit.rules._model import NONE, Finding, Findings
from dmlsplit.rules._nodes import Fact, NodeRule
from dmlsplit.rules._sources import OBSERVED_OPENVINO, OPENVINO_CONCAT, OPENVINO_ELEMENT_TYPE
from dmlsplit.rules.openvino.concat_facts import OpenVinoConcat
from dmlsplit.rules.openvino.split_facts import AXIS_KNOWN, ELEMENT_TYPES

EXAMPLE: Final = OpenVinoConcat(((1, 8, 50, 50), (1, 16, 50, 50), (1, 32, 50, 50)), ("f32",) * 3, axis=1)
"""The specification's own example."""
_NOT_NUMERIC: Final = ("boolean", "string")
_NOT_RUN: Final = ("u1", "u2", "u3", "u6")


@NodeRule(
    "openvino/concat-inputs",
    "The Concat has no inputs, or an input without an edge.",
    "A Concat joins one or more tensors.",
    sources=(OPENVINO_CONCAT,),
    spoils={Fact.FORM},
    bad=replace(EXAMPLE, missing=(1,)),
    good=EXAMPLE,
)
def concat_inputs(n: OpenVinoConcat) -> Findings:
    if not n.shapes:
        yield Finding("input", "has no ports", "one port or more", 0)
    for i in n.missing:
        yield Finding(("inputs", i), "is missing: the port has no edge", "a tensor")


@NodeRule(
    "openvino/concat-output-count",
    "The Concat does not have exactly one output port.",
    "A Concat has one output.",
    sources=(OPENVINO_CONCAT,),
    needs=NONE,
    bad=replace(EXAMPLE, outputs=2),
    good=EXAMPLE,
)
def concat_output_count(n: OpenVinoConcat) -> Findings:
    if n.outputs != 1:
        yield Finding("output", f"has {n.outputs} ports; a Concat has one", 1, n.outputs)


@NodeRule(
    "openvino/concat-type-unknown",
    "OpenVINO does not have an input's element type.",
    "The types `dynamic` and `undefined` count as unknown.",
    sources=(OPENVINO_ELEMENT_TYPE,),
    spoils={Fact.TYPE},
    bad=replace(EXAMPLE, data_types=("f128",) * 3),
    good=replace(EXAMPLE, data_types=("f64",) * 3),
)
def concat_type_unknown(n: OpenVinoConcat) -> Findings:
    for i, data_type in enumerate(n.data_types):
        if data_type is not None and data_type not in ELEMENT_TYPES:
            message = f"has elements of {data_type}, which is not an OpenVINO type"
            yield Finding(("inputs", i), message, "a known type", data_type)


concat_types_differ = NodeRule(
    "openvino/concat-types-differ",
    "The inputs have different element types.",
    "All inputs and the output have the same type; Concat does not convert elements.",
    sources=(OPENVINO_CONCAT,),
    needs={Fact.FORM, Fact.TYPE},
    spoils={Fact.TYPE},
    bad=replace(EXAMPLE, data_types=("f32", "f16", "f32")),
    good=replace(EXAMPLE, data_types=("f32", None, "f32")),
    check=types_differ,
)


@NodeRule(
    "openvino/concat-type-not-numeric",
    "The element type is not numeric.",
    "The specification allows numeric types. OpenVINO accepts boolean and string as well.",
    severity=Severity.NOTE,
    sources=(OPENVINO_CONCAT, OBSERVED_OPENVINO),
    needs={Fact.FORM, Fact.TYPE},
    bad=replace(EXAMPLE, data_types=("boolean",) * 3),
    good=replace(EXAMPLE, data_types=("u8",) * 3),
)
def concat_type_not_numeric(n: OpenVinoConcat) -> Findings:
    if n.data_type in _NOT_NUMERIC:
        yield Finding(
            "inputs", f"are {n.data_type}; the specification allows numeric types", "a numeric type", n.data_type
        )


@NodeRule(
    "openvino/concat-type-not-run",
    "OpenVINO does not run a Concat of this element type.",
    "The specification allows any numeric type. The CPU plugin refuses u1, u2, u3 and u6.",
    severity=Severity.WARNING,
    basis=Basis.OBSERVED,
    sources=(OBSERVED_OPENVINO,),
    needs={Fact.FORM, Fact.TYPE},
    bad=replace(EXAMPLE, data_types=("u2",) * 3),
    good=replace(EXAMPLE, data_types=("u4",) * 3),
)
def concat_type_not_run(n: OpenVinoConcat) -> Findings:
    if n.data_type in _NOT_RUN:
        yield Finding("inputs", f"have elements of {n.data_type}: OpenVINO returns an error")


@NodeRule(
    "openvino/concat-axis-missing",
    "The Concat has no axis.",
    "The attribute `axis` is required.",
    sources=(OPENVINO_CONCAT,),
    spoils={Fact.AXIS},
    runtimes="OpenVINO uses 0",
    bad=replace(EXAMPLE, axis=None),
    good=EXAMPLE,
)
def concat_axis_missing(n: OpenVinoConcat) -> Findings:
    if n.axis is None:
        yield Finding("axis", "is missing", "an axis")


@NodeRule(
    "openvino/concat-scalar",
    "An input is a scalar.",
    "Scalars have no axis along which they could be joined.",
    sources=(OPENVINO_CONCAT,),
    spoils={Fact.SHAPE, Fact.AXIS},
    bad=replace(EXAMPLE, shapes=((), (), ()), axis=0),
    good=replace(EXAMPLE, shapes=((1,), (1,), (1,)), axis=0),
)
def concat_scalar(n: OpenVinoConcat) -> Findings:
    for i, shape in enumerate(n.shapes):
        if shape == ():
            yield Finding(("inputs", i), "is a scalar", "rank 1 or more", 0)


@NodeRule(
    "openvino/concat-port-shape-differs",
    "An input port declares a different shape than the port that it is connected to.",
    "Both ends of an edge are the same tensor. dmlsplit uses the producer's shape, as OpenVINO does.",
    severity=Severity.WARNING,
    basis=Basis.OBSERVED,
    sources=(OBSERVED_OPENVINO,),
    bad=replace(EXAMPLE, port_shapes=((1, (1, 15, 50, 50)),)),
    good=EXAMPLE,
)
def concat_port_shape_differs(n: OpenVinoConcat) -> Findings:
    for i, declared in n.port_shapes:
        fed = shape_text(n.shapes[i])
        message = f"declares the shape {shape_text(declared)}, but its producer has {fed}"
        yield Finding(("inputs", i), message, fed, shape_text(declared))


concat_rank_differs = NodeRule(
    "openvino/concat-rank-differs",
    "The inputs have different numbers of dimensions.",
    "All inputs must have the same shape except for the size of the axis.",
    sources=(OPENVINO_CONCAT,),
    needs={Fact.FORM, Fact.SHAPE},
    spoils={Fact.SHAPE, Fact.AXIS},
    bad=replace(EXAMPLE, shapes=((1, 8, 50, 50), (1, 16, 50), (1, 32, 50, 50))),
    good=EXAMPLE,
    check=ranks_differ,
)


@NodeRule(
    "openvino/concat-axis-out-of-range",
    "The axis is not a dimension of the inputs.",
    "The axis must be in -rank to rank - 1; negative values count from the end.",
    sources=(OPENVINO_CONCAT,),
    needs=AXIS_KNOWN,
    spoils={Fact.AXIS},
    bad=replace(EXAMPLE, axis=4),
    good=replace(EXAMPLE, axis=-3),
)
def concat_axis_out_of_range(n: OpenVinoConcat) -> Findings:
    if n.rank is not None and n.axis_index is None:
        limits = f"{-n.rank}..{n.rank - 1}"
        yield Finding("axis", f"is {n.axis}, must be in {limits} for inputs of rank {n.rank}", limits, n.axis)


concat_shape_differs = NodeRule(
    "openvino/concat-shape-differs",
    "The inputs' sizes differ in a dimension other than the axis.",
    "All inputs must have the same shape except for the size of the axis.",
    sources=(OPENVINO_CONCAT,),
    needs=AXIS_KNOWN,
    spoils={Fact.SHAPE},
    where=sizes_alike,
    bad=replace(EXAMPLE, shapes=((1, 8, 50, 50), (1, 16, 50, 50), (2, 32, 50, 50))),
    good=replace(EXAMPLE, shapes=((1, 8, 50, 50), (1, 16, 50, 50), (None, 32, 50, 50))),
    check=sizes_differ,
)


@NodeRule(
    "openvino/concat-output-type",
    "The output port declares a different element type than the inputs have.",
    "The output has the inputs' type.",
    sources=(OPENVINO_CONCAT,),
    needs={Fact.FORM, Fact.TYPE},
    runtimes="OpenVINO uses the inputs' type and ignores the type that the port of a Concat declares",
    bad=replace(EXAMPLE, declared_type="f16"),
    good=replace(EXAMPLE, declared_type="f32"),
)
def concat_output_type(n: OpenVinoConcat) -> Findings:
    if None not in (n.data_type, n.declared_type) and n.declared_type != n.data_type:
        yield Finding(
            "output", f"declares {n.declared_type}, but the inputs are {n.data_type}", n.data_type, n.declared_type
        )


@NodeRule(
    "openvino/concat-output-shape",
    "The shape that the output port declares is wrong.",
    "The output has the inputs' sizes, and on the axis their sum.",
    sources=(OPENVINO_CONCAT,),
    needs=AXIS_KNOWN,
    runtimes="OpenVINO computes the shape itself and ignores the shape that the port of a Concat declares",
    where=declared_fits,
    bad=replace(EXAMPLE, declared_shape=(1, 48, 50, 50)),
    good=replace(EXAMPLE, declared_shape=(1, 56, None, 50)),
)
def concat_output_shape(n: OpenVinoConcat) -> Findings:
    if not compatible(n.declared_shape, n.output_shape):
        declared, shape = shape_text(n.declared_shape), shape_text(n.output_shape)
        yield Finding("output", f"declares the shape {declared}; it is {shape}", shape, declared)
