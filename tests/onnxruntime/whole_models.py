"""Random models of all operators in the table, and whether what a version does with them is what is predicted."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper, shape_inference

from dmlsplit.library.models import providers
from dmlsplit.onnxruntime.operators import FAILING, Cell, find_operator
from dmlsplit.onnxruntime.session import OnnxSession
from dmlsplit.targets.runtime_versions import Runtime
from dmlsplit.targets.session_options import SessionOptions
from dmlsplit.verdicts.model_placements import ModelPlacement, Provider
from tests.onnxruntime.operator_models import Key, built, given, schemas, types_of
from tests.onnxruntime.record_operators import NO_FUSION

OLDEST, NEWEST = 11, 23
NODES = (3, 20)
FAILS = 0.004
"""How often a node is taken that is known to fail the session."""
SENTINELS = {"on the CPU": ("Identity", 8), "on DirectML": ("Relu", 1)}
SHAPE = (2, 3, 4, 5)


@dataclass
class Maker:
    """A model in the making; values by type and shape."""

    rng: random.Random
    opset: int
    runtime: Runtime
    graph: onnx.GraphProto = field(default_factory=lambda: onnx.GraphProto(name="g"))
    values: dict[tuple[int, tuple[int, ...]], list[str]] = field(default_factory=dict)
    contributed: bool = False

    def key(self) -> Key | None:
        """A random operator, mostly with usual types, that a session can be made with."""
        names = {(domain, op) for domain, op, _ in schemas()}
        domain, op = self.rng.choice(sorted(names))
        versions = [v for d, o, v in schemas() if (d, o) == (domain, op) and (domain or v <= self.opset)]
        if not versions or given(domain, op, max(versions)) is None:
            return None
        name = domain, op, max(versions)
        types = list(types_of(*name))
        if not types:
            return None
        chosen = self.rng.choice(types)
        operator = find_operator(*name, self.runtime)
        if operator is None:
            return None
        cell = operator.ask([chosen.get(parameter, "") for parameter in operator.row["parameters"]])
        if cell is None or cell is Cell.FOLDED or (cell in FAILING and self.rng.random() > FAILS):
            return None
        return Key(*name, tuple(sorted(chosen.items())))

    def add(self, key: Key) -> None:
        """Adds a node, which reads what others compute where that fits."""
        number = len(self.graph.node)
        try:
            made = built(key)
            onnx.checker.check_model(made)
            made = shape_inference.infer_shapes(made, strict_mode=True)
        except (onnx.checker.ValidationError, shape_inference.InferenceError, ValueError, KeyError):
            return
        prefix = f"k{number}/"
        renamed = {value.name: prefix + value.name for value in (*made.graph.input, *made.graph.initializer)}
        for value in made.graph.input:
            known = self.values.get(_type_of(value), [])
            if known and self.rng.random() < 0.8:
                renamed[value.name] = self.rng.choice(known)
            else:
                value.name = renamed[value.name]
                self.graph.input.append(value)
        for tensor in made.graph.initializer:
            tensor.name = renamed[tensor.name]
            self.graph.initializer.append(tensor)
        (node,) = made.graph.node
        node.name = f"{prefix}n"
        renamed |= {name: prefix + name for name in node.output}
        _rename(node, renamed)
        self.graph.node.append(node)
        self.contributed |= bool(key.domain)
        for value in made.graph.output:
            value.name = prefix + value.name
            self.graph.output.append(value)
            if value.type.WhichOneof("value") == "tensor_type" and _is_static(value):
                self.values.setdefault(_type_of(value), []).append(value.name)

    def add_sizes(self) -> None:
        """Computes with the sizes of a tensor, and reshapes by them."""
        known = self.values.get((1, SHAPE), [])
        if not known:
            return
        number, rng = len(self.graph.node), self.rng
        shape, source = f"k{number}/s", rng.choice(known)
        self._node("Shape", [source], shape)
        for step in range(rng.randint(0, 3)):
            op, result = rng.choice(("Mul", "Div", "Cast", "Abs")), f"k{number}/{step}"
            if op in ("Cast", "Abs"):
                more = {"to": 7} if op == "Cast" else {}
                self._node(op, [shape], result, **more)
            else:
                self._constant(f"{result}/c", [1] * rng.choice((1, 4, 4, 4)))
                self._node(op, [shape, f"{result}/c"], result)
            shape = result
        op = rng.choice(("Reshape", "Expand", "ConstantOfShape", "Concat"))
        result = f"k{number}/y"
        inputs = {"ConstantOfShape": [shape], "Concat": [shape, shape]}.get(op, [rng.choice(known), shape])
        self._node(op, inputs, result, **({"axis": 0} if op == "Concat" else {}))
        self.graph.output.append(helper.make_value_info(result, onnx.TypeProto()))
        data_type = 7 if op == "Concat" else 1
        self.graph.output[-1].type.tensor_type.elem_type = data_type

    def _node(self, op: str, inputs: list[str], output: str, **attributes: Any) -> None:
        self.graph.node.append(helper.make_node(op, inputs, [output], name=f"{output}/n", **attributes))

    def _constant(self, name: str, values: list[int]) -> None:
        self.graph.initializer.append(numpy_helper.from_array(np.array(values, np.int64), name))

    def model(self) -> onnx.ModelProto:
        imports = [helper.make_opsetid("", self.opset)]
        imports += [helper.make_opsetid("com.microsoft", 1)] if self.contributed else []
        if self.rng.random() < 0.3:
            for value in self.graph.input:
                dims = value.type.tensor_type.shape.dim
                if len(dims) == len(SHAPE) and self.rng.random() < 0.7:
                    dims[0].dim_param = "N"
        return onnx.ModelProto(ir_version=8, graph=self.graph, opset_import=imports)


def random_model(seed: int, index: int, runtime: Runtime) -> onnx.ModelProto:
    """The same model for the same seed and index of one version."""
    rng = random.Random(f"{seed}/{index}")
    maker = Maker(rng, rng.randint(OLDEST, min(NEWEST, runtime.newest_opset)), runtime)
    wanted = rng.randint(*NODES)
    while len(maker.graph.node) < wanted:
        if rng.random() < 0.15:
            maker.add_sizes()
        elif (key := maker.key()) is not None:
            maker.add(key)
    return maker.model()


def with_sentinels(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with a node more on each provider: ONNX Runtime lists no names where there is one provider alone."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    for name, (op, data_type) in SENTINELS.items():
        made.graph.node.append(helper.make_node(op, [f"{name}, input"], [f"{name}, output"], name=name))
        made.graph.input.append(helper.make_tensor_value_info(f"{name}, input", data_type, [1]))
        made.graph.output.append(helper.make_tensor_value_info(f"{name}, output", data_type, [1]))
    return made


@dataclass
class Compared:
    """The disagreements about one model, and how much was compared."""

    wrong: list[str] = field(default_factory=list)
    """Nodes that run elsewhere."""
    other: list[str] = field(default_factory=list)
    """The session, and its graph capture."""
    nodes: int = 0
    unknown: int = 0
    folded: int = 0
    """Nodes that are there, and were said to be folded."""


def predicted(model: onnx.ModelProto, runtime: Runtime) -> ModelPlacement:
    return OnnxSession(model, lambda *_: None).placement(runtime, SessionOptions())


def compared(model: onnx.ModelProto, runtime: Runtime, ask: Any) -> Compared:
    """Asks about a model, and compares. `ask` takes a model and a configuration."""
    found, prediction = Compared(), predicted(model, runtime)
    answer = ask(model, {})
    created = bool(answer.get("session"))
    if prediction.session is not None and prediction.session is not created:
        found.other.append(f"session {created}: {answer.get('error', answer.get('crash', ''))}: {prediction.failure}")
    found.unknown += prediction.session is None
    if not created:
        return found
    placed = providers(ask(with_sentinels(model), NO_FUSION).get("placement", []))
    said = {node.path: node for node in prediction.nodes}
    for name, at in placed.items():
        node = said.get(name)
        if node is None:
            continue
        found.nodes += 1
        found.unknown += node.provider is Provider.UNKNOWN
        found.folded += node.provider is Provider.FOLDED
        if node.provider in (Provider.DML, Provider.CPU) and node.provider != at:
            found.wrong.append(f"{name} {node.op}: {at}, predicted {node.provider} ({node.why})")
    captured = bool(ask(model, {"ep.dml.enable_graph_capture": "1"}).get("session"))
    if prediction.capture is not None and (prediction.capture == "") is not captured:
        found.other.append(f"capture {captured}: {prediction.capture or 'accepted'}")
    return found


def _type_of(value: onnx.ValueInfoProto) -> tuple[int, tuple[int, ...]]:
    tensor = value.type.tensor_type
    return tensor.elem_type, tuple(dim.dim_value for dim in tensor.shape.dim)


def _is_static(value: onnx.ValueInfoProto) -> bool:
    tensor = value.type.tensor_type
    return tensor.HasField("shape") and all(dim.dim_value > 0 for dim in tensor.shape.dim) and tensor.elem_type > 0


def _rename(node: onnx.NodeProto, names: Mapping[str, str]) -> None:
    """Renames what a node, and the graphs in it, read and write."""
    node.input[:] = [names.get(name, name) for name in node.input]
    node.output[:] = [names.get(name, name) for name in node.output]
    for attribute in node.attribute:
        if attribute.HasField("g"):
            for inner in attribute.g.node:
                inner.input[:] = [names.get(name, name) if name == "cx" else name for name in inner.input]
