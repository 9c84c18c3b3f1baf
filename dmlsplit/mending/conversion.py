"""Converts nodes to another opset with onnx's own converter, one graph or function at a time.

The converter does not accept functions and does not see the graphs around a graph. So each body is passed to it as a
separate model, with the small constants of the graphs around it; large ones are inputs. Nodes that it leaves unchanged,
and nodes with graphs in them, remain the nodes of the file.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np
import onnx
from onnx import AttributeProto, helper, numpy_helper

from dmlsplit.formats.limits import Budget, Limit
from dmlsplit.formats.onnx.protobuf import (
    Names,
    add_document,
    domain_of,
    graphs_of,
    reads,
    refill,
    rename_tensors,
    subgraphs,
    text,
)
from dmlsplit.mending._converter import LENGTH
from dmlsplit.mending.editing import Original, names_of
from dmlsplit.mending.words import CannotMend
from dmlsplit.models.schemas import schema_of, since
from dmlsplit.system.printable import printable

WRITTEN_HERE: Final = ("Split", "Concat")
"""Operators that versions.py rewrites."""
_WITHOUT_ADAPTER: Final = ("Identity", "ConstantOfShape", "GlobalMaxPool")
"""Operators that only accept other types from some opset on; the converter has no adapter for them."""
_HIDDEN: Final = "dmlsplit.hidden"
"""A domain that hides nodes from the converter."""

_NUMBERS: Final = {"value_int": np.int64, "value_ints": np.int64, "value_float": np.float32, "value_floats": np.float32}
"""Attributes of Constant that the converter does not read, with their element types."""

_MOST_READ: Final = 4096
"""The most bytes of a constant of a graph around that the converter gets: it reads axes, sizes and single numbers."""

_Body: TypeAlias = onnx.GraphProto | onnx.FunctionProto


def takes(operator: str, opset: int, data_type: str | None) -> bool:
    """True if an operator of the default domain accepts an element type as its first input in an opset, or if the type
    is None or the operator is unknown."""
    schema = schema_of(operator, opset)
    if data_type is None or schema is None:
        return True
    taken = schema.inputs[0].type_str  # its .types raises in onnx 1.20
    allowed = {row.type_param_str: row.allowed_type_strs for row in schema.type_constraints}
    return f"tensor({data_type.lower()})" in allowed.get(taken, [taken])


def convert(
    model: onnx.ModelProto, opsets: Mapping[int, int], wanted: int, original: Original, documentation: str
) -> None:
    """Converts the nodes of `model` to opset `wanted`, in place; the opset imports are not changed. Raises CannotMend
    if onnx's converter fails, and LimitError if the constants that graphs read of those around them are too large: each
    graph gets copies of its own.

    `opsets` maps the model's graph (-1) and its functions, by index, to the opsets that they are converted from.
    `original` returns a node as the file has it. Each new or changed node gets the line `documentation` in its
    doc_string.
    """
    asked, budget = [], Budget(model.ByteSize())
    for index, own in opsets.items():
        body: _Body = model.graph if index < 0 else model.functions[index]
        asked += [each for each in _bodies(body, own, {}) if not _is_unchanged(each.body.node, own, wanted)]
    sent = [_sent(each, wanted, budget) for each in asked]
    taken = names_of(model)
    for each, made in zip(asked, _converted(sent, wanted), strict=True):
        _put(each, made, taken, original, documentation)


@dataclass(eq=False, repr=False)
class _Asked:
    """A graph or function to convert from opset `own`, with the constants of the graphs around it, by name."""

    body: _Body
    own: int
    around: Mapping[str, onnx.TensorProto]
    sent: dict[str, onnx.NodeProto] = field(default_factory=dict)
    """The nodes for the converter, keyed by their doc_string, which is their index."""


def _bodies(body: _Body, own: int, around: Mapping[str, onnx.TensorProto]) -> Iterator[_Asked]:
    """Yields a record of each graph nested in the nodes of `body`, a graph or function, at any depth, and of `body`
    last: a graph comes after those inside it.

    `own` is the opset from which the nodes are converted; `around` are the constants, by name, of the graphs around
    `body`. A nested graph also sees the constants of `body`.
    """
    known = {**around, **_constants(body)}
    for node in body.node:
        for graph in subgraphs(node):
            yield from _bodies(graph, own, known)
    yield _Asked(body, own, around)


def _constants(body: _Body) -> dict[str, onnx.TensorProto]:
    tensors = body.initializer if isinstance(body, onnx.GraphProto) else ()
    found = {text(tensor.name): tensor for tensor in tensors}
    for node in body.node:
        tensor = _constant(node)
        if tensor is not None:
            found.update({text(name): tensor for name in node.output})
    return found


def _constant(node: onnx.NodeProto) -> onnx.TensorProto | None:
    """Returns the value of a Constant node as a tensor, from any of its attributes; None for any other node, for a
    reference to an attribute of a function, and for an attribute whose type is not read."""
    if node.op_type != "Constant" or domain_of(node) != "" or len(node.attribute) != 1:
        return None
    (given,) = node.attribute
    if given.name == "value":
        tensor: onnx.TensorProto = given.t
        return tensor
    numpy_type = _NUMBERS.get(text(given.name))
    if numpy_type is None or given.ref_attr_name:
        return None
    value = helper.get_attribute_value(given)
    return None if value is None else numpy_helper.from_array(np.array(value, numpy_type))


def _is_unchanged(nodes: Iterable[onnx.NodeProto], own: int, wanted: int) -> bool:
    """Returns True if every operator of the default domain among the nodes, except Split and Concat, has the same
    version in the opsets `own` and `wanted`; False if onnx does not know one of them."""
    names = {text(node.op_type) for node in nodes if domain_of(node) == ""} - set(WRITTEN_HERE)
    return all((first := since(name, own)) is not None and first == since(name, wanted) for name in names)


def _sent(asked: _Asked, wanted: int, budget: Budget) -> onnx.ModelProto:
    """Returns a graph or function as a separate model for the converter: nodes that it must not convert are hidden in
    another domain. Raises CannotMend if one of these has another meaning in opset `wanted`, and LimitError if the
    copies of constants are too large."""
    body, graph = asked.body, onnx.GraphProto(name="body")
    if isinstance(body, onnx.GraphProto):
        graph.input.extend(body.input)
        graph.output.extend(body.output)
        graph.value_info.extend(body.value_info)
        graph.initializer.extend(body.initializer)
    else:
        for names, values in ((body.input, graph.input), (body.output, graph.output)):
            for name in names:
                values.add(name=text(name))
    known = {text(value.name) for values in (graph.input, graph.initializer) for value in values}
    known.update(text(name) for node in body.node for name in node.output)
    for index, node in enumerate(body.node):
        _check(node, asked.own, wanted)
        sent = graph.node.add()
        sent.CopyFrom(node)
        if _is_kept(node, asked.own, wanted):
            sent.domain = _HIDDEN
            del sent.attribute[:]
        elif (tensor := _constant(node)) is not None:
            del sent.attribute[:]
            sent.attribute.append(helper.make_attribute("value", tensor))
        sent.doc_string = str(index)  # nodes that were written earlier may have equal doc_strings
        asked.sent[sent.doc_string] = sent
        for name in reads(node):
            if name and name not in known:
                known.add(name)
                constant = asked.around.get(name)
                if constant is None:
                    graph.input.add(name=name)
                elif constant.ByteSize() > _MOST_READ:
                    graph.input.append(helper.make_tensor_value_info(name, constant.data_type, constant.dims))
                else:
                    budget.spend(Limit.ONNX_COPIED, constant.ByteSize())
                    graph.initializer.add().CopyFrom(constant)
                    graph.initializer[-1].name = name
    imports = [helper.make_opsetid("", asked.own), helper.make_opsetid(_HIDDEN, 1)]
    return helper.make_model(graph, opset_imports=imports)


def _is_kept(node: onnx.NodeProto, own: int, wanted: int) -> bool:
    """True for a node that is hidden from the converter: of another domain, converted by this package, the same in both
    opsets although the converter has no adapter, or with attributes (graphs, references) that it does not convert."""
    if domain_of(node) != "" or node.op_type in WRITTEN_HERE:
        return True
    if node.op_type in _WITHOUT_ADAPTER and _is_alike(text(node.op_type), own, wanted):
        return True
    return any(a.ref_attr_name or _holds_graphs(a) for a in node.attribute)


def _holds_graphs(attribute: AttributeProto) -> bool:
    return any(True for _ in graphs_of(attribute))


def _check(node: onnx.NodeProto, own: int, wanted: int) -> None:
    """Raises CannotMend if a node of the default domain that is hidden from the converter may, by the operator's
    schemas, have another meaning in opset `wanted` than in opset `own`."""
    operator = text(node.op_type)
    if not _is_kept(node, own, wanted) or domain_of(node) != "" or operator in WRITTEN_HERE:
        return
    if since(operator, own) == since(operator, wanted) or _is_alike(operator, own, wanted):
        return
    if not all(map(_holds_graphs, node.attribute)) or None in (since(operator, own), since(operator, wanted)):
        raise CannotMend(f"the {printable(operator)} in it uses attributes of a function")
    if _signature(operator, own) != _signature(operator, wanted):
        raise CannotMend(f"{printable(operator)} has a different meaning in the other opset")


def _is_alike(operator: str, own: int, wanted: int) -> bool:
    """True if the schemas of an operator in two opsets differ at most in their element types."""
    schemas = schema_of(operator, own), schema_of(operator, wanted)
    if None in schemas:
        return False
    return schemas[0].doc == schemas[1].doc and _signature(operator, own) == _signature(operator, wanted)


def _signature(operator: str, opset: int) -> tuple[object, ...]:
    """Returns the inputs, outputs and attributes of an operator's schema, without element types, as a tuple for
    comparisons."""
    schema = schema_of(operator, opset)
    tensors = [(each.name, each.option) for values in (schema.inputs, schema.outputs) for each in values]
    return (*tensors, *sorted((name, each.required, each.type) for name, each in schema.attributes.items()))


def _put(asked: _Asked, made: onnx.ModelProto, taken: Names, original: Original, documentation: str) -> None:
    """Replaces the nodes of a body, in place, with the converter's nodes. New tensors whose names are taken get new
    names, which are added to `taken`."""
    body = asked.body
    own = {text(name) for node in body.node for name in (*node.input, *node.output)}
    known = own | set(asked.around) | {text(name.name) for name in (*made.graph.input, *_initializers(body))}
    new = [helper.make_node("Constant", [], [t.name], value=t) for t in made.graph.initializer if t.name not in known]
    written = [text(name) for node in (*new, *made.graph.node) for name in node.output]
    renamed = {name: taken.fresh(name) for name in written if name not in own}
    old = {str(index): node for index, node in enumerate(body.node)}
    nodes = []
    for node in (*new, *made.graph.node):
        before = old.get(text(node.doc_string))
        rename_tensors(node, lambda name: renamed.get(name, name))
        if before is None:
            node.doc_string = documentation
        else:
            node = _changed(before, asked.sent[text(node.doc_string)], node, original, documentation)
        nodes.append(deepcopy(node))
    refill(body.node, nodes)


def _initializers(body: _Body) -> Sequence[onnx.TensorProto]:
    return body.initializer if isinstance(body, onnx.GraphProto) else ()


def _changed(
    before: onnx.NodeProto, sent: onnx.NodeProto, made: onnx.NodeProto, original: Original, documentation: str
) -> onnx.NodeProto:
    """Returns the node that replaces `before`: `before` itself if the converter returned what it was sent, else a copy
    with the converter's operator, attributes, inputs and outputs."""
    parts = [(text(node.op_type), [*map(text, node.input)], [*map(text, node.output)]) for node in (sent, made)]
    same = {a.name: a.SerializeToString(deterministic=True) for a in sent.attribute}
    new = {a.name: a.SerializeToString(deterministic=True) for a in made.attribute}
    if parts[0] == parts[1] and (same == new or sent.domain == _HIDDEN):
        return before
    changed = deepcopy(original(before))
    whole = {text(a.name): a for a in changed.attribute}
    attributes = [whole[a.name] if new[a.name] == same.get(a.name) else a for a in made.attribute]
    changed.op_type = made.op_type
    refill(changed.attribute, map(deepcopy, attributes))
    refill(changed.input, made.input)
    refill(changed.output, made.output)
    add_document(changed, documentation)
    return changed


def _converted(models: Sequence[onnx.ModelProto], wanted: int) -> list[onnx.ModelProto]:
    """Returns the models converted by onnx's converter in a separate process, in order. Raises CannotMend if it fails
    or takes too long."""
    if not models:
        return []
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    worker = Path(__file__).with_name("_converter.py")
    given = [model.SerializeToString() for model in models]
    try:
        ended = subprocess.run(
            [sys.executable, "-P", str(worker), str(wanted)],
            input=b"".join(len(data).to_bytes(LENGTH, "little") + data for data in given),
            capture_output=True,
            env=environment,
            timeout=Limit.ONNX_INFERENCE_TIME.most,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise CannotMend("onnx's converter did not end") from None
    if ended.returncode:
        lines = ended.stderr.decode("utf-8", "backslashreplace").strip().splitlines()
        raise CannotMend(f"onnx's converter: {printable(lines[-1] if lines else 'ended its process', 200)}")
    found, place = [], 0
    while place < len(ended.stdout):
        start = place + LENGTH
        place = start + int.from_bytes(ended.stdout[place:start], "little")
        found.append(onnx.ModelProto.FromString(ended.stdout[start:place]))
    return found
