"""From a Concat of an ONNX graph to the facts about it, and to the node that the front end gives."""

from __future__ import annotations

from collections.abc import Iterator

import onnx
from onnx import AttributeProto, defs

from dmlsplit.diagnostics import Diagnostic, Report
from dmlsplit.dims import Dim, Shape, printable_shape
from dmlsplit.formats.joins import JoinNode
from dmlsplit.formats.limits import Limit
from dmlsplit.formats.onnx.scope import Scope
from dmlsplit.formats.onnx.splits import name_of, shape_unknown
from dmlsplit.formats.onnx.tensors import element_type
from dmlsplit.location import Location
from dmlsplit.printable import printable
from dmlsplit.rules import RULES, judge_node
from dmlsplit.rules.onnx.concat_facts import VERSIONS, OnnxConcat


def facts_of(node: onnx.NodeProto, scope: Scope) -> OnnxConcat:
    """The facts of a Concat in the model."""
    inputs, outputs = list(node.input), list(node.output)
    types = [scope.type_of(name) if name else (None, None) for name in inputs]
    declared_type, declared_shape = scope.declared(outputs[0]) if outputs and outputs[0] else (None, None)
    opset = scope.origin.opset
    axis, others, mistyped = _attributes(node)
    return OnnxConcat(
        max((version for version in VERSIONS if version <= opset), default=0),
        tuple([printable_shape(shape) for _, shape in types]),
        tuple([data_type for data_type, _ in types]) if any(data_type for data_type, _ in types) else (),
        axis,
        tuple([i for i, name in enumerate(inputs) if not name]),
        len(outputs),
        bool(outputs and not outputs[0]),
        other_attributes=others,
        mistyped_attributes=mistyped,
        declared_type=declared_type,
        declared_shape=printable_shape(declared_shape),
        opset=opset or None,
        newest_opset=defs.onnx_opset_version(),
    )


def _attributes(node: onnx.NodeProto) -> tuple[int | None, tuple[str, ...], tuple[str, ...]]:
    """The axis, names that no version has, names whose type is wrong."""
    axis: int | None = None
    others, mistyped = [], []
    for attribute in node.attribute:
        if attribute.name != "axis":
            others.append(printable(attribute.name))
        # Before IR version 2 there was no type to state.
        elif attribute.type != AttributeProto.INT and not (
            attribute.type == AttributeProto.UNDEFINED and attribute.HasField("i")
        ):
            mistyped.append("axis")
        elif axis is None:
            axis = int(attribute.i)
    return axis, tuple(others), tuple(mistyped)


def concat_node(node: onnx.NodeProto, scope: Scope, hint: str) -> JoinNode:
    """The judged node; `hint` says what the caller can pass where a shape is unknown."""
    scope.origin.budget.spend(Limit.ONNX_PARTS, len(node.input))
    facts, path = facts_of(node, scope), name_of(node, scope)
    found = judge_node(facts, path)
    report = Report((*found, *_unknown(facts, path, hint)), facts.specification, None, "Concat")
    return JoinNode(
        name=node.name,
        op="Concat",
        version=facts.version,
        input_shapes=facts.shapes,
        data_type=facts.data_type,
        axis=facts.axis_index if facts.rank is not None else facts.given_axis,
        lengths=facts.lengths,
        output_shape=_laid_out(node, facts, scope) if report.ok else None,
        report=report,
        element=element_type(facts.data_type),
        graph=scope.label,
        input_names=tuple(node.input),
        output_name=node.output[0] if node.output else "",
        facts=facts,
    )


def _laid_out(node: onnx.NodeProto, facts: OnnxConcat, scope: Scope) -> Shape | None:
    """The output's shape: by the rules, and where these leave sizes open, as the model declares."""
    shape = facts.output_shape
    declared = printable_shape(scope.type_of(node.output[0])[1]) if node.output and node.output[0] else None
    if shape is None or declared is None or len(shape) != len(declared):
        return shape
    merged: list[Dim] = [dim if size is None else size for size, dim in zip(shape, declared, strict=True)]
    return tuple(merged)


def _unknown(facts: OnnxConcat, path: str, hint: str) -> Iterator[Diagnostic]:
    """The facts that DirectML needs and the model does not give."""
    for i, shape in enumerate(facts.shapes):
        if i not in facts.omitted:
            yield from shape_unknown(shape, Location(("inputs", i), path), hint)
    if facts.shapes and facts.data_type is None:
        yield RULES["node/shape-unknown"].diagnostic(Location(("inputs",), path), "the element type is not known")
