"""Models that ONNX Runtime does not load: a domain is not imported, or its opset is too new, a function or graph does
not write an output, two nodes have the same name, or an input has no type or a node no operator.

Source: function_utils.cc and graph.cc of ONNX Runtime; observed with all versions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set
from itertools import chain
from typing import Final

import onnx

from dmlsplit.formats.onnx.protobuf import DEFAULT_DOMAINS, all_graphs, all_nodes, computed, first_output, subgraphs
from dmlsplit.formats.onnx.walking import depth_first
from dmlsplit.models import shadowing
from dmlsplit.models.functions import Key, key_of
from dmlsplit.onnxruntime import sparse_constants
from dmlsplit.system.integers import signed
from dmlsplit.system.printable import printable

DOMAINS: Final = frozenset(
    {"", "ai.onnx.ml", "ai.onnx.training", "ai.onnx.preview.training", "com.microsoft", "com.microsoft.nchwc"}
    | {"com.microsoft.dml", "com.microsoft.experimental", "com.ms.internal.nhwc"}
)
"""The domains with operators of ONNX Runtime."""
_TYPES: Final = frozenset(onnx.TensorProto.DataType.values()) - {onnx.TensorProto.UNDEFINED}
_NEWEST: Final = {
    **dict.fromkeys(DOMAINS - {"", "com.ms.internal.nhwc"}, 1),
    "ai.onnx.ml": 5,
    "org.pytorch.aten": 1,
}
"""The newest opset of domains other than the default one. Observed with 1.18.0, 1.20.1, 1.24.4 and 1.30.0."""


def not_loaded(model: onnx.ModelProto) -> Iterator[str]:
    """Yields a sentence for each reason why ONNX Runtime does not load a model; nothing if it loads the model.

    ONNX Runtime loads a model only if every function, called or not, writes all its outputs and imports its nodes'
    domains in the same spelling: "ai.onnx" and "" differ; no opset may be too new for its domain. The model must import
    the domains of called functions, except ONNX Runtime's own. Types of calls are inferred only for the domain spelled
    "".
    """
    called = _called(model)
    bodies = _bodies(model, called)
    graphs = list(all_graphs(model.graph))
    is_flat = len(graphs) == 1 and not model.functions
    nodes = model.graph.node[:] if is_flat else list(chain.from_iterable(map(all_nodes, bodies)))
    if not model.HasField("ir_version"):
        yield "the model has no IR version: it is not loaded"
    for name in _never_written(graphs):
        yield f"nothing writes the output {printable(name, 60)} of a graph: the model is not loaded"
    for value in model.graph.input:
        if value.type.WhichOneof("value") is None:
            yield f"the input {printable(value.name, 60)} has no type: the model is not loaded"
    if any(not node.op_type for node in nodes):
        yield "a node has no operator: the model is not loaded"
    for name in _declared_untyped(model.graph.input, graphs):
        yield f"{printable(name, 60)} is declared without an element type: the model is not loaded"
    for name in _untyped(graphs, nodes):
        yield f"the constant {printable(name, 60)} has no element type: the model is not loaded"
    yield from filter(None, map(sparse_constants.refused, sparse_constants.of(graphs, nodes)))
    for name in chain.from_iterable(map(_names_of_two, bodies)):
        yield f"two nodes have the name {printable(name, 60)}: the model is not loaded"
    for function in model.functions:
        lacking = {node.domain for node in all_nodes(function.node)} - _imports(function.opset_import)
        name = f"the function {printable(function.name, 60)}"
        yield from (_reason(name, domain) for domain in sorted(lacking))
        for output in sorted(set(function.output) - computed(function.node)):
            yield f"{name} never writes its output {printable(output, 60)}: the model is not loaded"
        if key_of(function, function.name) in called and any(n.domain == "ai.onnx" for n in all_nodes(function.node)):
            yield f"{name} is called, and its nodes name the domain ai.onnx: the model is not loaded"
    for name in _without_opset(model, bodies):
        yield f"a node has the domain {printable(name, 60)}, whose opset is below 1: the model is not loaded"
    for entry in chain(model.opset_import, *(each.opset_import for each in model.functions)):
        if entry.domain in _NEWEST and _opset(entry) > _NEWEST[entry.domain]:
            why = f"is newer than {_NEWEST[entry.domain]}, the newest that there is: the model is not loaded"
            yield f"opset {entry.version} of {entry.domain} {why}"
    lacking = {domain for domain, _, _ in called} - _imports(model.opset_import) - DOMAINS
    yield from (_reason("the model", domain) for domain in sorted(lacking))


def not_loaded_if_checked(model: onnx.ModelProto) -> Iterator[str]:
    """Yields a sentence for each sparse constant for which versions that check all indices do not load a model."""
    nodes = chain.from_iterable(map(all_nodes, _bodies(model, _called(model))))
    return filter(None, map(sparse_constants.refused_if_checked, sparse_constants.of(all_graphs(model.graph), nodes)))


def read_around_calls(model: onnx.ModelProto) -> Iterator[tuple[str, str]]:
    """Yields, for each call of a function in the model's graph, the name of the call and the first name that a node of
    a graph among its attributes reads, and that this graph does not have."""
    functions = {(function.domain, function.name) for function in model.functions}
    for node in model.graph.node if functions else ():
        if node.attribute and (node.domain, node.op_type) in functions:
            outer = next(chain.from_iterable(map(_read_around, subgraphs(node))), None)
            if outer is not None:
                yield node.name or node.op_type, outer


def _bodies(model: onnx.ModelProto, called: Set[Key]) -> list[Sequence[onnx.NodeProto]]:
    """Returns the nodes of the model's graph, and those of each function that is called."""
    return [model.graph.node, *(each.node for each in model.functions if key_of(each, each.name) in called)]


def _declared_untyped(inputs: Iterable[onnx.ValueInfoProto], graphs: Iterable[onnx.GraphProto]) -> Iterator[str]:
    """Yields the names of a model's inputs, and of results in its graphs, that are declared as tensors without an
    element type."""
    yield from (value.name for value in inputs if _is_untyped(value))
    for each in graphs:
        found = [value.name for value in (*each.output, *each.value_info) if _is_untyped(value)]
        yield from computed(each.node).intersection(found) if found else ()


def _is_untyped(value: onnx.ValueInfoProto) -> bool:
    return value.type.HasField("tensor_type") and not value.type.tensor_type.elem_type


def _untyped(graphs: Iterable[onnx.GraphProto], nodes: Iterable[onnx.NodeProto]) -> Iterator[str]:
    """Yields the names of constants, read or not, whose type is none of ONNX's."""
    for each in graphs:
        yield from (tensor.name for tensor in each.initializer if tensor.data_type not in _TYPES)
    for node in nodes:
        if node.op_type == "Constant" and any(
            a.name == "value" and a.t.data_type not in _TYPES for a in node.attribute[:]
        ):
            yield first_output(node)


def _read_around(graph: onnx.GraphProto) -> Iterator[str]:
    own = {value.name for value in (*graph.input, *graph.initializer)} | computed(graph.node)
    return (name for node in graph.node for name in node.input[:] if name and name not in own)


def _names_of_two(nodes: Iterable[onnx.NodeProto]) -> Iterator[str]:
    """Yields the names that several nodes of one graph have. Constant nodes do not count: ONNX Runtime converts them to
    initializers during loading."""
    nodes = [node for node in nodes if not shadowing.is_constant(node)]
    yield from (name for name, count in Counter(node.name for node in nodes).items() if name and count > 1)
    for node in nodes:
        for inner in subgraphs(node) if node.attribute else ():
            yield from _names_of_two(inner.node)


def _never_written(graphs: Iterable[onnx.GraphProto]) -> Iterator[str]:
    """Yields the outputs of graphs that are neither an input nor an initializer, and that no node writes."""
    for each in graphs:
        given = {value.name for value in (*each.input, *each.initializer)}
        given.update(tensor.values.name for tensor in each.sparse_initializer)
        names = [value.name for value in each.output]
        if not given.issuperset(names):
            written = given | {name for node in each.node for name in node.output[:]}
            yield from (name for name in names if name not in written)


def _imports(entries: Iterable[onnx.OperatorSetIdProto]) -> set[str]:
    return {entry.domain for entry in entries}


def _opset(entry: onnx.OperatorSetIdProto) -> int:
    """Returns the opset of an import, which is read in 32 bits."""
    return signed(entry.version)


def _without_opset(model: onnx.ModelProto, bodies: Iterable[Iterable[onnx.NodeProto]]) -> Iterator[str]:
    """Yields the domains other than the default one that the model imports with an opset below 1, once for each node
    that has an operator of it; of two imports of a domain the last one counts. Those of functions do not."""
    imported = {entry.domain: _opset(entry) for entry in model.opset_import if entry.domain not in DEFAULT_DOMAINS}
    lacking = {domain for domain, version in imported.items() if version < 1}
    if lacking:
        functions = {(function.domain, function.name) for function in model.functions}
        nodes = chain.from_iterable(map(all_nodes, bodies))
        yield from (n.domain for n in nodes if n.domain in lacking and (n.domain, n.op_type) not in functions)


def _reason(where: str, domain: str) -> str:
    return f"{where} does not import the domain '{printable(domain, 60)}', which it uses: the model is not loaded"


def _called(model: onnx.ModelProto) -> set[Key]:
    """Returns the keys of the functions that the model's graph calls, directly or through others."""
    if not model.functions:
        return set()
    bodies = {key_of(function, function.name): function.node for function in model.functions}

    def calls(nodes: Iterable[onnx.NodeProto]) -> set[Key]:
        return {key_of(node, node.op_type) for node in all_nodes(nodes)} & bodies.keys()

    return set(depth_first(calls(model.graph.node), lambda key: calls(bodies[key])))
