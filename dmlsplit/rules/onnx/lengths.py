"""Rules about the lengths of ONNX's Split, and the outputs that they determine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dmlsplit.descriptors.conditions import Condition, is_one, total
from dmlsplit.descriptors.diagnostics import Basis, Severity
from dmlsplit.descriptors.dims import Dim, shape_text
from dmlsplit.rules._facts import misdeclared, outputs_fit
from dmlsplit.rules._model import Finding, Findings
from dmlsplit.rules._nodes import Fact, NodeRule
from dmlsplit.rules._sources import OBSERVED_RUNTIMES, ONNX_IR, ONNX_SPLIT, ONNX_SPLIT_CHANGES, ONNX_SPLIT_SHAPES
from dmlsplit.rules.onnx.form import COUNTED, EQUAL, GIVEN
from dmlsplit.rules.onnx.split_facts import OnnxSplit


@NodeRule(
    "onnx/split-given-twice",
    "Split 1 has its lengths both as attribute and as input.",
    "The text of version 1 allows one or the other. They agree, or the input is not known.",
    severity=Severity.WARNING,
    sources=(ONNX_SPLIT_CHANGES,),
    needs={Fact.FORM, Fact.LENGTHS},
    bad=replace(GIVEN, version=1, split_type="FLOAT", split=(2, 4)),
    good=replace(GIVEN, version=1, split_type="FLOAT"),
)
def split_given_twice(n: OnnxSplit) -> Findings:
    if n.version == 1 and n.split is not None and n.split_input and n.split_values in (None, n.split):
        how = "which agree" if n.split_values else "but the input is not known"
        yield Finding("split", f"is given as attribute and as input, {how}", "one of the two")


@NodeRule(
    "onnx/split-given-twice-differs",
    "Split 1 has different lengths as attribute and as input.",
    "The text of version 1 allows one or the other, and does not say which has precedence.",
    sources=(ONNX_SPLIT_CHANGES,),
    needs={Fact.FORM, Fact.LENGTHS},
    spoils={Fact.LENGTHS},
    bad=replace(GIVEN, version=1, split_type="FLOAT", split=(3, 3)),
    good=replace(GIVEN, version=1, split_type="FLOAT"),
)
def split_given_twice_differs(n: OnnxSplit) -> Findings:
    if n.version == 1 and n.split is not None and n.split_values not in (None, n.split):
        message = f"is {shape_text(n.split)} as attribute and {shape_text(n.split_values)} as input"
        yield Finding("split", message, shape_text(n.split), shape_text(n.split_values))


@NodeRule(
    "onnx/split-malformed",
    "The tensor of the lengths is inconsistent, or cannot be read.",
    "Its data and dimensions do not match, or its external data is not where the model says, or is outside the "
    "model's folder.",
    sources=(ONNX_IR,),
    needs={Fact.FORM, Fact.LENGTHS},
    spoils={Fact.LENGTHS},
    bad=replace(GIVEN, split_values=None, split_malformed="has dimensions [2] and data for [1]"),
    good=GIVEN,
)
def split_malformed(n: OnnxSplit) -> Findings:
    if n.split_malformed is not None:
        yield Finding("split", n.split_malformed, "a tensor that can be read")


@NodeRule(
    "onnx/split-type",
    "The lengths have a wrong element type.",
    "The input `split` has the type of the data in version 1, and is int64 from version 13 on.",
    sources=(ONNX_SPLIT, ONNX_SPLIT_CHANGES),
    needs={Fact.FORM, Fact.LENGTHS},
    spoils={Fact.LENGTHS},
    runtimes="the reference evaluator accepts any integer type; so does OpenVINO, which also accepts floats, but "
    "ignores the input at version 1",
    bad=replace(GIVEN, split_type="INT32"),
    good=GIVEN,
)
def split_type(n: OnnxSplit) -> Findings:
    expected = "INT64" if n.version >= 13 else n.data_type
    if n.split_input and n.split_type is not None and expected is not None and n.split_type != expected:
        message = f"is {n.split_type}, must be {expected}"
        yield Finding("split", message if n.version >= 13 else f"{message}, like the data", expected, n.split_type)


@NodeRule(
    "onnx/split-rank",
    "The lengths are not one-dimensional.",
    "`split` has rank 1, with one element for each output.",
    sources=(ONNX_SPLIT,),
    needs={Fact.FORM, Fact.LENGTHS},
    spoils={Fact.LENGTHS},
    runtimes="onnx's shape inference accepts any rank",
    bad=replace(GIVEN, split_shape=(1, 2)),
    good=GIVEN,
)
def split_rank(n: OnnxSplit) -> Findings:
    shape = n.split_shape
    if n.split_input and shape is not None and len(shape) != 1:
        yield Finding("split", f"has shape {shape_text(shape)}, must be of rank 1", "rank 1", len(shape))


@NodeRule(
    "onnx/split-not-whole",
    "A length is not a whole number.",
    "In version 1 the lengths have the type of the data and are therefore floats, but they count elements.",
    sources=(ONNX_SPLIT_CHANGES,),
    needs={Fact.FORM, Fact.LENGTHS},
    spoils={Fact.LENGTHS},
    bad=replace(GIVEN, version=1, split_type="FLOAT", split_values=(2.5, 3.5)),
    good=replace(GIVEN, version=1, split_type="FLOAT", split_values=(2.0, 4.0)),
)
def split_not_whole(n: OnnxSplit) -> Findings:
    if n.split_input and n.split_values is not None and n.given_lengths is None:
        for i, value in enumerate(n.split_values):
            if not float(value).is_integer():
                yield Finding(("split", i), f"is {value}, must be a whole number", "a whole number", str(value))


@NodeRule(
    "onnx/split-count",
    "The number of lengths differs from the number of outputs.",
    "There must be one length for each output.",
    sources=(ONNX_SPLIT_SHAPES, ONNX_SPLIT),
    needs={Fact.FORM, Fact.LENGTHS, Fact.COUNT},
    spoils={Fact.COUNT},
    runtimes="OpenVINO and the reference evaluator ignore lengths beyond the outputs, and ONNX Runtime makes equal "
    "parts if a computed tensor of lengths is empty at run time",
    bad=replace(GIVEN, outputs=3),
    good=GIVEN,
)
def split_count(n: OnnxSplit) -> Findings:
    lengths, shape = n.given_lengths, n.split_shape or ()
    count: Dim = len(lengths) if lengths is not None else shape[0] if len(shape) == 1 else None
    if not n.equal_parts and isinstance(count, int) and count != n.outputs:
        yield Finding("split", f"has {count} lengths, but the node has {n.outputs} outputs", n.outputs, count)


@NodeRule(
    "onnx/split-negative",
    "A length is negative.",
    "Lengths must be at least 0; in ONNX, -1 does not stand for the rest of the axis.",
    sources=(ONNX_SPLIT, ONNX_SPLIT_CHANGES),
    needs={Fact.FORM, Fact.LENGTHS},
    spoils={Fact.LENGTHS},
    runtimes="OpenVINO treats -1 as the rest of the axis, the reference evaluator slices from the end, and onnx's "
    "shape inference checks only the sum",
    bad=replace(GIVEN, split_values=(7, -1)),
    good=replace(GIVEN, split_values=(6, 0)),
)
def split_negative(n: OnnxSplit) -> Findings:
    for i, length in enumerate(n.given_lengths or ()):
        if length < 0:
            yield Finding(("split", i), f"is {length}, must be at least 0", "at least 0", length)


def _sum_where(n: OnnxSplit) -> Iterator[Condition]:
    size, parts = n.axis_length, n.parts
    if not n.equal_parts and size is not None and parts is not None:
        yield is_one(total(parts), size)


@NodeRule(
    "onnx/split-sum",
    "The lengths do not add up to the size of the axis.",
    "The parts must cover the input exactly.",
    sources=(ONNX_SPLIT_SHAPES, ONNX_SPLIT),
    needs={Fact.FORM, Fact.AXIS, Fact.SHAPE, Fact.LENGTHS, Fact.COUNT},
    spoils={Fact.LENGTHS},
    runtimes="the reference evaluator slices as far as there is data, and OpenVINO makes empty parts if the lengths "
    "are computed at run time",
    where=_sum_where,
    bad=replace(GIVEN, split_values=(2, 3)),
    good=GIVEN,
)
def split_sum(n: OnnxSplit) -> Findings:
    size, lengths = n.axis_size, n.given_lengths
    if lengths is not None and isinstance(size, int) and sum(lengths) != size:
        message = f"is {shape_text(lengths)}, with sum {sum(lengths)}; axis {n.axis or 0} of the input has size {size}"
        yield Finding("split", message, size, sum(lengths))


@NodeRule(
    "onnx/split-zero",
    "A length is 0, which the text of this version does not define.",
    "Lengths of 0 are documented from version 11 on.",
    severity=Severity.NOTE,
    sources=(ONNX_SPLIT_CHANGES,),
    needs={Fact.FORM, Fact.LENGTHS},
    bad=replace(EQUAL, version=2, split=(0, 6)),
    good=replace(EQUAL, version=11, split=(0, 6)),
)
def split_zero(n: OnnxSplit) -> Findings:
    if n.version < 11:
        for i, length in enumerate(n.given_lengths or ()):
            if length == 0:
                yield Finding(
                    ("split", i), f"is 0, which the text of Split {n.version} does not define", "1 or more", 0
                )


def _divisible_where(n: OnnxSplit) -> Iterator[Condition]:
    size = n.axis_length
    if n.version < 18 and n.equal_parts and size is not None and n.outputs:
        yield Condition(size, "divisible by", n.outputs)


@NodeRule(
    "onnx/not-divisible",
    "The axis cannot be divided into equal parts.",
    "Before version 18, parts without explicit lengths are equal. From 18 on, the last may be smaller.",
    sources=(ONNX_SPLIT, ONNX_SPLIT_SHAPES),
    needs={Fact.FORM, Fact.AXIS, Fact.SHAPE, Fact.LENGTHS, Fact.COUNT},
    spoils={Fact.LENGTHS},
    runtimes="the reference evaluator and OpenVINO round up, and make the last part smaller",
    where=_divisible_where,
    bad=replace(EQUAL, outputs=4),
    good=replace(EQUAL, outputs=3),
)
def not_divisible(n: OnnxSplit) -> Findings:
    size = n.axis_size
    if n.version < 18 and n.equal_parts and isinstance(size, int) and size % n.outputs != 0:
        message = (
            f"are {n.outputs}; axis {n.axis or 0} of the input has size {size}, which is not divisible by {n.outputs}"
        )
        yield Finding("outputs", message, f"a divisor of {size}", n.outputs)


def _last_chunk_where(n: OnnxSplit) -> Iterator[Condition]:
    if n.version >= 18 and n.equal_parts and n.num_outputs is not None and n.parts:
        yield Condition(n.parts[-1], "at least", 0)


@NodeRule(
    "onnx/last-chunk-negative",
    "`num_outputs` leaves a negative size for the last part.",
    "All parts except the last have the size of the axis divided by num_outputs, rounded up; the last has the "
    "remainder.",
    sources=(ONNX_SPLIT_SHAPES, ONNX_SPLIT),
    needs={Fact.FORM, Fact.AXIS, Fact.SHAPE, Fact.LENGTHS, Fact.COUNT},
    spoils={Fact.LENGTHS},
    runtimes="onnx's shape inference infers a negative size, and the reference evaluator makes the last parts empty",
    where=_last_chunk_where,
    bad=replace(COUNTED, input_shape=(4, 5), outputs=4, num_outputs=4),
    good=replace(COUNTED, input_shape=(4, 7), outputs=4, num_outputs=4),
)
def last_chunk_negative(n: OnnxSplit) -> Findings:
    last, of = _last_chunk(n), f"of the {n.axis_size} of axis {n.axis or 0}"
    if last is not None and last < 0:
        message = f"is {n.num_outputs}: {of}, {last} are left for the last part"
        yield Finding("num_outputs", message, "0 or more left", last)


@NodeRule(
    "onnx/last-chunk-empty",
    "`num_outputs` leaves nothing for the last part.",
    "These lengths follow from the rule of version 18. ONNX Runtime and OpenVINO refuse the node; an axis of size 0 "
    "is refused only by ONNX Runtime.",
    severity=Severity.WARNING,
    basis=Basis.OBSERVED,
    sources=(OBSERVED_RUNTIMES, ONNX_SPLIT_SHAPES),
    needs={Fact.FORM, Fact.AXIS, Fact.SHAPE, Fact.LENGTHS, Fact.COUNT},
    bad=replace(COUNTED, input_shape=(4, 9), outputs=4, num_outputs=4),
    good=replace(COUNTED, input_shape=(4, 10), outputs=4, num_outputs=4),
)
def last_chunk_empty(n: OnnxSplit) -> Findings:
    # ONNX Runtime accepts 1 part of size 0.
    if _last_chunk(n) == 0 and n.num_outputs != 1:
        who = "ONNX Runtime and OpenVINO refuse" if n.axis_size else "ONNX Runtime refuses"
        of = f"of the {n.axis_size} of axis {n.axis or 0}"
        message = f"is {n.num_outputs}: {of}, nothing is left for the last part; {who} this"
        yield Finding("num_outputs", message, "1 or more left", 0)


def _last_chunk(n: OnnxSplit) -> int | None:
    """Returns the length that version 18 leaves for the last part; None for other versions, or if it is not known."""
    size, count = n.axis_size, n.num_outputs
    if n.version < 18 or not n.equal_parts or not isinstance(size, int) or count is None:
        return None
    return size - -(-size // count) * (count - 1)


@NodeRule(
    "onnx/declared-type-differs",
    "The element type that the model declares for an output differs from that of the input.",
    "A Split does not convert elements.",
    sources=(ONNX_SPLIT,),
    bad=replace(EQUAL, declared_types=("FLOAT", "FLOAT16")),
    good=replace(EQUAL, declared_types=("FLOAT", "FLOAT")),
)
def declared_type_differs(n: OnnxSplit) -> Findings:
    for i, declared in enumerate(n.declared_types):
        if n.data_type is not None and declared not in (None, n.data_type):
            yield Finding(
                ("outputs", i), f"is declared {declared}, but the input is {n.data_type}", n.data_type, declared
            )


@NodeRule(
    "onnx/declared-shape-differs",
    "The shape that the model declares for an output is wrong.",
    "A runtime that trusts the declaration reads or writes outside the tensor, or refuses the model.",
    sources=(ONNX_IR, ONNX_SPLIT_SHAPES),
    needs={Fact.FORM, Fact.AXIS, Fact.SHAPE, Fact.LENGTHS, Fact.COUNT},
    where=outputs_fit,
    bad=replace(EQUAL, declared_shapes=((4, 3), (4, 2))),
    good=replace(EQUAL, declared_shapes=((4, 3), (4, "half"))),
)
def declared_shape_differs(n: OnnxSplit) -> Findings:
    yield from misdeclared(n, "outputs", "is declared {declared}, but is {shape}")
