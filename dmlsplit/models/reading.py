"""Walks over a model: graphs, graphs in nodes, functions at each of their calls."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Final

import onnx
from onnx import TensorProto, helper, numpy_helper

from dmlsplit.descriptors.diagnostics import Severity
from dmlsplit.descriptors.dims import compatible
from dmlsplit.descriptors.location import Location
from dmlsplit.formats.joins import JoinNode
from dmlsplit.formats.limits import Budget, Limit, LimitError
from dmlsplit.formats.nodes import OtherNode, SplitNode
from dmlsplit.formats.onnx.protobuf import domain_of, has_graphs, own_name, refill
from dmlsplit.formats.onnx.tensors import ReadExternal, type_of
from dmlsplit.models import functions
from dmlsplit.models.folding import Constant
from dmlsplit.models.functions import LOOKED_FOR, Functions, Key
from dmlsplit.models.inference import Inference, InferenceError, make_harmless
from dmlsplit.models.onnx_nodes import Hint, concat_node, name_of, split_facts, split_node
from dmlsplit.models.scope import Origin, Scope, inside, label_of
from dmlsplit.rules import RULES, judge_node
from dmlsplit.system.errors import InputError
from dmlsplit.system.printable import printable

MAX_CALLS: Final = Limit.ONNX_CALLS.most
MAX_CALL_DEPTH: Final = Limit.ONNX_CALL_DEPTH.most
MAX_ROUNDS: Final = Limit.ONNX_ROUNDS.most
_JUDGED: Final[Mapping[str, Callable[[onnx.NodeProto, Scope, Hint], SplitNode | JoinNode]]] = {
    "Split": split_node,
    "Concat": concat_node,
}
_DATA_TYPES: Final = dict(TensorProto.DataType.items())


class Reader:
    """Reads the Splits and Concats of one model."""

    def __init__(
        self,
        model: onnx.ModelProto,
        read_external: ReadExternal,
        given: Collection[str],
        resized: bool,
        budget: Budget,
        inference: Inference,
    ) -> None:
        """Makes the Reader of a model. `given` are the names of the tensors whose shapes the caller gives; `resized` is
        True if the caller gives any size, so that declared shapes may be wrong. `budget` and `inference` are the
        file's."""
        self._budget = budget
        self._functions = Functions(model.functions, budget)
        self._inference = inference
        self._read_external = read_external
        self._calls = 0
        self._options = _options(model.graph)
        self._model = model
        self._given = given
        self._outdated = resized

    @property
    def node_count(self) -> int:
        """The number of nodes of the model; those of a function count once for each call."""
        return self._functions.count(self._model.graph.node)

    def items(
        self,
        model: onnx.ModelProto,
        constants: Mapping[str, Constant | None],
        label: str = "",
        calls: tuple[Key, ...] = (),
        depth: int = 0,
    ) -> Iterator[SplitNode | JoinNode | OtherNode]:
        """Yields the Split and Concat nodes of a model in order, or those of a function's body, given as a model of its
        own, inside `depth` graphs. `constants` maps names of tensors to their known elements; `label` is the path of
        the graph, `calls` the functions around it."""
        if not self._reads(model.graph.node):
            return
        origin = Origin.of(model, self._functions, self._read_external, self._budget)
        inferred, failure = self._inferred(model, origin, constants)
        scope = Scope(model.graph, inferred, origin, label, constants=constants, depth=depth)
        yield from self._graph(scope, model, calls, failure)

    def _reads(self, nodes: Sequence[onnx.NodeProto]) -> bool:
        """True if a graph of these nodes must be read: the nodes, or functions that they call, include a Split or
        Concat."""
        return self._functions.splits(nodes)

    def _graph(
        self, scope: Scope, model: onnx.ModelProto, calls: tuple[Key, ...], failure: str
    ) -> Iterator[SplitNode | JoinNode | OtherNode]:
        self._entered(scope, calls)
        for index, node in enumerate(scope.graph.node):
            key = self._functions.key_of(node)
            if key is not None:
                yield from self._call(node, key, scope, model, calls)
            elif node.op_type in _JUDGED and domain_of(node) == "":
                found = _JUDGED[node.op_type](node, scope, Hint(failure, self._options, not calls))
                self._found(found, index, node, scope, calls)
                yield found
            elif node.op_type in LOOKED_FOR:
                yield _other(node, scope)
            for _, child in scope.children(index) if node.attribute else ():
                if self._reads(child.graph.node):
                    if child.depth > Limit.ONNX_DEPTH.most:
                        raise LimitError(Limit.ONNX_DEPTH, Limit.ONNX_DEPTH.most)
                    yield from self._graph(child, model, calls, failure)

    def _entered(self, scope: Scope, calls: tuple[Key, ...]) -> None:
        """Called before a graph is read, for readers that record it. `calls` are the functions around it, the innermost
        last."""

    def _found(
        self, found: SplitNode | JoinNode, index: int, node: onnx.NodeProto, scope: Scope, calls: tuple[Key, ...]
    ) -> None:
        """Called for each Split and Concat, which has this index in its graph, for readers that record it."""

    def _call(
        self, node: onnx.NodeProto, key: Key, scope: Scope, model: onnx.ModelProto, calls: tuple[Key, ...]
    ) -> Iterator[SplitNode | JoinNode | OtherNode]:
        function = self._functions[key]
        if not self._reads([node]):
            return
        if key in calls and not self._functions.ends(key):
            message = f"{functions.name_of(key)} calls itself"
            found = RULES["onnx/function-recursive"].diagnostic(Location(node=name_of(node, scope)), message)
            yield OtherNode(node.name, node.op_type, found)
            return
        self._calls += 1
        if self._calls > MAX_CALLS or len(calls) >= MAX_CALL_DEPTH:
            if not self._functions.splits([node]):
                return
            raise InputError(
                f"functions with a Split or Concat are called more than {MAX_CALLS} times, or nested more than "
                f"{MAX_CALL_DEPTH} deep"
            )
        body, constants = self._body(key, node, scope)
        called = onnx.ModelProto(ir_version=max(model.ir_version, 8), graph=body)
        called.opset_import.extend(function.opset_import)
        label = label_of(scope.label, own_name(node))
        yield from self.items(called, constants, label, (*calls, key), scope.depth + 1)

    def _body(self, key: Key, node: onnx.NodeProto, scope: Scope) -> tuple[onnx.GraphProto, dict[str, Constant | None]]:
        """Returns the body of function `key`, which `node` calls, as a graph whose inputs have the types of the call's
        inputs; and the known elements of these inputs by name, None for unknown ones."""
        function, graph = self._functions[key], self._functions.body(key, node)
        constants: dict[str, Constant | None] = {}
        for formal, actual in zip(function.input, node.input, strict=False):
            if not actual:
                continue
            constant = scope.known(actual)
            constants[formal] = constant and constant.without_symbols()
            if constant is not None and constant.whole and constant.array.dtype.kind in "iuf":
                self._budget.spend(Limit.ONNX_COPIED, 4 * constant.array.nbytes)
                graph.initializer.append(numpy_helper.from_array(constant.array, formal))
                continue
            data_type, shape = scope.type_of(actual)
            value = graph.input.add(name=formal)
            if data_type in _DATA_TYPES:
                value.type.CopyFrom(helper.make_tensor_type_proto(_DATA_TYPES[data_type], shape))
        for name in function.output:
            graph.output.add(name=name)
        return graph, constants

    def _inferred(
        self, model: onnx.ModelProto, origin: Origin, constants: Mapping[str, Constant | None]
    ) -> tuple[onnx.GraphProto, str]:
        """Returns the model's graph with inferred types, and a message if inference failed, else "". `constants` maps
        names of tensors to their known elements."""
        if origin.opset == 0 or self._needs_none(model.graph):
            return model.graph, ""
        harmless = deepcopy(model)
        refill(harmless.functions, self._functions.called_by(model.graph.node))
        if not harmless.opset_import:
            harmless.opset_import.add(version=origin.opset)
        make_harmless(harmless, self._functions)
        if self._outdated:
            self._outdated = False
            _update(harmless, self._given, self._inference)
        failure = ""
        for i in range(MAX_ROUNDS):
            graph = harmless.graph
            if not failure:
                try:
                    # asked as a session asks, which then has the answer
                    graph = self._inference.inferred(harmless, strict=i == 0).model.graph
                except InferenceError as error:
                    failure = f"onnx's shape inference: {printable(' '.join(str(error).split()), 300)}"
            if origin.version != 1:
                break
            # onnx infers nothing for Split 1: its output shapes are computed here and fed back
            if not self._feed(Scope(model.graph, graph, origin, constants=constants), harmless.graph) or failure:
                break
        return graph, failure

    def _feed(self, scope: Scope, graph: onnx.GraphProto) -> bool:
        """Adds to `graph`, in place, the shapes of the outputs of Splits of version 1, which onnx does not infer.
        Returns True if at least one was not known before."""
        fed = False
        for index, node in enumerate(scope.graph.node):
            if node.op_type == "Split" and domain_of(node) == "" and self._functions.key_of(node) is None:
                fed |= _feed_outputs(node, scope, graph)
            for _, child in scope.children(index) if node.attribute else ():
                twin = inside(graph.node[index], child)
                fed |= twin is not None and self._feed(child, twin)
        return fed

    def _needs_none(self, graph: onnx.GraphProto) -> bool:
        """True if every Split and Concat reads only inputs and initializers, so that nothing needs to be inferred."""
        given = {v.name for v in (*graph.input, *graph.initializer)}
        constants = given | {name for node in graph.node if node.op_type == "Constant" for name in node.output[:]}
        for node in graph.node:
            if self._functions.key_of(node) is not None or has_graphs(node):
                if self._functions.splits([node]):
                    return False
            elif node.op_type in _JUDGED and not _is_given(node, given, constants):
                return False
        return True


def _is_given(node: onnx.NodeProto, given: set[str], constants: set[str]) -> bool:
    """True if a Split or Concat can be judged without inference: its tensors are in `given` and a Split's lengths in
    `constants`."""
    names = node.input[:]
    if node.op_type == "Concat":
        return given.issuperset(names)
    return given.issuperset(names[:1]) and constants.issuperset(filter(None, names[1:2]))


def _feed_outputs(node: onnx.NodeProto, scope: Scope, graph: onnx.GraphProto) -> bool:
    """Adds the types of a Split's outputs, in place, to `scope` and `graph`. Returns True if one was not known
    before."""
    data = node.input[0] if node.input else ""
    if not data or scope.type_of(data)[1] is None or all(scope.type_of(name)[1] for name in node.output[:] if name):
        return False
    facts = split_facts(node, scope)
    if facts.data_type is None or any(d.severity is Severity.ERROR for d in judge_node(facts, "")):
        return False
    fed = False
    data_type = _DATA_TYPES[facts.data_type]
    for name, shape in zip(node.output[:], facts.output_shapes, strict=False):
        if name and shape is not None and scope.type_of(name)[1] is None:
            scope.set_type(name, data_type, shape)
            graph.value_info.add(name=name).type.CopyFrom(helper.make_tensor_type_proto(data_type, shape))
            fed = True
    return fed


def _other(node: onnx.NodeProto, scope: Scope) -> OtherNode:
    domain = domain_of(node)
    operator = printable(f"{domain}.{node.op_type}" if domain else node.op_type)
    found = RULES["input/operator-not-judged"].diagnostic(
        Location(node=name_of(node, scope)),
        f"{operator} is not judged",
        expected="Split or Concat of the domain ai.onnx",
        actual=operator,
    )
    return OtherNode(node.name, operator, found)


def _update(model: onnx.ModelProto, given: Collection[str], inference: Inference) -> None:
    """Replaces, in the model in place, those declared shapes of computed tensors that contradict the shapes inferred
    without them; tensors in `given`, whose shapes the caller gives, keep theirs. This is necessary because onnx's
    inference keeps declared shapes."""
    computed = {name for node in model.graph.node for name in node.output[:]} - set(given)
    bare = deepcopy(model)
    refill(bare.graph.value_info, [value for value in model.graph.value_info if value.name not in computed])
    for value in bare.graph.output:
        if value.name in computed and value.type.HasField("tensor_type"):
            value.type.tensor_type.ClearField("shape")
    try:
        inferred = inference.infer_shapes(bare).graph
    except InferenceError:  # the next inference reports it
        return
    found = {value.name: value.type for values in (inferred.value_info, inferred.output) for value in values}
    for values in (model.graph.value_info, model.graph.output):
        for value in values:
            if value.name in computed and value.name in found:
                declared, shape = type_of(value.type)[1], type_of(found[value.name])[1]
                if not compatible(declared, shape):
                    value.type.CopyFrom(found[value.name])


def _options(graph: onnx.GraphProto) -> str:
    """Returns the command-line options that would give the inputs their unknown shapes, as text; "" if all are
    known."""
    given = {tensor.name for tensor in graph.initializer}
    advice = []
    symbols: dict[str, None] = {}
    for value in graph.input:
        name, shape = value.name, type_of(value.type)[1]
        if name in given or (shape is not None and all(isinstance(dim, int) for dim in shape)):
            continue
        if shape is None or None in shape:  # symbols have an option of their own
            sizes = "..." if shape is None else ",".join(str(dim) if isinstance(dim, int) else "?" for dim in shape)
            advice.append(f"--shape {printable(name, 60)}:{printable(sizes)}")
        symbols.update({dim: None for dim in shape or () if isinstance(dim, str)})
    advice += ["--dim " + shlex.quote(f"{printable(symbol, 60)}=NUMBER") for symbol in symbols]
    return " ".join(advice[:6]) + (" ..." if len(advice) > 6 else "")
