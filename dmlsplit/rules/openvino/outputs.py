"""Rules of the output ports of Split and VariadicSplit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dmlsplit.conditions import Condition, fits
from dmlsplit.dims import compatible, shape_text
from dmlsplit.rules._model import Fact, Finding, Findings, NodeRule
from dmlsplit.rules.openvino import examples as eg
from dmlsplit.rules.openvino.facts import AXIS_KNOWN, OpenVinoSplit
from dmlsplit.rules.openvino.sources import SPLIT, VARIADIC_SPLIT


@NodeRule(
    "openvino/output-count",
    "The layer does not have one output port for each part.",
    "num_splits, or the number of split_lengths, is the number of outputs.",
    sources=(SPLIT, VARIADIC_SPLIT),
    needs={Fact.FORM, Fact.COUNT},
    spoils={Fact.COUNT},
    bad=replace(eg.SPLIT, outputs=2),
    good=eg.SPLIT,
)
def output_count(n: OpenVinoSplit) -> Findings:
    if n.count is not None and n.count != n.outputs:
        what = "num_splits is" if n.op == "Split" else "the number of split_lengths is"
        yield Finding("output", f"has {n.outputs} ports, {what} {n.count}", n.count, n.outputs)


@NodeRule(
    "openvino/output-type",
    "An output port declares another element type than the data has.",
    "The outputs are of the type of the data.",
    sources=(SPLIT, VARIADIC_SPLIT),
    needs={Fact.FORM, Fact.TYPE},
    runtimes="OpenVINO goes by the data's type, whatever the ports of a Split declare",
    bad=replace(eg.SPLIT, declared_types=("f32", "f16", "f32")),
    good=replace(eg.SPLIT, declared_types=("f32", "f32", "f32")),
)
def output_type(n: OpenVinoSplit) -> Findings:
    for i, declared in enumerate(n.declared_types):
        if declared is not None and n.data_type is not None and declared != n.data_type:
            yield Finding(("output", i), f"declares {declared}, the data is {n.data_type}", n.data_type, declared)


def _declared_where(n: OpenVinoSplit) -> Iterator[Condition]:
    for declared, sizes in zip(n.declared_shapes, n.parts_shapes, strict=False):
        yield from fits(declared, sizes)


@NodeRule(
    "openvino/output-shape",
    "An output port declares another shape than the operation gives.",
    "An output has the data's sizes, except on the axis, where it has its part.",
    sources=(SPLIT, VARIADIC_SPLIT),
    needs=AXIS_KNOWN | {Fact.LENGTHS, Fact.COUNT},
    runtimes="OpenVINO computes the shapes itself, whatever the ports of a Split declare",
    where=_declared_where,
    bad=replace(eg.SPLIT, declared_shapes=((6, 4, 10, 24), (6, 5, 10, 24), (6, 3, 10, 24))),
    good=replace(eg.SPLIT, declared_shapes=((6, 4, 10, 24), (6, None, 10, 24), None)),
)
def output_shape(n: OpenVinoSplit) -> Findings:
    for i, (declared, shape) in enumerate(zip(n.declared_shapes, n.output_shapes, strict=False)):
        if not compatible(declared, shape):
            yield Finding(
                ("output", i),
                f"declares the shape {shape_text(declared)}; it is {shape_text(shape)}",
                shape_text(shape),
                shape_text(declared),
            )
