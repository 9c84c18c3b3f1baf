"""What Split and VariadicSplit ask of the layer, of the data and of the axis."""

from __future__ import annotations

from dataclasses import replace

from dmlsplit.diagnostics import Basis, Severity
from dmlsplit.rules._facts import Fact, node_rules
from dmlsplit.rules._model import OURS, Finding, Findings, Rule
from dmlsplit.rules.openvino import examples as eg
from dmlsplit.rules.openvino.facts import (
    AXIS_KNOWN,
    ELEMENT_TYPES,
    INPUTS,
    INTEGER_TYPES,
    OpenVinoSplit,
    compatible,
    dims_text,
)
from dmlsplit.rules.openvino.sources import ELEMENT_TYPE, OBSERVED, SPLIT, VARIADIC_SPLIT

RULES: list[Rule] = []
_rule = node_rules(RULES)


@_rule(
    "openvino/inputs",
    "The layer does not have the inputs of its operation.",
    "Split has data and axis, VariadicSplit data, axis and split_lengths; none of them is optional.",
    sources=(SPLIT, VARIADIC_SPLIT),
    marks=Fact.FORM,
    bad_node=replace(eg.SPLIT, axis=None, axis_type=None, axis_shape=None, missing_inputs=("axis",)),
    good_node=eg.SPLIT,
)
def _inputs(n: OpenVinoSplit) -> Findings:
    expected = ", ".join(INPUTS[n.op])
    found = [Finding(name, "is missing: no edge leads to it", expected) for name in n.missing_inputs]
    if n.extra_inputs:
        count = len(INPUTS[n.op]) + n.extra_inputs
        found.append(Finding("input", f"has {count} ports; {n.op} has {expected}", expected, count))
    return found


@_rule(
    "openvino/type-unknown",
    "The data's element type is not one of OpenVINO's.",
    "The operations take any type that OpenVINO supports. A type of `dynamic` or `undefined` is taken as not known.",
    sources=(ELEMENT_TYPE, SPLIT, VARIADIC_SPLIT),
    marks=Fact.TYPE,
    bad_node=replace(eg.SPLIT, data_type="f128"),
    good_node=replace(eg.SPLIT, data_type="f64"),
)
def _type_unknown(n: OpenVinoSplit) -> Findings:
    if n.data_type is None or n.data_type in ELEMENT_TYPES:
        return None
    return [Finding("data", f"has elements of {n.data_type}, which is no OpenVINO type", "a known type", n.data_type)]


@_rule(
    "openvino/type-not-run",
    "OpenVINO does not run a split of this element type.",
    "The specification allows any type. The CPU plugin refuses u1, u3 and u6; with strings, Split gives wrong values "
    "and VariadicSplit crashes.",
    severity=Severity.WARNING,
    basis=Basis.OBSERVED,
    sources=(OBSERVED,),
    reads=Fact.FORM | Fact.TYPE,
    bad_node=replace(eg.SPLIT, data_type="u1"),
    good_node=replace(eg.SPLIT, data_type="u2"),
)
def _type_not_run(n: OpenVinoSplit) -> Findings:
    seen = {"string": "wrong values" if n.op == "Split" else "a crash"}
    if n.data_type not in ("u1", "u3", "u6", "string"):
        return None
    return [Finding("data", f"has elements of {n.data_type}: OpenVINO gives {seen.get(n.data_type, 'an error')}")]


@_rule(
    "openvino/data-scalar",
    "The data is a scalar.",
    "The axis is one of -rank to rank - 1: there is none to split.",
    sources=(SPLIT, VARIADIC_SPLIT),
    reads=Fact.FORM,
    marks=Fact.SHAPE | Fact.AXIS,
    bad_node=replace(eg.SPLIT, data_shape=(), axis=0),
    good_node=replace(eg.SPLIT, data_shape=(12,), axis=0),
)
def _data_scalar(n: OpenVinoSplit) -> Findings:
    return [Finding("data", "is a scalar: there is no axis to split", "rank 1 or more", 0)] if n.rank == 0 else None


@_rule(
    "openvino/port-shape-differs",
    "The layer's data port declares another shape than the port that feeds it.",
    "Both ends of an edge are one tensor. The shape is taken from where the data comes from, as OpenVINO does.",
    severity=Severity.WARNING,
    basis=Basis.OBSERVED,
    sources=(OBSERVED,),
    reads=Fact.FORM,
    bad_node=replace(eg.SPLIT, port_shape=(6, 12)),
    good_node=eg.SPLIT,
)
def _port_shape_differs(n: OpenVinoSplit) -> Findings:
    if n.port_shape is None:
        return None
    message = f"declares the shape {dims_text(n.port_shape)}, what feeds it has {dims_text(n.data_shape)}"
    return [Finding("data", message, dims_text(n.data_shape), dims_text(n.port_shape))]


@_rule(
    "openvino/axis-type",
    "The axis is not of an integer type.",
    "It may be of any integer type, signed or not.",
    sources=(SPLIT, VARIADIC_SPLIT),
    reads=Fact.FORM,
    marks=Fact.AXIS,
    bad_node=replace(eg.SPLIT, axis=None, axis_type="f32"),
    good_node=replace(eg.SPLIT, axis_type="u8"),
)
def _axis_type(n: OpenVinoSplit) -> Findings:
    return not_integer("axis", n.axis_type)


@_rule(
    "openvino/axis-shape",
    "The axis is not a scalar.",
    "VariadicSplit takes a tensor of shape [1], too; Split takes a scalar only.",
    sources=(SPLIT, VARIADIC_SPLIT),
    reads=Fact.FORM,
    marks=Fact.AXIS,
    bad_node=replace(eg.SPLIT, axis_shape=(1,)),
    good_node=replace(eg.LENGTHS, axis_shape=(1,)),
)
def _axis_shape(n: OpenVinoSplit) -> Findings:
    if any(compatible(n.axis_shape, shape) for shape in ((), (1,))[: 1 if n.op == "Split" else 2]):
        return None
    expected = "a scalar" if n.op == "Split" else "a scalar or [1]"
    return [Finding("axis", f"has shape {dims_text(n.axis_shape)}, must be {expected}", expected)]


@_rule(
    "openvino/axis-unknown",
    "The value of the axis is not in the model.",
    "It is read from constants, also behind Convert, Reshape, Squeeze, Unsqueeze and the ShapeOf of a known shape. An "
    "axis that is computed otherwise, or fed in, leaves the outputs' shapes unknown.",
    severity=Severity.WARNING,
    basis=Basis.OURS,
    sources=(OURS,),
    reads=Fact.FORM | Fact.AXIS,
    bad_node=replace(eg.SPLIT, axis=None, axis_unknown="it comes from Parameter 'axis'"),
    good_node=eg.SPLIT,
)
def _axis_unknown(n: OpenVinoSplit) -> Findings:
    return [Finding("axis", f"is not known: {n.axis_unknown}", "a constant")] if n.axis_unknown is not None else None


@_rule(
    "openvino/axis-out-of-range",
    "The axis is not a dimension of the data.",
    "It counts from -rank to rank - 1; negative values count from the end.",
    sources=(SPLIT, VARIADIC_SPLIT),
    reads=AXIS_KNOWN,
    marks=Fact.AXIS,
    bad_node=replace(eg.SPLIT, axis=4),
    good_node=replace(eg.SPLIT, axis=-4),
)
def _axis_out_of_range(n: OpenVinoSplit) -> Findings:
    if n.axis is None or n.rank is None or n.axis_index is not None:
        return None
    limits = f"{-n.rank}..{n.rank - 1}"
    return [Finding("axis", f"is {n.axis}, must be in {limits} for data of rank {n.rank}", limits, n.axis)]


def not_integer(member: str, type: str | None) -> Findings:
    """The fault of an input that is to be of an integer type."""
    if type is None or type in INTEGER_TYPES:
        return None
    return [Finding(member, f"is of {type}, must be of an integer type", "an integer type", type)]
