"""What ONNX Runtime knows of a model at session creation, and at the first Run."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from functools import cache, lru_cache
from typing import Final, NamedTuple

import numpy as np
import onnx
from onnx import helper, numpy_helper

from dmlsplit.descriptors.dims import is_static
from dmlsplit.formats.limits import Budget, Limit
from dmlsplit.formats.onnx.protobuf import Names, all_graphs, all_nodes, domain_of, has_graphs, refill, subgraphs
from dmlsplit.formats.onnx.tensors import ReadExternal
from dmlsplit.formats.sessions import Inputs
from dmlsplit.models import given
from dmlsplit.models.folding import Constant
from dmlsplit.models.functions import Functions
from dmlsplit.models.inference import DIFFERENT, INERT, Fault, Inference, InferenceError, fault_of, make_harmless
from dmlsplit.models.once import Once
from dmlsplit.models.schemas import schema_of, types_of
from dmlsplit.models.scope import LEARNING, Origin, Scope, inside
from dmlsplit.models.taken_branches import TakenBranches
from dmlsplit.onnxruntime.contributed_checks import NotLoaded
from dmlsplit.onnxruntime.operator_traits import MEMCPY_FROM_HOST, MEMCPY_TO_HOST, row_of
from dmlsplit.targets.runtime_versions import Runtime

_FIRST_WITH_DEFAULTS = 4
"""The first IR version in which an initializer that is also an input is only its default."""

_INFERRED: Final = 260_000
"""The most nodes that all rounds of inference process together: each round uses the shapes that the previous one
computed, and each layer of a transformer takes one."""
_ROUNDS_OF_LARGE: Final = 8
_LARGE: Final = 10_000
"""The number of nodes above which the rounds for a model are limited."""
_GENERATED: Final = "unk__"
"""How the symbols begin that onnx's inference makes up."""
_SHAPED_AS: Final = {
    **dict.fromkeys(("QuickGelu", "Gelu", "FastGelu", "BiasGelu", "SkipLayerNormalization"), "Identity"),
    "FusedConv": "Conv",
    "DynamicQuantizeLSTM": "LSTM",
}
"""Operators of com.microsoft, each with the ONNX operator whose outputs have the same shapes; for an Identity, only the
first."""
_COPIES: Final = frozenset({MEMCPY_FROM_HOST, MEMCPY_TO_HOST})
"""ONNX Runtime's own operators whose output has the shape of their input."""
_UNREAD_LENGTHS: Final = {"OneHot": 1}
"""The inputs whose elements inference does not read, by operators whose sizes are otherwise known."""
_OF_SEQUENCES: Final = frozenset({"SequenceAt", "ConcatFromSequence"})
_CHECKED_LATER: Final = frozenset({"Expand", "Reshape"})
"""Operators whose folded shapes misfit_reshapes.py compares with what is reshaped."""
_LIKE_INPUT: Final = -1
"""A marker for the element type of a node's first input."""


class Habits(NamedTuple):
    """The habits of sessions that change a model's names and sizes."""

    optimized: bool = True
    """True at any optimization level above 0."""
    overloads: bool = True
    """Functions of one name are distinguished by their overload."""
    uninferred: frozenset[str] = frozenset()
    """Operators whose output sizes are not inferred before the model runs."""
    runtime: Runtime | None = None
    """The version whose kernels decide which nodes are replaced with the nodes of their functions before any
    optimization; None if none are."""


ALL_KNOWN: Final = Habits()


class SessionModel:
    """A model without local functions, and what is known about its names.

    `session` has what ONNX Runtime knows at session creation, `run` also the sizes of the first Run (None if there are
    none). An initializer that is also an input has its elements only in `run` and `defaults`. `inlined` numbers the
    names that nodes of functions write.
    """

    def __init__(
        self,
        proto: onnx.ModelProto,
        inlined: Sequence[str],
        read_external: ReadExternal,
        budget: Budget,
        inputs: Inputs,
        require_known_names: bool = True,
        habits: Habits = ALL_KNOWN,
        inference: Inference | None = None,
    ) -> None:
        """Makes the SessionModel of a model whose functions are inlined. `inlined` are the names that nodes of inlined
        functions write; `inputs` are facts about the model's inputs; if `require_known_names` and the model lacks one
        of these, InputError is raised. `habits` are those of the session; `budget` and `inference` are the file's."""
        self.ir_version = proto.ir_version
        self.once = Once()
        self.lost: set[str] = set()
        """The tensors whose sizes are not inferred before the model runs."""
        self.contradicted: set[str] = set()
        """Those of `lost` that the model declares with other sizes than their nodes compute."""
        self._uninferred = habits.uninferred
        self.inlined = {name: place for place, name in enumerate(inlined)}
        self.is_unfinished = False
        """True if more rounds of inference would find more sizes."""
        self.fault: Fault | None = None
        """A node for which inference at session creation fails."""
        self.folding_fault: Fault | None = None
        """A node for which inference fails once the sizes that are computed of others are known."""
        self.new_fault: Fault | None = None
        """A node for which inference at session creation fails only in versions that check windows."""
        self.refused: tuple[str, ...] = ()
        """The reasons why no version loads the model."""
        self.not_loaded_by: Sequence[NotLoaded] = ()
        """The nodes for which some versions do not load the model."""
        self.removed: frozenset[str] = frozenset()
        """The paths of the graphs in branches that are never taken."""
        self.branches = TakenBranches()
        self._read_external = read_external
        self._budget = budget
        self.inference = inference or Inference()
        self.defaults = _defaults(proto)
        self.session = self._scope(_without(proto, self.defaults), {}, folds=habits.optimized, partly=False)
        self.run: Scope | None = None
        # overridden dimensions already have their sizes
        dims = {name: size for name, size in inputs.dims.items() if name not in inputs.free_dimensions}
        if inputs.shapes or inputs.values or dims:
            run = deepcopy(proto)
            given.fill_in(run, inputs.shapes, dims, require_known_names)
            constants = given.constants(run, inputs.values)
            _put_values(run.graph, inputs.values)
            _forget_symbols(run.graph)
            self.run = self._scope(run, constants, folds=True, partly=True)

    def _scope(
        self,
        model: onnx.ModelProto,
        constants: Mapping[str, Constant | None],
        *,
        folds: bool,
        partly: bool,
    ) -> Scope:
        """Returns the scope of a model's graph. `constants` are known elements of tensors. If `folds`, sizes that are
        computed from known shapes give outputs their sizes; if `partly`, partly known shapes count as well. Sets
        `is_unfinished` if inference ends early."""
        origin = Origin.of(model, Functions((), self._budget), self._read_external, self._budget, partly)
        wanted, nodes = _for_inference(model, self._budget)
        # A session knows no more of what is computed than it folds. Where all of that is folded, reading a model and
        # asking about it are one inference.
        rows = {op_type: row_of(op_type) for op_type in {node.op_type for node in nodes}}
        measures = any(row.on_cpu for row in rows.values())
        propagated = partly or (folds and not measures)
        shapes_by_input = any(any(node.input[i : i + 1]) for node in nodes for i in rows[node.op_type].shaping)
        make_harmless(wanted, origin.functions, nodes)
        if not partly:
            self._lose_sizes(wanted, nodes, origin)
        # Inference does not look at what a graph says a second time of its outputs.
        outputs = {value.name for value in wanted.graph.output}
        refill(wanted.graph.value_info, [value for value in wanted.graph.value_info if value.name not in outputs])
        symbols_of = _take_symbols(wanted.graph)
        taken = cache(lambda: Names.of(wanted.graph))
        for i in range(_ROUNDS_OF_LARGE if len(nodes) > _LARGE else _INFERRED // (len(nodes) + 1)):
            graph = model.graph
            # without inference, declarations still count
            with suppress(InferenceError):
                strict = not partly
                found = self.inference.inferred(wanted, data_propagation=propagated, strict=strict)
                if DIFFERENT in found.faults and self._lose_contradicted(wanted, propagated):
                    found = self.inference.inferred(wanted, data_propagation=propagated, strict=strict)
                graph = found.model.graph
                if strict and i == 0:
                    self.fault, self.new_fault = fault_of(found.faults), fault_of(found.faults, of_new=True)
                elif strict:
                    self.folding_fault = fault_of(found.faults)
                _put_symbols(graph, symbols_of)
            scope = Scope(model.graph, graph, origin, constants=constants)
            if not folds or not shapes_by_input or not _add_known(scope, wanted.graph, taken):
                break
        else:
            self.is_unfinished = self.is_unfinished or not partly
        if folds and not partly and shapes_by_input and self.fault is None and self.folding_fault is None:
            self.folding_fault = self._fault_of_settled(scope, origin.opset)
        return scope

    def _fault_of_settled(self, scope: Scope, opset: int) -> Fault | None:
        """Returns a node for which inference fails once the sizes that it reads are folded although the model declares
        the sizes of its result: the rounds of inference need no folded sizes for it."""
        asked = onnx.GraphProto(name="settled")
        for node, within in _settled(scope):
            _ask_alone(asked, node, within)
        if not asked.node:
            return None
        model = helper.make_model(asked, opset_imports=[helper.make_opsetid("", opset)])
        with suppress(InferenceError):
            return fault_of(self.inference.inferred(model, data_propagation=False).faults)
        return None

    def _lose_sizes(self, model: onnx.ModelProto, nodes: Iterable[onnx.NodeProto], origin: Origin) -> None:
        """Changes `model` in place so that inference does not find what ONNX Runtime does not know: the sizes of
        tensors taken from a sequence, of operators in `uninferred`, and of functions and operators of ai.onnx.ml whose
        schema infers nothing. Nodes whose results have the same types replace them; declarations of the file stay."""
        lost, opset = [], origin.opset
        for node in nodes:
            op_type = node.op_type
            if node.domain == LEARNING and node.input:
                loses = _kind_of_learned(op_type, origin.learning) is not None
                lost += [node] if loses and len(node.output) == 1 else []
                continue
            loses = op_type in _OF_SEQUENCES or op_type in self._uninferred or _is_uninferred(op_type, opset)
            if loses and node.domain == "" and node.input and node.output:
                lost.append(node)
        kinds: dict[str, int] = {}
        if any(node.op_type in _OF_SEQUENCES for node in lost):
            with suppress(InferenceError):
                kinds = _element_types(self.inference.infer_shapes(model).graph)
        taken = cache(lambda: Names.of(model.graph))
        for node in lost:
            unread = _UNREAD_LENGTHS.get(node.op_type, len(node.input))
            if unread < len(node.input):
                self.lost.update(node.output[:])
                node.input[unread] = taken().fresh(f"{node.input[unread]}/unknown")
                continue
            if node.domain == LEARNING:
                kind, node.domain = _kind_of_learned(node.op_type, origin.learning), ""
            elif node.op_type in _OF_SEQUENCES:
                kind = kinds.get(node.output[0])
            else:
                kind = _kind_of_result(node.op_type, opset)
            if kind is None:
                continue
            self.lost.update(node.output[:])
            unknown = taken().fresh(f"{node.output[0]}/unknown")
            del node.attribute[:]
            if kind == _LIKE_INPUT:
                node.op_type, node.input[1:] = "Reshape", [unknown]
            else:
                node.op_type, node.input[:] = "Cast", [unknown]
                node.attribute.append(helper.make_attribute("to", kind))

    def _lose_contradicted(self, model: onnx.ModelProto, propagated: bool) -> bool:
        """Changes `model` in place where declared shapes contradict inferred ones, and returns True if any do: the
        sizes that differ are not known, or no shape if the ranks do. Their nodes become ones that infer nothing; those
        with graphs inside stay. Source: MergeShapeInfo of ONNX Runtime's graph.cc; observed with 1.18.0, 1.24.4 and
        1.30.0."""
        bare = deepcopy(model)
        for graph in all_graphs(bare.graph):
            written = {name for node in graph.node for name in node.output[:]}
            for value in (*graph.value_info, *graph.output):
                if value.name in written and value.type.HasField("tensor_type"):
                    value.type.tensor_type.ClearField("shape")
        inferred = self.inference.infer_shapes(bare, data_propagation=propagated)
        graphs, twins = list(all_graphs(model.graph)), list(all_graphs(inferred.graph))
        is_changed = False
        for graph, twin in zip(graphs, twins, strict=True) if len(graphs) == len(twins) else ():
            declared = {value.name: value for value in (*graph.value_info, *graph.output)}
            types = {value.name: value.type for value in (*twin.value_info, *twin.output)}
            for node in graph.node:
                both = [name for name in node.output[:] if name in declared and name in types]
                lost = [name for name in both if _contradicts(declared[name].type, types[name])]
                if not lost or has_graphs(node):
                    continue
                for name in types.keys() & set(node.output[:]):
                    value = declared[name] if name in declared else graph.value_info.add(name=name)
                    value.type.CopyFrom(_in_both(value.type, types[name]) if name in lost else types[name])
                node.domain, node.op_type = INERT
                self.lost.update(lost)
                self.contradicted.update(lost)
                is_changed = True
        if is_changed and all(entry.domain != INERT[0] for entry in model.opset_import):
            model.opset_import.add(domain=INERT[0], version=1)
        return is_changed


def _contradicts(declared: onnx.TypeProto, inferred: onnx.TypeProto) -> bool:
    """True if two types of tensors have shapes of another rank, or sizes that differ."""
    own, other = [each.tensor_type.shape.dim for each in (declared, inferred)]
    if not (declared.tensor_type.HasField("shape") and inferred.tensor_type.HasField("shape")):
        return False
    pairs = [(a, b) for a, b in zip(own, other, strict=False) if a.HasField("dim_value") and b.HasField("dim_value")]
    return len(own) != len(other) or any(a.dim_value != b.dim_value for a, b in pairs)


def _in_both(declared: onnx.TypeProto, inferred: onnx.TypeProto) -> onnx.TypeProto:
    """Returns the type of a tensor with the sizes that both types have."""
    made = onnx.TypeProto()
    made.CopyFrom(inferred)
    own, other = [each.tensor_type.shape.dim for each in (declared, made)]
    if len(own) != len(other):
        made.tensor_type.ClearField("shape")
        return made
    for a, b in zip(own, other, strict=True):
        if a != b:
            b.Clear()
    return made


@lru_cache(maxsize=4096)
def _is_uninferred(op_type: str, opset: int) -> bool:
    """True for a function whose schema has no inference."""
    schema = schema_of(op_type, opset)
    if schema is None or schema.has_type_and_shape_inference_function:
        return False
    return bool(schema.has_function or schema.has_context_dependent_function)


@lru_cache(maxsize=4096)
def _kind_of_result(op_type: str, opset: int) -> int | None:
    """Returns the element type of an operator's result: BOOL, or _LIKE_INPUT for that of its first input; None if it is
    neither."""
    schema = schema_of(op_type, opset)
    if schema is None:
        return None
    result = schema.outputs[0]
    if result.type_str == schema.inputs[0].type_str:
        return _LIKE_INPUT
    return onnx.TensorProto.BOOL if types_of(schema, result) == {"tensor(bool)"} else None


@lru_cache(maxsize=4096)
def _kind_of_learned(op_type: str, opset: int) -> int | None:
    """Returns the element type of the result of an operator of ai.onnx.ml whose schema infers nothing, _LIKE_INPUT for
    that of its first input; None for any other operator, and if it is neither."""
    schema = schema_of(op_type, opset, LEARNING)
    if schema is None or schema.has_type_and_shape_inference_function or not schema.inputs or not schema.outputs:
        return None
    result = schema.outputs[0]
    if result.type_str == schema.inputs[0].type_str:
        return _LIKE_INPUT
    return onnx.TensorProto.FLOAT if types_of(schema, result) == {"tensor(float)"} else None


def _element_types(graph: onnx.GraphProto) -> dict[str, int]:
    """Maps the names of the tensors of a graph, and of the graphs in its nodes, to their element types
    (TensorProto.DataType); unknown ones are left out."""
    values = [value for each in all_graphs(graph) for value in (*each.value_info, *each.output)]
    return {value.name: kind for value in values if (kind := value.type.tensor_type.elem_type)}


def _add_known(scope: Scope, graph: onnx.GraphProto, taken: Callable[[], Names]) -> bool:
    """Adds to `graph`, in place, initializers for values that are computed from shapes known in `scope`, and returns
    True if any were added. `taken` returns the set of names in use, to which new names are added."""
    added = False
    for index, node in enumerate(scope.graph.node):
        for _, child in scope.children(index) if node.attribute else ():
            twin_graph = inside(graph.node[index], child)
            added |= twin_graph is not None and _add_known(child, twin_graph, taken)
        shaping = row_of(node.op_type).shaping
        if not shaping or domain_of(node) != "" or not _lacks_shape(node, scope):
            continue
        for place in shaping:
            name = node.input[place] if place < len(node.input) else ""
            twin = graph.node[index]
            producer = scope.producer(name)
            if not name or twin.input[place] != name or producer is None or producer.op_type == "Constant":
                continue
            array = scope.elements(name)
            if array is not None and array.dtype.kind in "iuf":
                twin.input[place] = taken().fresh(f"{name}/known")
                graph.initializer.append(numpy_helper.from_array(array, twin.input[place]))
                added = True
    return added


def _settled(scope: Scope) -> Iterator[tuple[onnx.NodeProto, Scope]]:
    """Yields the nodes whose results have known sizes although they depend on elements that are computed and known,
    each with the scope of its graph."""
    for index, node in enumerate(scope.graph.node):
        for _, child in scope.children(index) if node.attribute else ():
            yield from _settled(child)
        shaping = row_of(node.op_type).shaping if node.op_type not in _CHECKED_LATER and domain_of(node) == "" else ()
        read = [node.input[place] for place in shaping if place < len(node.input)]
        producers = [producer for name in read if name and (producer := scope.producer(name)) is not None]
        if any(each.op_type != "Constant" for each in producers) and not _lacks_shape(node, scope):
            yield node, scope


def _ask_alone(graph: onnx.GraphProto, node: onnx.NodeProto, scope: Scope) -> None:
    """Adds a copy of a node of `scope` to `graph`, in place, which reads inputs and initializers of its own."""
    number, shaping = len(graph.node), row_of(node.op_type).shaping
    alone = graph.node.add()
    alone.CopyFrom(node)
    alone.domain = ""
    for place, name in enumerate(node.input):
        if not name:
            continue
        alone.input[place] = own = f"{number}/{place}"
        array = scope.elements(name) if place in shaping else None
        if array is not None and array.dtype.kind in "iuf":
            graph.initializer.append(numpy_helper.from_array(array, own))
            continue
        kind, shape = scope.type_of(name)
        element = onnx.TensorProto.UNDEFINED if kind is None else onnx.TensorProto.DataType.Value(kind)
        graph.input.append(helper.make_tensor_value_info(own, element, shape))
    refill(alone.output, [name and f"{number}/{place}/o" for place, name in enumerate(node.output)])


def _lacks_shape(node: onnx.NodeProto, scope: Scope) -> bool:
    shapes = [scope.type_of(name)[1] for name in node.output[:] if name]
    return not all(map(is_static, shapes))


def _defaults(model: onnx.ModelProto) -> dict[str, onnx.TensorProto]:
    if model.ir_version < _FIRST_WITH_DEFAULTS:
        return {}
    inputs = {value.name for value in model.graph.input}
    return {name: tensor for tensor in model.graph.initializer if (name := tensor.name) in inputs}


def _without(model: onnx.ModelProto, defaults: Mapping[str, onnx.TensorProto]) -> onnx.ModelProto:
    if not defaults:
        return model
    copy = deepcopy(model)
    refill(copy.graph.initializer, [t for t in model.graph.initializer if t.name not in defaults])
    return copy


def _put_values(graph: onnx.GraphProto, values: Mapping[str, Sequence[int]]) -> None:
    """Adds to `graph`, in place, an INT64 initializer for each name in `values`, with the tensor's integers at the
    first Run, so that inference tracks what is computed from them. It replaces an initializer of that name."""
    refill(graph.initializer, [tensor for tensor in graph.initializer if tensor.name not in values])
    graph.initializer.extend(numpy_helper.from_array(np.array(v, np.int64), name) for name, v in values.items())


def _forget_symbols(graph: onnx.GraphProto) -> None:
    """Removes, in place, the symbols from computed shapes: inference keeps a symbol even if it finds a number."""
    for each in all_graphs(graph):
        _take_symbols(each)


def _take_symbols(graph: onnx.GraphProto) -> dict[str, dict[int, str]]:
    """Removes, in place, the symbols from the shapes of computed tensors, and returns them by tensor and dimension."""
    found: dict[str, dict[int, str]] = {}
    for value in (*graph.value_info, *graph.output):
        for place, dim in enumerate(value.type.tensor_type.shape.dim):
            if dim.HasField("dim_param"):
                found.setdefault(value.name, {})[place] = dim.dim_param
                dim.ClearField("dim_param")
    return found


def _put_symbols(graph: onnx.GraphProto, symbols: Mapping[str, Mapping[int, str]]) -> None:
    """Restores, in place, the symbols from `_take_symbols` for sizes whose number was not found."""
    if not symbols:
        return
    if any(symbol.startswith(_GENERATED) for found in symbols.values() for symbol in found.values()):
        _forget_generated(graph)
    for value in (*graph.value_info, *graph.output):
        dims = value.type.tensor_type.shape.dim
        for place, symbol in symbols.get(value.name, {}).items():
            if place < len(dims) and dims[place].WhichOneof("value") is None:
                dims[place].dim_param = symbol


def _forget_generated(graph: onnx.GraphProto) -> None:
    """Removes, in place, the symbols that inference made up for sizes of computed tensors: a file may contain symbols
    of the same names from an earlier inference."""
    given = {dim.dim_param for value in graph.input for dim in value.type.tensor_type.shape.dim}
    for value in (*graph.value_info, *graph.output):
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param.startswith(_GENERATED) and dim.dim_param not in given:
                dim.ClearField("dim_param")


def _for_inference(model: onnx.ModelProto, budget: Budget) -> tuple[onnx.ModelProto, list[onnx.NodeProto]]:
    """Returns a copy of the model in which onnx's inference finds the most, and its nodes, including those inside
    nodes.

    Inference does not look for constants of an outer graph, and does not know ONNX Runtime's own operators.
    """
    copy = deepcopy(model)
    nodes = list(all_nodes(copy.graph.node))
    for node in nodes:
        domain = node.domain
        if domain == "ai.onnx":  # setting a domain to "" also writes it, and the model would be inferred once more
            node.domain = ""
        if node.op_type in _COPIES and node.domain == "":
            node.op_type = "Identity"
        elif domain == "com.microsoft" and node.op_type in _SHAPED_AS:
            node.domain, node.op_type = "", _SHAPED_AS[node.op_type]
            if node.op_type == "Identity":
                del node.input[1:], node.output[1:]
            elif node.op_type == "LSTM":  # of its inputs, inference reads the shape of the first alone
                refill(node.input, [node.input[0]] * 3 if node.input else [])
    _hand_down(copy.graph, ChainMap(), budget)
    return copy, nodes


def _hand_down(graph: onnx.GraphProto, outer: ChainMap[str, onnx.TensorProto], budget: Budget) -> None:
    """Copies integer constants of outer graphs into the graphs inside nodes that read them, in place. Raises LimitError
    if the copies are too large."""
    if any(outer.maps):
        own = {tensor.name for tensor in graph.initializer} | {name for n in graph.node for name in n.output}
        read = dict.fromkeys(name for node in graph.node for name in node.input[:])
        handed = [outer[name] for name in read if name not in own and name in outer]
        budget.spend(Limit.ONNX_COPIED, sum(tensor.ByteSize() for tensor in handed))
        graph.initializer.extend(handed)
    inner = [each for node in graph.node if node.attribute for each in subgraphs(node)]
    if not inner:
        return
    constants = [*graph.initializer, *filter(None, map(_constant, graph.node))]
    known = outer.new_child({t.name: t for t in constants if t.data_type == onnx.TensorProto.INT64})
    for each in inner:
        _hand_down(each, known, budget)


def _constant(node: onnx.NodeProto) -> onnx.TensorProto | None:
    """Returns the value of a Constant with a tensor or integers, as an initializer; None for any other node."""
    if node.op_type != "Constant" or domain_of(node) != "" or not node.output:
        return None
    attribute = next((a for a in node.attribute[:] if a.name in ("value", "value_int", "value_ints")), None)
    if attribute is None:
        return None
    made = onnx.TensorProto()
    if attribute.name == "value":
        made.CopyFrom(attribute.t)
    else:
        integers = attribute.i if attribute.name == "value_int" else attribute.ints
        made = numpy_helper.from_array(np.array(integers, np.int64))
    made.name = node.output[0]
    return made
