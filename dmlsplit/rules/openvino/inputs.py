"""Rules about the layer, the data and the axis of Split and VariadicSplit."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from dmlsplit.descriptors.diagnostics import Basis, Severity
from dmlsplit.descriptors.dims import compatible, shape_text
from dmlsplit.rules._model import NONE, Finding, Findings
from dmlsplit.rules._nodes import Fact, NodeRule
from dmlsplit.rules._sources import (
    OBSERVED_OPENVINO,
    OPENVINO_ELEMENT_TYPE,
    OPENVINO_SPLIT,
    OPENVINO_VARIADIC_SPLIT,
    OURS,
)
from dmlsplit.rules.openvino.split_facts import AXIS_KNOWN, ELEMENT_TYPES, INPUTS, INTEGER_TYPES, OpenVinoSplit

# The specifications' own examples, which the rules' examples vary.
SPLIT: Final = OpenVinoSplit(
    "Split", 3, data_shape=(6, 12, 10, 24), data_type="f32", axis=1, axis_type="i64", axis_shape=(), num_splits=3
)
LENGTHS: Final = replace(
    SPLIT,
    op="VariadicSplit",
    axis=0,
    num_splits=None,
    split_lengths=(1, 2, 3),
    split_lengths_type="i64",
    split_lengths_shape=(3,),
)
REST: Final = replace(LENGTHS, outputs=2, split_lengths=(-1, 2), split_lengths_shape=(2,))


@NodeRule(
    "openvino/inputs",
    "The layer does not have the inputs of its operation.",
    "Split has data and axis; VariadicSplit has data, axis and split_lengths. All of them are required.",
    sources=(OPENVINO_SPLIT, OPENVINO_VARIADIC_SPLIT),
    spoils={Fact.FORM},
    bad=replace(SPLIT, axis=None, axis_type=None, axis_shape=None, missing_inputs=("axis",)),
    good=SPLIT,
)
def inputs(n: OpenVinoSplit) -> Findings:
    expected = ", ".join(INPUTS[n.op])
    for name in n.missing_inputs:
        yield Finding(name, "is missing: the port has no edge", expected)
    if n.extra_inputs:
        count = len(INPUTS[n.op]) + n.extra_inputs
        yield Finding("input", f"has {count} ports; {n.op} has {expected}", expected, count)


@NodeRule(
    "openvino/type-unknown",
    "OpenVINO does not have the data's element type.",
    "The operations accept any type that OpenVINO supports. The types `dynamic` and `undefined` count as unknown.",
    sources=(OPENVINO_ELEMENT_TYPE, OPENVINO_SPLIT, OPENVINO_VARIADIC_SPLIT),
    needs=NONE,
    spoils={Fact.TYPE},
    bad=replace(SPLIT, data_type="f128"),
    good=replace(SPLIT, data_type="f64"),
)
def type_unknown(n: OpenVinoSplit) -> Findings:
    if n.data_type is not None and n.data_type not in ELEMENT_TYPES:
        yield Finding(
            "data", f"has elements of {n.data_type}, which is not an OpenVINO type", "a known type", n.data_type
        )


@NodeRule(
    "openvino/type-not-run",
    "OpenVINO does not run a split of this element type.",
    "The specification allows any type. The CPU plugin refuses u1, u3 and u6; with strings, Split returns wrong "
    "values and VariadicSplit crashes.",
    severity=Severity.WARNING,
    basis=Basis.OBSERVED,
    sources=(OBSERVED_OPENVINO,),
    needs={Fact.FORM, Fact.TYPE},
    bad=replace(SPLIT, data_type="u1"),
    good=replace(SPLIT, data_type="u2"),
)
def type_not_run(n: OpenVinoSplit) -> Findings:
    seen = {"string": "wrong values" if n.op == "Split" else "a crash"}
    if n.data_type in ("u1", "u3", "u6", "string"):
        yield Finding("data", f"has elements of {n.data_type}: OpenVINO gives {seen.get(n.data_type, 'an error')}")


@NodeRule(
    "openvino/data-scalar",
    "The data is a scalar.",
    "The axis must be in -rank to rank - 1, and a scalar has none.",
    sources=(OPENVINO_SPLIT, OPENVINO_VARIADIC_SPLIT),
    spoils={Fact.SHAPE, Fact.AXIS},
    bad=replace(SPLIT, data_shape=(), axis=0),
    good=replace(SPLIT, data_shape=(12,), axis=0),
)
def data_scalar(n: OpenVinoSplit) -> Findings:
    if n.rank == 0:
        yield Finding("data", "is a scalar, which has no axis to split", "rank 1 or more", 0)


@NodeRule(
    "openvino/port-shape-differs",
    "The layer's data port declares a different shape than the port that it is connected to.",
    "Both ends of an edge are the same tensor. dmlsplit uses the producer's shape, as OpenVINO does.",
    severity=Severity.WARNING,
    basis=Basis.OBSERVED,
    sources=(OBSERVED_OPENVINO,),
    bad=replace(SPLIT, port_shape=(6, 12)),
    good=SPLIT,
)
def port_shape_differs(n: OpenVinoSplit) -> Findings:
    if n.port_shape is not None:
        message = f"declares the shape {shape_text(n.port_shape)}, but its producer has {shape_text(n.data_shape)}"
        yield Finding("data", message, shape_text(n.data_shape), shape_text(n.port_shape))


@NodeRule(
    "openvino/axis-type",
    "The axis does not have an integer type.",
    "Any integer type is allowed, signed or unsigned.",
    sources=(OPENVINO_SPLIT, OPENVINO_VARIADIC_SPLIT),
    spoils={Fact.AXIS},
    bad=replace(SPLIT, axis=None, axis_type="f32"),
    good=replace(SPLIT, axis_type="u8"),
)
def axis_type(n: OpenVinoSplit) -> Findings:
    yield from not_integer("axis", n.axis_type)


@NodeRule(
    "openvino/axis-shape",
    "The axis is not a scalar.",
    "VariadicSplit also accepts a tensor of shape [1]; Split accepts only a scalar.",
    sources=(OPENVINO_SPLIT, OPENVINO_VARIADIC_SPLIT),
    spoils={Fact.AXIS},
    bad=replace(SPLIT, axis_shape=(1,)),
    good=replace(LENGTHS, axis_shape=(1,)),
)
def axis_shape(n: OpenVinoSplit) -> Findings:
    if not any(compatible(n.axis_shape, shape) for shape in ((), (1,))[: 1 if n.op == "Split" else 2]):
        expected = "a scalar" if n.op == "Split" else "a scalar or [1]"
        yield Finding("axis", f"has shape {shape_text(n.axis_shape)}, must be {expected}", expected)


@NodeRule(
    "openvino/axis-unknown",
    "The model does not determine the value of the axis.",
    "The value is read from constants, also through Convert, Reshape, Squeeze, Unsqueeze and the ShapeOf of a known "
    "shape. If the axis is computed otherwise, or is an input of the model, the outputs' shapes are unknown.",
    severity=Severity.WARNING,
    basis=Basis.OURS,
    sources=(OURS,),
    needs={Fact.FORM, Fact.AXIS},
    bad=replace(SPLIT, axis=None, axis_unknown="it comes from Parameter 'axis'"),
    good=SPLIT,
)
def axis_unknown(n: OpenVinoSplit) -> Findings:
    if n.axis_unknown is not None:
        yield Finding("axis", f"is not known: {n.axis_unknown}", "a constant")


@NodeRule(
    "openvino/axis-out-of-range",
    "The axis is not a dimension of the data.",
    "The axis must be in -rank to rank - 1; negative values count from the end.",
    sources=(OPENVINO_SPLIT, OPENVINO_VARIADIC_SPLIT),
    needs=AXIS_KNOWN,
    spoils={Fact.AXIS},
    bad=replace(SPLIT, axis=4),
    good=replace(SPLIT, axis=-4),
)
def axis_out_of_range(n: OpenVinoSplit) -> Findings:
    if n.axis is not None and n.rank is not None and n.axis_index is None:
        limits = f"{-n.rank}..{n.rank - 1}"
        yield Finding("axis", f"is {n.axis}, must be in {limits} for data of rank {n.rank}", limits, n.axis)


def not_integer(member: str, type: str | None) -> Findings:
    """Yields a finding if the type of an input that must be an integer type is known not to be one."""
    if type is not None and type not in INTEGER_TYPES:
        yield Finding(member, f"is {type}, must be an integer type", "an integer type", type)
