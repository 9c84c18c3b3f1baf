"""Collects the facts about a Split or Concat of an ONNX graph, and makes the node that the front end returns."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final, NamedTuple

import onnx
from onnx import AttributeProto, defs

from dmlsplit.descriptors.diagnostics import Diagnostic, Report
from dmlsplit.descriptors.dims import Shape, is_static, printable_shape, shape_text
from dmlsplit.descriptors.location import Location
from dmlsplit.formats.joins import JoinNode
from dmlsplit.formats.limits import Limit, LimitError
from dmlsplit.formats.nodes import SplitNode
from dmlsplit.formats.onnx.protobuf import own_name
from dmlsplit.formats.onnx.tensors import element_type
from dmlsplit.models.scope import Scope, labelled_graphs
from dmlsplit.rules import RULES, judge_node
from dmlsplit.rules.onnx import OnnxSplit
from dmlsplit.rules.onnx.concat_facts import VERSIONS, OnnxConcat
from dmlsplit.rules.onnx.split_facts import ATTRIBUTES, MAX_PARTS
from dmlsplit.system.errors import InputError
from dmlsplit.system.printable import printable

_NUMBERS: Final = {
    "axis": (AttributeProto.INT, "i"),
    "num_outputs": (AttributeProto.INT, "i"),
    "split": (AttributeProto.INTS, "ints"),
}
"""The type and the field of each attribute, for all versions."""
_NEWEST_OPSET: Final = defs.onnx_opset_version()
_UNKNOWN: Final = RULES["node/shape-unknown"]


def split_facts(node: onnx.NodeProto, scope: Scope) -> OnnxSplit:
    """Returns what the model says about a Split: its tensors' types and shapes, its attributes and lengths."""
    version = scope.origin.version
    known, others, mistyped = _attributes(node, ATTRIBUTES.get(version, tuple(_NUMBERS)))
    inputs, outputs = node.input[:], node.output[:]
    data_type, shape = scope.type_of(inputs[0] if inputs else "")
    first = {name: i for i, name in reversed(list(enumerate(outputs)))}
    declared = [scope.declared(name) for name in outputs]
    declared_shapes = tuple([printable_shape(shape) for _, shape in declared])
    return OnnxSplit(
        version,
        len(outputs),
        tuple([i for i, name in enumerate(outputs) if not name]),
        len(inputs),
        bool(inputs and inputs[0]),
        data_type,
        printable_shape(shape),
        known.get("axis"),
        known.get("num_outputs"),
        known.get("split"),
        **(_lengths(inputs[1], scope) if len(inputs) > 1 and inputs[1] else {}),
        other_attributes=others,
        mistyped_attributes=mistyped,
        declared_types=tuple([data_type for data_type, _ in declared]) if any(t for t, _ in declared) else (),
        declared_shapes=declared_shapes if any(shape is not None for shape in declared_shapes) else (),
        repeated=tuple([i for i, name in enumerate(outputs) if name and first[name] != i]),
        opset=scope.origin.opset or None,
        newest_opset=_NEWEST_OPSET,
    )


def _attributes(
    node: onnx.NodeProto, names: Collection[str]
) -> tuple[dict[str, Any], tuple[str, ...], tuple[str, ...]]:
    """Returns the values of a node's attributes that are in `names`, by name, each an int or a tuple of ints; the names
    of other attributes; and the names of those with a value of another type, which are left out. If two attributes have
    one name, the first counts."""
    known: dict[str, Any] = {}
    others, mistyped = [], []
    for attribute in node.attribute[:]:
        name = attribute.name
        if name not in names:
            others.append(printable(name))
            continue
        expected, field = _NUMBERS[name]
        value = getattr(attribute, field)
        # Before IR version 2 attributes had no type field.
        untyped = attribute.type == AttributeProto.UNDEFINED and (field == "ints" or attribute.HasField(field))
        if attribute.type != expected and not untyped:
            mistyped.append(name)
        elif name not in known:
            known[name] = tuple(value) if field == "ints" else int(value)
    return known, tuple(others), tuple(mistyped)


def _lengths(name: str, scope: Scope) -> dict[str, Any]:
    """Returns the fields of OnnxSplit that describe the lengths in the input `name`: its type and shape and, if they
    are known, its values or dimensions. Raises LimitError if they cost too much."""
    data_type, shape = scope.type_of(name)
    found: dict[str, Any] = {"split_input": True, "split_type": data_type, "split_shape": shape}
    try:
        constant = scope.constant(name)
    except LimitError:
        raise
    except InputError as error:
        return {**found, "split_malformed": error.message}
    if constant is None:
        return found
    found["split_shape"] = constant.array.shape
    if constant.whole and constant.array.dtype.kind in "iufV":
        array = constant.array if constant.array.dtype.kind in "iuf" else constant.array.astype(float)
        found["split_values"] = tuple(array.ravel().tolist())
    elif not constant.whole:
        names = scope.origin.names
        pairs = zip(constant.array.ravel().tolist(), constant.known.ravel().tolist(), strict=True)
        found["split_dims"] = printable_shape(
            tuple([size if known == 1 else names.get(known) for size, known in pairs])
        )
    return found


class _Known(NamedTuple):
    """The conclusions of ONNX's rules from facts. They do not name the node, so nodes with equal facts share them."""

    findings: tuple[Diagnostic, ...]
    axis: int | None
    lengths: Shape | None = None
    shapes: tuple[Shape | None, ...] = ()
    """The shapes of the outputs; none, and no lengths, if a finding is an error."""

    def on(self, path: str) -> tuple[Diagnostic, ...]:
        """Returns the findings with `path` as the name of the node."""
        return tuple([replace(each, location=replace(each.location, node=path)) for each in self.findings])


@lru_cache(maxsize=64)
def _clean(specification: str, operator: str) -> Report:
    """Returns the report of a node about which there is nothing to say."""
    return Report((), specification, None, operator)


def _report(found: tuple[Diagnostic, ...], specification: str, operator: str) -> Report:
    return Report(found, specification, None, operator) if found else _clean(specification, operator)


@lru_cache(maxsize=1024)
def _known(facts: OnnxSplit | OnnxConcat) -> _Known:
    findings = judge_node(facts, "")
    if not Report(findings, facts.specification, None, None).ok:
        return _Known(findings, facts.axis_index)
    shapes = facts.output_shapes if isinstance(facts, OnnxSplit) else (facts.output_shape,)
    return _Known(findings, facts.axis_index, facts.lengths, tuple(shapes))


def name_of(node: onnx.NodeProto, scope: Scope) -> str:
    """Returns the path of a node; `scope` is that of its graph."""
    return path_of(node, scope.label)


def path_of(node: onnx.NodeProto, label: str) -> str:
    """Returns the path of a node: the label of its graph, then its own name or, without one, the name of its first
    output or its operator."""
    name = own_name(node)
    return printable(f"{label}/{name}" if label else name)


def path_of_only(graph: onnx.GraphProto, op_type: str, name: str) -> str:
    """Returns the path of the node with an operator and a name ("" for none), in a model's graph or a graph nested in
    it; "" unless there is exactly one."""
    graphs = labelled_graphs(graph)
    found = [(n, label) for g, label in graphs for n in g.node if (n.op_type, n.name) == (op_type, name)]
    return path_of(*found[0]) if len(found) == 1 else ""


def split_node(node: onnx.NodeProto, scope: Scope, hint: Hint) -> SplitNode:
    """Returns the judged Split; `hint` says what the caller can pass if a shape is unknown. Raises LimitError if the
    file has too many parts."""
    facts, path = split_facts(node, scope), name_of(node, scope)
    scope.origin.budget.spend(Limit.ONNX_PARTS, _parts(facts))
    known = _known(facts)
    report = _report((*known.on(path), *_unknown_of_split(node, facts, path, hint)), facts.specification, "Split")
    shapes: tuple[Shape | None, ...] = (None,) * facts.outputs
    lengths: Shape | None = facts.given_lengths
    if report.ok:
        shapes = tuple([_filled(*each, scope) for each in zip(known.shapes, node.output[:], strict=False)])
        axis, lengths = known.axis, known.lengths
        if lengths is not None and axis is not None and None not in shapes:
            lengths = tuple([shape[axis] for shape in shapes if shape is not None])
    return SplitNode(
        name=node.name,
        op="Split",
        version=facts.version,
        input_shape=facts.input_shape,
        data_type=facts.data_type,
        axis=known.axis if facts.rank is not None else facts.axis or 0,
        lengths=lengths,
        output_shapes=shapes,
        report=report,
        element=element_type(facts.data_type),
        graph=scope.label,
        input_name=node.input[0] if node.input else "",
        output_names=tuple(node.output[:]),
        facts=facts,
    )


def _parts(facts: OnnxSplit) -> int:
    """Returns the number of parts that a Split declares: the largest of its number of outputs, num_outputs (unless
    above MAX_PARTS) and the number of lengths, in whichever form they are given."""
    lengths = [facts.split, facts.split_values, facts.split_dims]
    counted = facts.num_outputs or 0
    return max(facts.outputs, counted if counted <= MAX_PARTS else 0, *(len(given or ()) for given in lengths))


def _filled(shape: Shape | None, name: str, scope: Scope) -> Shape | None:
    """Returns the shape of an output by ONNX's rules, with unknown sizes taken from the model's declaration; None if
    the rules give no shape."""
    declared = printable_shape(scope.type_of(name)[1])
    if shape is None or declared is None or len(shape) != len(declared):
        return shape
    return tuple([dim if size is None else size for size, dim in zip(shape, declared, strict=True)])


class Hint(NamedTuple):
    """The advice for an unknown shape: why inference failed, and the options that give inputs their shapes.

    `by_name`: --shape accepts the names of these tensors; it does not accept names inside a function.
    """

    failure: str
    inputs: str
    by_name: bool

    def text(self, name: str, shape: Shape | None) -> str:
        """Returns the advice for one tensor: the options that give the inputs their shapes or, if all inputs have
        shapes, that for this tensor; "" if there is none."""
        options = self.inputs
        if not options and self.by_name and name:
            sizes = "..." if shape is None else ",".join(str(dim) if isinstance(dim, int) else "?" for dim in shape)
            options = f"--shape {printable(name, 60)}:{sizes}"
        return "; ".join(filter(None, [self.failure, options and f"to pass it: {options}"]))


def _shape_unknown(shape: Shape | None, name: str, place: Location, hint: Hint) -> Diagnostic:
    """Returns a diagnostic at `place`: the shape of tensor `name` is not fully known."""
    said = f"the shape {shape_text(shape) + ' ' if shape is not None else ''}is not known"
    expected = hint.text(name, shape)
    message = f"{said}; {expected}" if expected else said
    return _UNKNOWN.diagnostic(place, message, expected=expected or None, actual=shape_text(shape))


def _unknown_of_split(node: onnx.NodeProto, facts: OnnxSplit, path: str, hint: Hint) -> Iterator[Diagnostic]:
    """Yields a diagnostic for each fact that DirectML needs and the model does not give: input shape, element type,
    lengths."""
    if not is_static(facts.input_shape):
        name = node.input[0] if node.input else ""
        yield _shape_unknown(facts.input_shape, name, Location(("input",), path), hint)
    if facts.data_type is None:
        yield _UNKNOWN.diagnostic(Location(("input",), path), "the element type is not known")
    if facts.split_input and facts.split_values is None and not facts.split_malformed:
        name = printable(node.input[1], 60)
        message = f"the lengths are computed at run time; pass them to onnx.read as values={{'{name}': ...}}"
        yield _UNKNOWN.diagnostic(Location(("split",), path), message)


def _known_concat(node: onnx.NodeProto, scope: Scope) -> tuple[OnnxConcat, _Known]:
    """Returns two values: what the model says about a Concat (its tensors' types and shapes, and its attributes), and
    what follows from that."""
    inputs, outputs = node.input[:], node.output[:]
    types = [scope.type_of(name) for name in inputs]
    declared_type, declared_shape = scope.declared(outputs[0] if outputs else "")
    opset = scope.origin.opset
    known, others, mistyped = _attributes(node, ("axis",))
    return _shared_concat(
        _version_of_concat(opset),
        tuple([printable_shape(shape) for _, shape in types]),
        tuple([data_type for data_type, _ in types]) if any(data_type for data_type, _ in types) else (),
        known.get("axis"),
        tuple([i for i, name in enumerate(inputs) if not name]),
        len(outputs),
        bool(outputs and not outputs[0]),
        other_attributes=others,
        mistyped_attributes=mistyped,
        declared_type=declared_type,
        declared_shape=printable_shape(declared_shape),
        opset=opset or None,
        newest_opset=_NEWEST_OPSET,
    )


@lru_cache(maxsize=1024)
def _shared_concat(*values: Any, **others: Any) -> tuple[OnnxConcat, _Known]:
    """Returns the OnnxConcat with these values, and what follows from it. Most Concats of a model have equal facts,
    which share one result."""
    facts = OnnxConcat(*values, **others)
    return facts, _known(facts)


@lru_cache(maxsize=256)
def _version_of_concat(opset: int) -> int:
    return max((version for version in VERSIONS if version <= opset), default=0)


def concat_node(node: onnx.NodeProto, scope: Scope, hint: Hint) -> JoinNode:
    """Returns the judged Concat; `hint` says what the caller can pass if a shape is unknown. Raises LimitError if the
    file has too many parts."""
    scope.origin.budget.spend(Limit.ONNX_PARTS, len(node.input))
    (facts, known), path = _known_concat(node, scope), name_of(node, scope)
    report = _report((*known.on(path), *_unknown_of_concat(node, facts, path, hint)), facts.specification, "Concat")
    return JoinNode(
        name=node.name,
        op="Concat",
        version=facts.version,
        input_shapes=facts.shapes,
        data_type=facts.data_type,
        axis=known.axis if facts.rank is not None else facts.given_axis,
        lengths=known.lengths if known.shapes else facts.lengths,
        output_shape=_filled(known.shapes[0], node.output[0], scope) if report.ok else None,
        report=report,
        element=element_type(facts.data_type),
        graph=scope.label,
        input_names=tuple(node.input[:]),
        output_name=node.output[0] if node.output else "",
        facts=facts,
    )


def _unknown_of_concat(node: onnx.NodeProto, facts: OnnxConcat, path: str, hint: Hint) -> Iterator[Diagnostic]:
    """Yields a diagnostic for each fact that DirectML needs and the model does not give: input shapes, element type."""
    for i, shape in enumerate(facts.shapes):
        if not is_static(shape) and i not in facts.omitted:
            yield _shape_unknown(shape, node.input[i], Location(("inputs", i), path), hint)
    if facts.shapes and facts.data_type is None:
        yield _UNKNOWN.diagnostic(Location(("inputs",), path), "the element type is not known")
