"""A model as ONNX Runtime knows it when the session is made, and as it is at the first Run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

import numpy as np
import onnx
from onnx import numpy_helper

from dmlsplit.errors import InputError
from dmlsplit.formats.limits import Budget, LimitError
from dmlsplit.formats.onnx import given
from dmlsplit.formats.onnx.folding import Constant
from dmlsplit.formats.onnx.functions import Functions, all_nodes
from dmlsplit.formats.onnx.inference import Inference, InferenceError
from dmlsplit.formats.onnx.scope import Origin, Scope, opset_of
from dmlsplit.formats.onnx.tensors import Array, ReadExternal, text
from dmlsplit.formats.sessions import Inputs
from dmlsplit.runtimes.facts import Sizes

_FIRST_WITH_DEFAULTS = 4
"""The IR version from which on an initializer that is an input as well is a default only."""

_ROUNDS = 8
"""Inferences of a model, each of which knows the lengths that were computed from the shapes of the one before."""


class Model:
    """A model without local functions, and what is known of its names.

    `session` knows what ONNX Runtime does as it makes the session, `run` also the sizes of the first Run (None where
    there are none). An initializer that is an input as well has its elements in `run` and `defaults` only. `inlined`
    numbers the names that nodes of functions write.
    """

    def __init__(
        self,
        proto: onnx.ModelProto,
        inlined: Sequence[str],
        read_external: ReadExternal,
        budget: Budget,
        inputs: Inputs,
        require_known_names: bool = True,
    ) -> None:
        self.ir_version = proto.ir_version
        self.inlined = {name: place for place, name in enumerate(inlined)}
        self._read_external = read_external
        self._budget = budget
        self._inference = Inference()
        self.defaults = _defaults(proto)
        self.session = self._scope(_without(proto, self.defaults), {})
        self.run: Scope | None = None
        # What is overridden has its size already.
        dims = {name: size for name, size in inputs.dims.items() if name not in inputs.free_dimensions}
        if inputs.shapes or inputs.values or dims:
            run = onnx.ModelProto()
            run.CopyFrom(proto)
            given.fill_in(run, inputs.shapes, dims, require_known_names)
            constants = given.constants(run, inputs.values)
            _put_values(run.graph, inputs.values)
            self.run = self._scope(run, constants)

    def _scope(self, model: onnx.ModelProto, constants: Mapping[str, Constant | None]) -> Scope:
        symbols = {name: number for number, name in enumerate(given.symbols_of(model.graph), 1)}
        origin = Origin(opset_of(model), Functions((), self._budget), symbols, self._read_external, self._budget)
        wanted = _for_inference(model)
        for _ in range(_ROUNDS):
            graph = model.graph
            # Without inference what is declared is known all the same.
            with suppress(InferenceError):
                graph = self._inference.infer_shapes(wanted).graph
            scope = Scope(model.graph, graph, origin, constants=constants)
            if not _add_lengths(scope, wanted.graph):
                break
        return scope


def elements(scope: Scope, name: str) -> Array | None:
    """The elements of a constant; None where they are not known."""
    try:
        constant = scope.constant(name)
    except LimitError:
        raise
    except InputError:
        return None
    return constant.array if constant is not None and constant.whole else None


def integers(scope: Scope, name: str) -> Sizes | None:
    """The elements of a constant of integers; None where they are not known."""
    array = elements(scope, name)
    if array is None or array.dtype.kind not in "iu":
        return None
    return tuple([int(value) for value in array.ravel()])


def _add_lengths(scope: Scope, graph: onnx.GraphProto) -> bool:
    """Gives inference the lengths that are computed of known shapes; whether there were any."""
    added = False
    known = {text(tensor.name) for tensor in graph.initializer}
    for node in scope.graph.node:
        name = text(node.input[1]) if node.op_type == "Split" and len(node.input) > 1 else ""
        if not name or name in known or scope.producer(name) is None or not _lacks_shape(node, scope):
            continue
        lengths = integers(scope, name)
        if lengths is not None:
            known.add(name)
            _rename_input(graph, name)
            graph.initializer.append(numpy_helper.from_array(np.array(lengths, np.int64), f"{name}/known"))
            added = True
    return added


def _lacks_shape(node: onnx.NodeProto, scope: Scope) -> bool:
    shapes = [scope.type_of(text(name))[1] for name in node.output if name]
    return any(shape is None or None in shape for shape in shapes)


def _rename_input(graph: onnx.GraphProto, name: str) -> None:
    """Lets Splits read a constant in place of what is computed."""
    for node in graph.node:
        if node.op_type == "Split" and len(node.input) > 1 and text(node.input[1]) == name:
            node.input[1] = f"{name}/known"


def _defaults(model: onnx.ModelProto) -> dict[str, onnx.TensorProto]:
    if model.ir_version < _FIRST_WITH_DEFAULTS:
        return {}
    inputs = {text(value.name) for value in model.graph.input}
    return {name: tensor for tensor in model.graph.initializer if (name := text(tensor.name)) in inputs}


def _without(model: onnx.ModelProto, defaults: Mapping[str, onnx.TensorProto]) -> onnx.ModelProto:
    if not defaults:
        return model
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    del copy.graph.initializer[:]
    copy.graph.initializer.extend(tensor for tensor in model.graph.initializer if text(tensor.name) not in defaults)
    return copy


def _put_values(graph: onnx.GraphProto, values: Mapping[str, Sequence[int]]) -> None:
    """Makes the integers of a run initializers, for the inference of what is computed from them."""
    kept = [tensor for tensor in graph.initializer if text(tensor.name) not in values]
    del graph.initializer[:]
    graph.initializer.extend(kept)
    graph.initializer.extend(numpy_helper.from_array(np.array(v, np.int64), name) for name, v in values.items())


def _for_inference(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model as onnx's inference survives it, and finds most in it.

    It ends the process at a Split with more outputs than num_outputs, and it does not look for constants of an outer
    graph, as ONNX Runtime does.
    """
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for node in all_nodes(copy.graph.node):
        numbers = [a.i for a in node.attribute if a.name == "num_outputs"]
        if node.op_type == "Split" and any(number < len(node.output) for number in numbers):
            node.domain = "dmlsplit.unsafe"
    _hand_down(copy.graph, {})
    domains = {node.domain for node in all_nodes(copy.graph.node)} - {entry.domain for entry in copy.opset_import}
    for domain in domains - {"", "ai.onnx"}:
        copy.opset_import.add(domain=domain, version=1)
    return copy


def _hand_down(graph: onnx.GraphProto, outer: Mapping[str, onnx.TensorProto]) -> None:
    """Copies the integers of outer graphs that a graph in a node reads into it."""
    own = {text(tensor.name) for tensor in graph.initializer} | {text(name) for n in graph.node for name in n.output}
    read = {text(name) for node in graph.node for name in node.input}
    graph.initializer.extend(tensor for name, tensor in outer.items() if name in read - own)
    known = {**outer, **{text(t.name): t for t in graph.initializer if t.data_type == onnx.TensorProto.INT64}}
    for node in graph.node:
        for inner in given.subgraphs(node):
            _hand_down(inner, known)
