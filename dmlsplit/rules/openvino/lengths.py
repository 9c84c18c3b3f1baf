"""Rules about num_splits and split_lengths, and the output ports that they determine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dmlsplit.descriptors.conditions import Condition, is_one
from dmlsplit.descriptors.diagnostics import Basis, Severity
from dmlsplit.descriptors.dims import dim_text, shape_text
from dmlsplit.rules._facts import misdeclared, outputs_fit
from dmlsplit.rules._model import NONE, Finding, Findings
from dmlsplit.rules._nodes import Fact, NodeRule
from dmlsplit.rules._sources import OBSERVED_OPENVINO, OPENVINO_SPLIT, OPENVINO_VARIADIC_SPLIT, OURS
from dmlsplit.rules.openvino.inputs import LENGTHS, REST, SPLIT, not_integer
from dmlsplit.rules.openvino.split_facts import AXIS_KNOWN, INTEGER_TYPES, OpenVinoSplit


@NodeRule(
    "openvino/num-splits-missing",
    "The attribute num_splits is missing.",
    "Split requires the attribute.",
    sources=(OPENVINO_SPLIT,),
    needs=NONE,
    spoils={Fact.COUNT},
    bad=replace(SPLIT, num_splits=None),
    good=SPLIT,
)
def num_splits_missing(n: OpenVinoSplit) -> Findings:
    if n.op == "Split" and n.num_splits is None:
        yield Finding("num_splits", "is absent", "an integer of at least 1")


@NodeRule(
    "openvino/num-splits-below-one",
    "num_splits is below 1.",
    "num_splits is the number of outputs.",
    sources=(OPENVINO_SPLIT,),
    needs={Fact.COUNT},
    spoils={Fact.COUNT},
    bad=replace(SPLIT, num_splits=0),
    good=replace(SPLIT, num_splits=1, outputs=1),
)
def num_splits_below_one(n: OpenVinoSplit) -> Findings:
    if n.num_splits is not None and n.num_splits < 1:
        yield Finding("num_splits", f"is {n.num_splits}, must be at least 1", "at least 1", n.num_splits)


@NodeRule(
    "openvino/num-splits-too-large",
    "num_splits is larger than the size of the axis.",
    "num_splits must not exceed the size of the data on the axis. openvino/axis-size-zero reports an axis of size 0.",
    sources=(OPENVINO_SPLIT,),
    needs=AXIS_KNOWN | {Fact.COUNT},
    spoils={Fact.LENGTHS},
    bad=replace(SPLIT, data_shape=(6, 2, 10, 24)),
    good=replace(SPLIT, data_shape=(6, 3, 10, 24)),
)
def num_splits_too_large(n: OpenVinoSplit) -> Findings:
    if n.too_many_parts:
        message = f"is {n.num_splits}, but axis {n.axis} of the data has size {dim_text(n.axis_size)}"
        yield Finding("num_splits", message, f"at most {n.axis_bounds.high}", n.num_splits)


@NodeRule(
    "openvino/axis-size-zero",
    "The axis of a Split has size 0.",
    "The specification requires num_splits to be between 1 and the size of the axis, which is impossible for size 0. "
    "OpenVINO accepts the layer, and all outputs are empty.",
    severity=Severity.WARNING,
    basis=Basis.OBSERVED,
    sources=(OBSERVED_OPENVINO, OPENVINO_SPLIT),
    needs=AXIS_KNOWN | {Fact.COUNT},
    bad=replace(SPLIT, data_shape=(6, 0, 10, 24)),
    good=replace(SPLIT, data_shape=(0, 12, 10, 24)),
)
def axis_size_zero(n: OpenVinoSplit) -> Findings:
    if n.op == "Split" and n.axis_size == 0:
        message = f"has size 0 on axis {n.axis}, for which no num_splits is valid; OpenVINO makes empty outputs"
        yield Finding("data", message, "at least 1", 0)


def _divisible_where(n: OpenVinoSplit) -> Iterator[Condition]:
    size = n.axis_length
    if n.op == "Split" and size is not None and n.num_splits is not None and n.num_splits > 0:
        yield Condition(size, "divisible by", n.num_splits)


@NodeRule(
    "openvino/not-divisible",
    "The axis cannot be divided evenly by num_splits.",
    "All outputs of a Split have the same size. If the size is an interval, no size in it is divisible.",
    sources=(OPENVINO_SPLIT,),
    needs=AXIS_KNOWN | {Fact.COUNT, Fact.LENGTHS},
    spoils={Fact.LENGTHS},
    where=_divisible_where,
    bad=replace(SPLIT, data_shape=(6, 13, 10, 24)),
    good=SPLIT,
)
def not_divisible(n: OpenVinoSplit) -> Findings:
    if n.indivisible:
        message = (
            f"has size {dim_text(n.axis_size)} on axis {n.axis}, which is not divisible by num_splits, {n.num_splits}"
        )
        yield Finding("data", message, f"a multiple of {n.num_splits}", dim_text(n.axis_size))


@NodeRule(
    "openvino/lengths-type",
    "split_lengths does not have an integer type.",
    "Any integer type is allowed, signed or unsigned.",
    sources=(OPENVINO_VARIADIC_SPLIT,),
    spoils={Fact.LENGTHS},
    bad=replace(LENGTHS, split_lengths=None, split_lengths_type="f32"),
    good=replace(LENGTHS, axis_type="i16", split_lengths_type="i16"),
)
def lengths_type(n: OpenVinoSplit) -> Findings:
    yield from not_integer("split_lengths", n.split_lengths_type)


@NodeRule(
    "openvino/types-differ",
    "axis and split_lengths have different integer types.",
    "The specification requires both to have one type, T2. OpenVINO accepts different types.",
    severity=Severity.WARNING,
    sources=(OPENVINO_VARIADIC_SPLIT, OBSERVED_OPENVINO),
    bad=replace(LENGTHS, axis_type="i32"),
    good=replace(LENGTHS, axis_type="i32", split_lengths_type="i32"),
)
def types_differ(n: OpenVinoSplit) -> Findings:
    types = (n.axis_type, n.split_lengths_type)
    if types[0] != types[1] and not any(t not in INTEGER_TYPES for t in types):
        message = f"is {types[1]}, axis is {types[0]}; the specification requires one type, but OpenVINO accepts both"
        yield Finding("split_lengths", message, types[0], types[1])


@NodeRule(
    "openvino/lengths-misread",
    "OpenVINO misreads lengths of a type below 8 bits.",
    "The specification allows these integer types. OpenVINO reads a whole byte for each length of 4 bits, and "
    "refuses types of 1, 2, 3 and 6 bits.",
    severity=Severity.WARNING,
    basis=Basis.OBSERVED,
    sources=(OBSERVED_OPENVINO,),
    bad=replace(LENGTHS, axis_type="i4", split_lengths_type="i4"),
    good=replace(LENGTHS, axis_type="i8", split_lengths_type="i8"),
)
def lengths_misread(n: OpenVinoSplit) -> Findings:
    if n.split_lengths_type in ("u1", "u2", "u3", "i4", "u4", "u6"):
        message = f"is {n.split_lengths_type}, which OpenVINO misreads or refuses"
        yield Finding("split_lengths", message, "8 bits or more", n.split_lengths_type)


@NodeRule(
    "openvino/lengths-shape",
    "split_lengths is not one-dimensional.",
    "split_lengths has one dimension, with one entry for each output.",
    sources=(OPENVINO_VARIADIC_SPLIT,),
    spoils={Fact.LENGTHS},
    bad=replace(LENGTHS, split_lengths=None, split_lengths_shape=(1, 3)),
    good=LENGTHS,
)
def lengths_shape(n: OpenVinoSplit) -> Findings:
    if n.split_lengths_shape is not None and len(n.split_lengths_shape) != 1:
        message = f"has shape {shape_text(n.split_lengths_shape)}, must have one dimension"
        yield Finding("split_lengths", message, "one dimension")


@NodeRule(
    "openvino/lengths-unknown",
    "The model does not determine the values of split_lengths.",
    "The values are read from constants, also through Convert, Reshape, Squeeze, Unsqueeze and the ShapeOf of a "
    "known shape. Lengths that are computed otherwise, or are an input of the model, cannot be checked. OpenVINO "
    "does not check them either, and makes empty outputs if they do not fit.",
    severity=Severity.WARNING,
    basis=Basis.OURS,
    sources=(OURS, OBSERVED_OPENVINO),
    needs={Fact.FORM, Fact.LENGTHS},
    bad=replace(LENGTHS, split_lengths=None, split_lengths_unknown="it comes from Parameter 'lengths'"),
    good=LENGTHS,
)
def lengths_unknown(n: OpenVinoSplit) -> Findings:
    if n.split_lengths_unknown is not None:
        yield Finding("split_lengths", f"is not known: {n.split_lengths_unknown}", "a constant")


@NodeRule(
    "openvino/length-negative",
    "A length is below -1.",
    "-1 stands for the rest of the axis; no other negative length is defined.",
    sources=(OPENVINO_VARIADIC_SPLIT,),
    needs={Fact.FORM, Fact.LENGTHS},
    spoils={Fact.LENGTHS},
    bad=replace(REST, split_lengths=(-2, 8)),
    good=REST,
)
def length_negative(n: OpenVinoSplit) -> Findings:
    for i, length in enumerate(n.split_lengths or ()):
        if length < -1:
            yield Finding(("split_lengths", i), f"is {length}, must be at least -1", "at least -1", length)


@NodeRule(
    "openvino/lengths-several-rest",
    "More than one length is -1.",
    "Only one output can have the rest of the axis.",
    sources=(OPENVINO_VARIADIC_SPLIT,),
    needs={Fact.FORM, Fact.LENGTHS},
    spoils={Fact.LENGTHS},
    bad=replace(REST, split_lengths=(-1, -1)),
    good=REST,
)
def lengths_several_rest(n: OpenVinoSplit) -> Findings:
    places = [i for i, length in enumerate(n.split_lengths or ()) if length == -1]
    if len(places) >= 2:
        message = f"are -1 at {places[0]} and {places[1]}; one -1 is allowed"
        yield Finding("split_lengths", message, "one -1 at most", len(places))


def _rest_where(n: OpenVinoSplit) -> Iterator[Condition]:
    size = n.axis_length
    if n.has_rest and n.total is not None and size is not None:
        yield Condition(size, "at least", n.total)


@NodeRule(
    "openvino/rest-negative",
    "The other lengths exceed the axis, so -1 would stand for a negative length.",
    "-1 stands for the rest of the axis, which may be empty but not negative.",
    sources=(OPENVINO_VARIADIC_SPLIT,),
    needs=AXIS_KNOWN | {Fact.LENGTHS},
    spoils={Fact.LENGTHS},
    runtimes="OpenVINO makes the output of -1 empty and reads past the end of the data for another",
    where=_rest_where,
    bad=replace(REST, split_lengths=(-1, 7)),
    good=replace(REST, split_lengths=(-1, 6)),
)
def rest_negative(n: OpenVinoSplit) -> Findings:
    high = n.axis_bounds.high
    if n.has_rest and n.total is not None and high is not None and n.total > high:
        message = f"without the -1 add up to {n.total}, but axis {n.axis} of the data has size {dim_text(n.axis_size)}"
        yield Finding("split_lengths", message, f"at most {high}", n.total)


def _sum_where(n: OpenVinoSplit) -> Iterator[Condition]:
    size = n.axis_length
    if not n.has_rest and n.total is not None and size is not None:
        yield is_one(size, n.total)


@NodeRule(
    "openvino/lengths-sum",
    "The lengths do not add up to the size of the axis.",
    "The outputs must cover the data exactly. If the model leaves the size open, OpenVINO does not check the lengths "
    "at run time either: outputs then lack data, or read past its end.",
    sources=(OPENVINO_VARIADIC_SPLIT,),
    needs=AXIS_KNOWN | {Fact.LENGTHS},
    spoils={Fact.LENGTHS},
    where=_sum_where,
    bad=replace(LENGTHS, split_lengths=(1, 2, 4)),
    good=LENGTHS,
)
def lengths_sum(n: OpenVinoSplit) -> Findings:
    if n.wrong_sum:
        size = dim_text(n.axis_size)
        message = f"add up to {n.total}, but axis {n.axis} of the data has size {size}"
        yield Finding("split_lengths", message, size, n.total)


@NodeRule(
    "openvino/output-count",
    "The layer does not have one output port for each part.",
    "The number of outputs is num_splits, or the number of split_lengths.",
    sources=(OPENVINO_SPLIT, OPENVINO_VARIADIC_SPLIT),
    needs={Fact.FORM, Fact.COUNT},
    spoils={Fact.COUNT},
    bad=replace(SPLIT, outputs=2),
    good=SPLIT,
)
def output_count(n: OpenVinoSplit) -> Findings:
    if n.count is not None and n.count != n.outputs:
        what = "num_splits is" if n.op == "Split" else "the number of split_lengths is"
        yield Finding("output", f"has {n.outputs} ports, but {what} {n.count}", n.count, n.outputs)


@NodeRule(
    "openvino/output-type",
    "An output port declares a different element type than the data has.",
    "The outputs have the data's type.",
    sources=(OPENVINO_SPLIT, OPENVINO_VARIADIC_SPLIT),
    needs={Fact.FORM, Fact.TYPE},
    runtimes="OpenVINO uses the data's type and ignores the types that the ports of a Split declare",
    bad=replace(SPLIT, declared_types=("f32", "f16", "f32")),
    good=replace(SPLIT, declared_types=("f32", "f32", "f32")),
)
def output_type(n: OpenVinoSplit) -> Findings:
    for i, declared in enumerate(n.declared_types):
        if declared is not None and n.data_type is not None and declared != n.data_type:
            yield Finding(("output", i), f"declares {declared}, but the data is {n.data_type}", n.data_type, declared)


@NodeRule(
    "openvino/output-shape",
    "The shape that an output port declares is wrong.",
    "An output has the data's sizes, except on the axis, where it has the size of its part.",
    sources=(OPENVINO_SPLIT, OPENVINO_VARIADIC_SPLIT),
    needs=AXIS_KNOWN | {Fact.LENGTHS, Fact.COUNT},
    runtimes="OpenVINO computes the shapes itself and ignores the shapes that the ports of a Split declare",
    where=outputs_fit,
    bad=replace(SPLIT, declared_shapes=((6, 4, 10, 24), (6, 5, 10, 24), (6, 3, 10, 24))),
    good=replace(SPLIT, declared_shapes=((6, 4, 10, 24), (6, None, 10, 24), None)),
)
def output_shape(n: OpenVinoSplit) -> Findings:
    yield from misdeclared(n, "output", "declares the shape {declared}; it is {shape}")
