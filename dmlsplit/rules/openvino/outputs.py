"""What they say of the output ports."""

from __future__ import annotations

from dataclasses import replace

from dmlsplit.rules._facts import Fact, node_rules
from dmlsplit.rules._model import Finding, Findings, Rule
from dmlsplit.rules.openvino import examples as eg
from dmlsplit.rules.openvino.facts import AXIS_KNOWN, OpenVinoSplit, compatible, dims_text
from dmlsplit.rules.openvino.sources import SPLIT, VARIADIC_SPLIT

RULES: list[Rule] = []
_rule = node_rules(RULES)


@_rule(
    "openvino/output-count",
    "The layer does not have one output port for each part.",
    "num_splits, or the number of split_lengths, is the number of outputs.",
    sources=(SPLIT, VARIADIC_SPLIT),
    reads=Fact.FORM | Fact.COUNT,
    marks=Fact.COUNT,
    bad_node=replace(eg.SPLIT, outputs=2),
    good_node=eg.SPLIT,
)
def _output_count(n: OpenVinoSplit) -> Findings:
    if n.count is None or n.count == n.outputs:
        return None
    what = "num_splits is" if n.op == "Split" else "the number of split_lengths is"
    return [Finding("output", f"has {n.outputs} ports, {what} {n.count}", n.count, n.outputs)]


@_rule(
    "openvino/output-type",
    "An output port declares another element type than the data has.",
    "The outputs are of the type of the data.",
    sources=(SPLIT, VARIADIC_SPLIT),
    reads=Fact.FORM | Fact.TYPE,
    runtimes="OpenVINO goes by the data's type, whatever the ports of a Split declare",
    bad_node=replace(eg.SPLIT, declared_types=("f32", "f16", "f32")),
    good_node=replace(eg.SPLIT, declared_types=("f32", "f32", "f32")),
)
def _output_type(n: OpenVinoSplit) -> Findings:
    return [
        Finding(f"output[{i}]", f"declares {declared}, the data is {n.data_type}", n.data_type, declared)
        for i, declared in enumerate(n.declared_types)
        if declared is not None and n.data_type is not None and declared != n.data_type
    ]


@_rule(
    "openvino/output-shape",
    "An output port declares another shape than the operation gives.",
    "An output has the data's sizes, except on the axis, where it has its part.",
    sources=(SPLIT, VARIADIC_SPLIT),
    reads=AXIS_KNOWN | Fact.LENGTHS | Fact.COUNT,
    runtimes="OpenVINO computes the shapes itself, whatever the ports of a Split declare",
    bad_node=replace(eg.SPLIT, declared_shapes=((6, 4, 10, 24), (6, 5, 10, 24), (6, 3, 10, 24))),
    good_node=replace(eg.SPLIT, declared_shapes=((6, 4, 10, 24), (6, None, 10, 24), None)),
)
def _output_shape(n: OpenVinoSplit) -> Findings:
    return [
        Finding(
            f"output[{i}]",
            f"declares the shape {dims_text(declared)}; it is {dims_text(shape)}",
            dims_text(shape),
            dims_text(declared),
        )
        for i, (declared, shape) in enumerate(zip(n.declared_shapes, n.output_shapes, strict=False))
        if not compatible(declared, shape)
    ]
