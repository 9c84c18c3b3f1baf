"""What ONNX Runtime with its DirectML execution provider makes of the Splits and Concats of a model.

    for node in on_onnxruntime("model.onnx", "1.24.4", run_shapes={"images": (1, 3, 640, 640)}):
        print(node.path, node.answer.outcome, node.answer.at, node.answer.compile)

The model is followed as ONNX Runtime follows it: functions are inlined, what is constant is folded, each graph is cut
into what is fused and what is not. Sizes that the file leaves open stay open until the first Run.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final

import onnx

from dmlsplit.enums import OperatorType
from dmlsplit.errors import InputError
from dmlsplit.formats import json as operator_json
from dmlsplit.formats.files import AllowedFolders
from dmlsplit.formats.nodes import Dim
from dmlsplit.formats.onnx import given, loading, tensors
from dmlsplit.formats.onnx.folding import Constant
from dmlsplit.formats.onnx.functions import Functions, domain_of
from dmlsplit.formats.onnx.inference import InferenceError, infer_shapes
from dmlsplit.formats.onnx.inlining import inlined
from dmlsplit.formats.onnx.scope import Origin, Scope, opset_of
from dmlsplit.formats.onnx.tensors import text
from dmlsplit.runtimes import (
    FirstRun,
    Given,
    NodeFacts,
    Options,
    Outcome,
    Runtime,
    RuntimeAnswer,
    find_runtime,
    predict,
)
from dmlsplit.runtimes.facts import DEFAULTS, Shape, Sizes, is_static
from dmlsplit.runtimes.neighbours import KEEPS_ON_CPU, NEIGHBOURS, ON_CPU, SMALL_INITIALIZER, STAYING
from dmlsplit.runtimes.partitions import PlacedNode, partitions
from dmlsplit.runtimes.predict import LEAST_NODES_FOR_VOLATILE, placement
from dmlsplit.runtimes.rules import rule

_TYPES: Final = {"Split": OperatorType.SPLIT, "Concat": OperatorType.JOIN}
_MAX_RANK: Final = 8
_NOT_FOLDED: Final = frozenset({"RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Bernoulli"})


@dataclass(frozen=True, slots=True)
class NodeOnRuntime:
    """One Split or Concat of a model, and the answer of a runtime."""

    path: str
    """What diagnostics call it: its name, or that of its first output, after that of its graph."""
    op: str
    facts: NodeFacts
    answer: RuntimeAnswer


def on_onnxruntime(
    source: str | os.PathLike[str] | bytes | onnx.ModelProto,
    version: str | Runtime,
    *,
    run_shapes: Mapping[str, Sequence[Dim]] | None = None,
    run_values: Mapping[str, Sequence[int]] | None = None,
    free_dimensions: Mapping[str, int] | None = None,
    options: Options = DEFAULTS,
    allow_paths: Iterable[str | os.PathLike[str]] = (),
) -> list[NodeOnRuntime]:
    """The answers of one version for every Split and Concat of a model, in order; those of functions at each call.

    `run_shapes` and `run_values` are the model's inputs at the first Run: shapes, and the elements of those that
    lengths come from. `free_dimensions` are ONNX Runtime's overrides of symbolic dimensions at session creation.

    Raises InputError for what is no model, or has no such tensors or dimensions; ValueError for an unknown version;
    OSError.
    """
    read_external: tensors.ReadExternal = tensors.no_external_data
    if isinstance(source, onnx.ModelProto):
        model = source
    elif isinstance(source, bytes):
        model = loading.parse(source)
    else:
        model = loading.load(source)
        folder = os.path.dirname(os.path.abspath(source))
        read_external = tensors.external_reader(AllowedFolders(folder, allow_paths))
    model = inlined(loading.without_weights(model))
    given.fill_in(model, {}, free_dimensions or {})
    session = _Session(find_runtime(version), options, model, read_external)
    return session.answers(run_shapes or {}, run_values or {})


def answer_json(answer: RuntimeAnswer) -> dict[str, Any]:
    """The value of the key "onnxruntime" in JSON."""
    call = answer.compile
    return {
        "version": answer.runtime.version,
        "outcome": str(answer.outcome),
        "at": answer.at,
        "operators": [json.loads(operator_json.dumps(desc)) for desc in answer.operators],
        "hresults": [f"0x{hresult:08X}" for hresult in answer.hresults],
        "compile": None if call is None else {"call": call.call, "flags": call.flags},
    }


class _Session:
    """One model on one version."""

    def __init__(
        self, runtime: Runtime, options: Options, model: onnx.ModelProto, read_external: tensors.ReadExternal
    ) -> None:
        self.runtime = runtime
        self.options = options
        self.model = model
        self.read_external = read_external

    def answers(
        self, run_shapes: Mapping[str, Sequence[Dim]], run_values: Mapping[str, Sequence[int]]
    ) -> list[NodeOnRuntime]:
        scope = self._scope(self.model, {})
        run_scope = None
        if run_shapes or run_values:
            run = onnx.ModelProto()
            run.CopyFrom(self.model)
            given.fill_in(run, run_shapes, {})
            run_scope = self._scope(run, given.constants(run, run_values))
        found: list[NodeOnRuntime] = []
        failures: list[str] = []
        for graph in _Graph.all_of(self, scope, run_scope, None):
            nodes, failed = graph.answers()
            found += nodes
            failures += failed
        return _with_failures(found, failures)

    def _scope(self, model: onnx.ModelProto, constants: Mapping[str, Constant | None]) -> Scope:
        symbols = {name: number for number, name in enumerate(given.symbols_of(model.graph), 1)}
        origin = Origin(opset_of(model), Functions(()), symbols, self.read_external)
        graph = model.graph
        # Without inference what is declared is known all the same.
        with suppress(InferenceError):
            graph = infer_shapes(_without_crashes(model)).graph
        if len(graph.node) != len(model.graph.node):
            graph = model.graph
        return Scope(model.graph, graph, origin, constants=constants)


@dataclass(frozen=True, slots=True)
class _Node:
    """A node that is left after folding, and what is known of its place."""

    index: int
    proto: onnx.NodeProto
    on_dml: bool | None
    in_graph: bool | None
    """None where that is not known."""


class _Graph:
    """The nodes of one graph of a model."""

    def __init__(self, session: _Session, scope: Scope, run_scope: Scope | None, parent: _Graph | None) -> None:
        self.session = session
        self.scope = scope
        self.run_scope = run_scope
        self.parent = parent
        self.inputs = {text(value.name) for value in scope.graph.input}
        self.outputs = {text(value.name) for value in scope.graph.output}
        self.initializers = {text(tensor.name): tensor for tensor in scope.graph.initializer}
        replaceable = self.inputs if session.model.ir_version >= 4 else set()
        self.constants = {name for name in self.initializers if name not in replaceable}
        self.folded = self._fold()
        self.has_subgraphs = any(True for node in scope.graph.node for _ in given.subgraphs(node))
        self.preferring_cpu = self._preferring_cpu()

    @classmethod
    def all_of(
        cls, session: _Session, scope: Scope, run_scope: Scope | None, parent: _Graph | None
    ) -> Iterator[_Graph]:
        """A graph behind those in its nodes: ONNX Runtime fuses the inner ones first."""
        graph = cls(session, scope, run_scope, parent)
        for index, node in enumerate(scope.graph.node):
            if not node.attribute:
                continue
            inner = dict(scope.children(index))
            inner_run = dict(run_scope.children(index)) if run_scope is not None else {}
            for name, child in inner.items():
                yield from cls.all_of(session, child, inner_run.get(name), graph)
        yield graph

    # What is constant, and what computes with sizes.

    def is_constant(self, name: str) -> bool:
        """Whether a name is a constant of this graph or of one around it."""
        if name in self.constants:
            return True
        return self.parent is not None and name not in self.inputs and self.parent.is_constant(name)

    def _fold(self) -> set[int]:
        """The nodes that are gone before anything is placed; their outputs are constants."""
        found = set()
        for index, node in enumerate(self.scope.graph.node):
            if not self._folds(node):
                continue
            found.add(index)
            self.constants.update(text(name) for name in node.output if name)
        return found

    def _folds(self, node: onnx.NodeProto) -> bool:
        if node.op_type == "Constant" and domain_of(node) == "":
            return True
        if self.session.options.optimization < 1 or domain_of(node) != "" or node.op_type in _NOT_FOLDED:
            return False
        if node.op_type in KEEPS_ON_CPU and node.input and is_static(self._shape(node.input[0])):
            return True
        names = [text(name) for name in node.input if name]
        return bool(names) and all(map(self.is_constant, names)) and not any(True for _ in given.subgraphs(node))

    def _preferring_cpu(self) -> set[int]:
        """The nodes that are left on the CPU since they compute with sizes, in the order of the search."""
        on_cpu = {
            text(name)
            for index, node in self._alive()
            if node.op_type in KEEPS_ON_CPU and domain_of(node) == ""
            for name in node.output
        }
        candidates = set(on_cpu)
        found = set()
        for index, node in self._alive():
            names = [text(name) for name in node.input]
            if not candidates.intersection(names) or self._on_dml(node) is False:
                continue
            known = NEIGHBOURS.get(node.op_type)
            cpu_inputs = (1,) if node.op_type == "Split" else known.cpu_inputs if known is not None else ()
            if all(self._stays(i, name, on_cpu, cpu_inputs) for i, name in enumerate(names) if name):
                found.add(index)
                made = {text(name) for name in node.output if name}
                on_cpu |= made
                candidates |= made
        return found

    def _stays(self, index: int, name: str, on_cpu: set[str], cpu_inputs: Sequence[int]) -> bool:
        if self.scope.type_of(name)[0] in ("FLOAT16", "BFLOAT16"):
            return False
        if self._is_small_initializer(name) or (name in self.inputs and name not in self.initializers):
            return True
        return name in on_cpu and index not in cpu_inputs

    def _is_small_initializer(self, name: str) -> bool:
        if name not in self.initializers and not self.is_constant(name):
            return False
        shape = self._shape(name)
        size = 1
        for dim in shape if shape is not None and is_static(shape) else ():
            assert isinstance(dim, int)
            size *= dim
        return size <= SMALL_INITIALIZER

    def _alive(self) -> Iterator[tuple[int, onnx.NodeProto]]:
        for index, node in enumerate(self.scope.graph.node):
            if index not in self.folded:
                yield index, node

    # Where nodes go.

    def _shape(self, name: str) -> Shape | None:
        return self.scope.type_of(text(name))[1]

    def _on_dml(self, node: onnx.NodeProto) -> bool | None:
        """Whether the execution provider implements a node that is no Split or Concat; None where unknown."""
        if domain_of(node) != "":
            return None
        if node.op_type in ON_CPU:
            return False
        known = NEIGHBOURS.get(node.op_type)
        name = next((text(name) for name in node.input if name), "")
        if known is None:
            return True if node.op_type in _TYPES else None
        return known.takes(self.scope.type_of(name)[0])

    def _placed(self, index: int, node: onnx.NodeProto) -> _Node:
        on_dml = self._on_dml(node)
        if index in self.preferring_cpu:
            on_dml = False
        if on_dml is False or not self.session.options.graph_fusion or self.has_subgraphs:
            return _Node(index, node, on_dml, False)
        known = NEIGHBOURS.get(node.op_type)
        if known is not None and not known.in_graph:
            return _Node(index, node, on_dml, False)
        cpu_inputs = known.cpu_inputs if known is not None else ()
        shapes = []
        for i, name in enumerate(map(text, node.input)):
            if i in cpu_inputs and name and name not in self.constants and name not in self.initializers:
                return _Node(index, node, on_dml, False)
            if name and i not in cpu_inputs:
                shapes.append(self._shape(name))
        shapes += [self._shape(name) for name in node.output if name]
        if all(map(is_static, shapes)) and not any(0 in shape for shape in shapes if shape is not None):
            return _Node(index, node, on_dml, True if on_dml else None)
        # What inference here did not find, ONNX Runtime's may.
        return _Node(index, node, on_dml, False if self._has_open_input(node) else None)

    def _has_open_input(self, node: onnx.NodeProto) -> bool:
        return any(not is_static(self._shape(name)) for name in node.input if name)

    # The answers.

    def answers(self) -> tuple[list[NodeOnRuntime], list[str]]:
        """The answers for this graph's Splits and Concats, and what else keeps the session from being made."""
        session = self.session
        options = replace(session.options, graph_fusion=session.options.graph_fusion and not self.has_subgraphs)
        facts: dict[int, NodeFacts] = {}
        placed: list[_Node] = []
        failures: list[str] = []
        judged = []
        for index, node in enumerate(self.scope.graph.node):
            split = node.op_type in _TYPES and domain_of(node) == ""
            if split:
                found = self._facts(index, node)
                if isinstance(found, NodeFacts):
                    facts[index] = found
                judged.append(index)
            if index in self.folded:
                continue
            if not split:
                placed.append(self._placed(index, node))
                failures += self._failures(placed[-1])
            elif index in facts:
                place = placement(facts[index], session.runtime, options=options)
                on_cpu = place.answer is not None and place.answer.outcome is Outcome.CPU
                placed.append(_Node(index, node, not on_cpu, place.in_graph))
            else:
                placed.append(_Node(index, node, None, None))
        certain, possible = self._fused(placed, False), self._fused(placed, True)
        found_nodes = []
        for index in judged:
            node = self.scope.graph.node[index]
            path = _path(node, self.scope)
            if index not in facts:
                continue
            nodes = _count(certain.get(index), possible.get(index), self.scope.graph.node)
            answer = predict(
                facts[index],
                session.runtime,
                path=path,
                first_run=self._first_run(facts[index], node),
                options=options,
                graph_nodes=nodes,
            )
            answer = self._in_context(index, node, path, answer, certain.get(index))
            found_nodes.append(NodeOnRuntime(path, node.op_type, facts[index], answer))
        return found_nodes, failures

    def _fused(self, placed: Sequence[_Node], unknown: bool) -> dict[int, tuple[int, ...]]:
        """For each node of a fused graph the nodes of that graph; `unknown`: nodes of which it is not known join."""
        rows = [
            PlacedNode(
                tuple(map(text, node.proto.input)),
                tuple(map(text, node.proto.output)),
                unknown if node.in_graph is None else node.in_graph,
            )
            for node in placed
        ]
        return {
            node.index: tuple(placed[i].index for i in group)
            for node, group in zip(placed, partitions(rows), strict=True)
            if group is not None
        }

    def _failures(self, node: _Node) -> list[str]:
        """What of a neighbour makes session creation fail."""
        if not node.on_dml:
            return []
        ranks = [len(shape) for name in node.proto.input if name and is_static(shape := self._shape(name)) and shape]
        if max(ranks, default=0) > _MAX_RANK:
            name = text(node.proto.name) or text(node.proto.op_type)
            return [f"{name} has a static tensor of rank {max(ranks)}"]
        return []

    def _in_context(
        self, index: int, node: onnx.NodeProto, path: str, answer: RuntimeAnswer, group: Sequence[int] | None
    ) -> RuntimeAnswer:
        """The answer where the nodes around change it."""
        if answer.outcome is not Outcome.DML:
            return answer
        if answer.compile is not None and answer.compile.call == "CompileGraph" and group and not self._is_read(group):
            found = rule("graph-without-outputs").diagnostic(path, "nothing reads what its fused graph computes")
            return replace(answer, outcome=Outcome.SESSION_FAILS, diagnostics=(*answer.diagnostics, found))
        if answer.operators and self.session.options.optimization >= 1 and self._is_between_transposes(index):
            found = rule("context-unknown").diagnostic(path, "it stands between Transposes, which may be moved over it")
            return replace(answer, outcome=Outcome.UNKNOWN, compile=None, diagnostics=(*answer.diagnostics, found))
        return answer

    def _is_read(self, group: Sequence[int]) -> bool:
        nodes = self.scope.graph.node
        made = {text(name) for i in group for name in nodes[i].output if name}
        if made & self.outputs:
            return True
        others = (node for i, node in enumerate(nodes) if i not in set(group))
        return any(made & _reads(node) for node in others)

    def _is_between_transposes(self, index: int) -> bool:
        nodes = self.scope.graph.node
        return self._reaches(index, {text(name): i for i, n in enumerate(nodes) for name in n.output}, "input") and (
            self._reaches_down(index)
        )

    def _reaches(self, index: int, producers: Mapping[str, int], side: str) -> bool:
        nodes = self.scope.graph.node
        todo, seen = [index], {index}
        while todo:
            for name in nodes[todo.pop()].input:
                above = producers.get(text(name))
                if above is None or above in seen or above in self.folded:
                    continue
                if nodes[above].op_type == "Transpose":
                    return True
                seen.add(above)
                todo.append(above)
        return False

    def _reaches_down(self, index: int) -> bool:
        nodes = self.scope.graph.node
        made = {text(name) for name in nodes[index].output if name}
        for i, node in self._alive():
            if i > index and made.intersection(map(text, node.input)):
                if node.op_type == "Transpose":
                    return True
                made.update(text(name) for name in node.output if name)
        return False

    # Facts.

    def _facts(self, index: int, node: onnx.NodeProto) -> NodeFacts | None:
        scope, opset = self.scope, self.scope.origin.opset
        names = [text(name) for name in node.input]
        tensors_read = names[:1] if node.op_type == "Split" else names
        if not opset or not tensors_read or not all(tensors_read):
            return None
        data_type = next((kind for kind, _ in map(scope.type_of, tensors_read) if kind), None)
        if data_type is None:
            return None
        attributes = {text(a.name): a for a in node.attribute}
        facts = NodeFacts(
            _TYPES[node.op_type],
            opset,
            data_type,
            tuple(scope.type_of(name)[1] for name in tensors_read),
            int(attributes["axis"].i) if "axis" in attributes else (1 if opset < 4 and node.op_type == "Concat" else 0),
            len(node.output),
            omitted=tuple([i for i, name in enumerate(node.output) if not name]),
            declared=tuple(self._declared(text(name)) for name in node.output),
            initializers=tuple(self.is_constant(name) for name in tensors_read),
            ir_version=self.session.model.ir_version,
            prefers_cpu=index in self.preferring_cpu,
        )
        return self._with_lengths(facts, names, attributes) if facts.is_split else facts

    def _declared(self, name: str) -> Shape | None:
        return self.scope.declared(name)[1] if name else None

    def _with_lengths(
        self, facts: NodeFacts, names: Sequence[str], attributes: Mapping[str, onnx.AttributeProto]
    ) -> NodeFacts:
        if facts.opset < 13:
            if "split" not in attributes:
                return facts
            return replace(facts, given=Given.ATTRIBUTE, lengths=tuple(attributes["split"].ints))
        if len(names) > 1 and names[1]:
            name = names[1]
            lengths = _integers(self.scope, name)
            if name in self.constants:
                return replace(facts, given=Given.CONSTANT if lengths is not None else Given.COMPUTED, lengths=lengths)
            how = Given.OUTER if self.is_constant(name) and lengths is not None else Given.COMPUTED
            return replace(facts, given=how, lengths=lengths if how is Given.OUTER else None)
        if "num_outputs" in attributes and facts.opset >= 18:
            return replace(facts, given=Given.NUM_OUTPUTS)
        return facts

    def _first_run(self, facts: NodeFacts, node: onnx.NodeProto) -> FirstRun | None:
        scope = self.run_scope
        if scope is None:
            return None
        names = [text(name) for name in node.input]
        read = names[:1] if facts.is_split else names
        shapes = [scope.type_of(name)[1] for name in read]
        lengths = _integers(scope, names[1]) if facts.is_split and len(names) > 1 and names[1] else None
        return FirstRun(tuple(_sizes(shape) for shape in shapes), lengths)


def _count(
    certain: Sequence[int] | None, possible: Sequence[int] | None, nodes: Sequence[onnx.NodeProto]
) -> int | None:
    """The nodes of a fused graph, where optimization and unknown nodes leave no doubt on which side of 5 it is."""
    if certain is None and possible is None:
        return 1
    most = len(possible or certain or ())
    least = sum(nodes[i].op_type in _TYPES or nodes[i].op_type in STAYING for i in certain or possible or ())
    if least >= LEAST_NODES_FOR_VOLATILE or most < LEAST_NODES_FOR_VOLATILE or least == most:
        return max(least, 1) if least >= LEAST_NODES_FOR_VOLATILE else most
    return None


def _reads(node: onnx.NodeProto) -> set[str]:
    """The names that a node reads, and those that graphs in it do."""
    found = {text(name) for name in node.input if name}
    for graph in given.subgraphs(node):
        found.update(text(value.name) for value in graph.output)
        for inner in graph.node:
            found |= _reads(inner)
    return found


def _integers(scope: Scope, name: str) -> Sizes | None:
    try:
        constant = scope.constant(name)
    except InputError:
        return None
    if constant is None or not constant.whole or constant.array.dtype.kind not in "iu":
        return None
    return tuple(int(value) for value in constant.array.ravel())


def _sizes(shape: Shape | None) -> Sizes | None:
    return tuple([dim for dim in shape if isinstance(dim, int)]) if shape is not None and is_static(shape) else None


def _path(node: onnx.NodeProto, scope: Scope) -> str:
    name = text(node.name) or next((text(name) for name in node.output if name), "") or text(node.op_type)
    return f"{scope.label}/{name}" if scope.label else name


def _with_failures(found: Sequence[NodeOnRuntime], failures: Sequence[str]) -> list[NodeOnRuntime]:
    """The answers where something else keeps the session from being made: then nothing runs."""
    guilty = next((node for node in found if node.answer.outcome is Outcome.SESSION_FAILS), None)
    why = failures[0] if failures else f"{guilty.path} fails session creation" if guilty is not None else None
    if why is None:
        return list(found)
    changed = []
    for node in found:
        answer = node.answer
        if answer.outcome is not Outcome.SESSION_FAILS:
            note = rule("session-fails-elsewhere").diagnostic(node.path, why)
            answer = RuntimeAnswer(
                answer.runtime, Outcome.SESSION_FAILS, "init", diagnostics=(*answer.diagnostics, note)
            )
        changed.append(replace(node, answer=answer))
    return changed


def _without_crashes(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model as onnx's inference survives it: it ends the process at a Split with more outputs than num_outputs."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for node in copy.graph.node:
        numbers = [a.i for a in node.attribute if a.name == "num_outputs"]
        if node.op_type == "Split" and any(number < len(node.output) for number in numbers):
            node.domain = "dmlsplit.unsafe"
    domains = {node.domain for node in copy.graph.node} - {entry.domain for entry in copy.opset_import}
    for domain in domains - {"", "ai.onnx"}:
        copy.opset_import.add(domain=domain, version=1)
    return copy
