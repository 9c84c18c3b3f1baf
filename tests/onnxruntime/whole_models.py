"""Random models of all operators in the table, and whether what a version does with them is what is predicted."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, TypeAlias

import numpy as np
import onnx
from onnx import helper, numpy_helper, shape_inference

from dmlsplit.formats.onnx.protobuf import all_nodes
from dmlsplit.library.models import providers
from dmlsplit.onnxruntime.onnx_session import OnnxSessions
from dmlsplit.onnxruntime.operators import FAILING, Cell, find_operator
from dmlsplit.targets.runtime_versions import Runtime
from dmlsplit.targets.session_options import SessionOptions
from dmlsplit.verdicts.model_placements import NodePlacement, Provider, SessionAnswer
from tests.onnxruntime.operator_models import RANKED, SAME, Key, built, given, ranked, schemas, types_of
from tests.onnxruntime.record_operators import NO_FUSION, NO_KERNEL, error_of

OLDEST, NEWEST = 11, 23
NODES = (3, 20)
INNER_NODES = (1, 4)
MOST_DEPTH = 2
FAILS = 0.004
"""How often a node is taken that is known to fail the session."""
READ = 0.8
"""How often a node reads what another computes, where that has its type and sizes."""
SHOWN = 0.2
"""How often what others read is an output of the model, too."""
USED = 0.95
"""How often what is not read in a graph inside a node is an output of it."""
RANKED_SHARE, OPEN_SHARE, GROUP_SHARE = 0.15, 0.4, 0.1
SENTINELS = {"on the CPU": ("Identity", 8), "on DirectML": ("Relu", 1)}
FLOAT, INT64, BOOL = 1, 7, 9
SHAPE = (2, 3, 4, 5)
UNARY = ("Relu", "Neg", "Abs", "Sigmoid", "Tanh", "Exp", "Erf", "Identity", "Round", "Softplus")
SCALARS = (*SAME.split()[:9], "Add", "Mul", "Sub", "Max", "Cast", "Where", "Reshape", "Unsqueeze")
"""Operators that take tensors of rank 0."""
LOCAL = "local"
BROKEN = "is not a graph input, initializer, or output of a previous node"
"""What ONNX Runtime says of a model that it broke itself: those here are checked."""

Place: TypeAlias = tuple[int, tuple[int, ...]]
Ask: TypeAlias = Callable[[onnx.ModelProto, Mapping[str, str], bool], dict[str, Any]]
"""Takes a model, a configuration, and whether the session has DirectML."""


@dataclass
class Maker:
    """A graph in the making; values by type and shape."""

    rng: random.Random
    opset: int
    runtime: Runtime
    numbers: Iterator[int] = field(default_factory=count)
    outer: Maker | None = None
    graph: onnx.GraphProto = field(default_factory=lambda: onnx.GraphProto(name="g"))
    values: dict[Place, list[str]] = field(default_factory=dict)
    shown: dict[str, onnx.ValueInfoProto] = field(default_factory=dict)
    """What nodes compute, in order."""
    functions: list[onnx.FunctionProto] = field(default_factory=list)

    @property
    def depth(self) -> int:
        return 0 if self.outer is None else self.outer.depth + 1

    @property
    def root(self) -> Maker:
        return self if self.outer is None else self.outer.root

    def known(self, place: Place) -> list[str]:
        """The values of a type and shape that can be read here."""
        around = [] if self.outer is None else self.outer.known(place)
        return around + self.values.get(place, [])

    def key(self) -> Key | None:
        """A random operator, mostly with usual types, that a session can be made with."""
        rng = self.rng
        domain, op = rng.choice(sorted({(domain, op) for domain, op, _ in schemas()}))
        versions = [v for d, o, v in schemas() if (d, o) == (domain, op) and (domain or v <= self.opset)]
        if not versions or given(domain, op, max(versions)) is None:
            return None
        name = domain, op, max(versions)
        types = list(types_of(*name))
        operator = find_operator(*name, self.runtime)
        if not types or operator is None:
            return None
        chosen, variant = rng.choice(types), ""
        if not domain and op in RANKED and rng.random() < RANKED_SHARE * 4:
            rank, most = rng.randint(0, 9), operator.most_rank or 8
            fits = ranked(op, rank) is not None if rank else op in SCALARS
            if fits and (rank <= most or rng.random() < FAILS):
                chosen, variant = types[0], f"rank{rank}"
        cell = operator.ask(tuple([chosen.get(each, "") for each in operator.row["parameters"]]), self.opset)
        if cell is None or cell is Cell.FOLDED or (cell in FAILING and rng.random() > FAILS):
            return None
        return Key(*name, tuple(sorted(chosen.items())), variant)

    def add(self, key: Key) -> None:
        """Adds a node, which reads what others compute where that fits."""
        try:
            made = built(key)
            onnx.checker.check_model(made)
            made = shape_inference.infer_shapes(made, strict_mode=True)
        except (onnx.checker.ValidationError, shape_inference.InferenceError, ValueError, KeyError, IndexError):
            return
        number = next(self.numbers)
        prefix = f"v{number}/"
        renamed = {value.name: prefix + value.name for value in (*made.graph.input, *made.graph.initializer)}
        for value in made.graph.input:
            known = self.known(_place(value))
            if known and (self.rng.random() < READ or self.outer is not None):
                renamed[value.name] = self.rng.choice(known)
            else:
                value.name = renamed[value.name]
                self.root.graph.input.append(value)
        for tensor in made.graph.initializer:
            tensor.name = renamed[tensor.name]
            self.graph.initializer.append(tensor)
        (node,) = made.graph.node
        node.name = f"k{number}"
        renamed |= {name: prefix + name for name in node.output}
        _rename(node, renamed)
        self.graph.node.append(node)
        for value in made.graph.output:
            value.name = prefix + value.name
            self._made(value)

    def _made(self, value: onnx.ValueInfoProto) -> None:
        self.shown[value.name] = value
        if value.type.WhichOneof("value") == "tensor_type" and _is_static(value):
            self.values.setdefault(_place(value), []).append(value.name)

    def add_sizes(self) -> None:
        """Computes with the sizes of a tensor, and reshapes by them."""
        known, rng = self.known((FLOAT, SHAPE)), self.rng
        if not known:
            return
        shape = self._node("Shape", [rng.choice(known)])
        for _ in range(rng.randint(0, 3)):
            op = rng.choice(("Mul", "Div", "Cast", "Abs"))
            if op in ("Cast", "Abs"):
                shape = self._node(op, [shape], **({"to": INT64} if op == "Cast" else {}))
            else:
                shape = self._node(op, [shape, self._constant([1] * rng.choice((1, 4, 4, 4)))])
        op = rng.choice(("Reshape", "Expand", "ConstantOfShape", "Concat"))
        inputs = {"ConstantOfShape": [shape], "Concat": [shape, shape]}.get(op, [rng.choice(known), shape])
        result = self._node(op, inputs, **({"axis": 0} if op == "Concat" else {}))
        self._made(_value(result, INT64 if op == "Concat" else FLOAT, None))

    def add_if(self) -> None:
        """An If of a condition that is an input, a constant, or computed."""
        rng, source = self.rng, self._float()
        condition = self._input(BOOL, ())
        if rng.random() < 0.4:
            condition = self._tensor(numpy_helper.from_array(np.array(rng.random() < 0.5)))
        elif rng.random() < 0.3:
            condition = self._node("Not", [condition])
        first, second = [self._body([], source) for _ in range(2)]
        for one, other in ((first, second), (second, first)):
            for value in one.unread():
                zero = onnx.TensorProto(data_type=value.type.tensor_type.elem_type, dims=[0])
                one.graph.output.append(value)
                other.graph.output.append(_value(other._node("Identity", [other._tensor(zero)]), zero.data_type, None))
        self._group("If", [condition], first.graph, then_branch=first.graph, else_branch=second.graph)

    def add_loop(self) -> None:
        """A Loop over one tensor."""
        trips = (
            self._tensor(numpy_helper.from_array(np.array(2))) if self.rng.random() < 0.5 else self._input(INT64, ())
        )
        goes_on = self._tensor(numpy_helper.from_array(np.array(True)))
        number = next(self.numbers)
        names = [f"l{number}/{name}" for name in ("trip", "on", "state")]
        inputs = [_value(names[0], INT64, ()), _value(names[1], BOOL, ()), _value(names[2], FLOAT, SHAPE)]
        inner = self._body(inputs, names[2], copied=names[1])
        inner.graph.output.extend(inner.unread())
        self._group("Loop", [trips, goes_on, self._float()], inner.graph, body=inner.graph)

    def add_scan(self) -> None:
        """A Scan over the first axis of one tensor."""
        name = f"l{next(self.numbers)}/slice"
        inner = self._body([_value(name, FLOAT, SHAPE[1:])], name, shape=SHAPE[1:])
        inner.graph.output.extend(inner.unread())
        self._group("Scan", [self._float()], inner.graph, body=inner.graph, num_scan_inputs=1)

    def add_function(self) -> None:
        """Calls a new function of the model, once or twice."""
        inner = Maker(self.rng, self.opset, self.runtime, self.numbers)
        last = "x"
        for _ in range(self.rng.randint(*INNER_NODES)):
            op = self.rng.choice((*UNARY, "Mul", "Add"))
            last = inner._node(op, [last, "x"] if op in ("Mul", "Add") else [last])
        name, imports = f"F{next(self.numbers)}", [helper.make_opsetid("", self.opset)]
        function = helper.make_function(LOCAL, name, ["x"], [last], list(inner.graph.node), imports)
        self.root.functions.append(function)
        for _ in range(self.rng.randint(1, 2)):
            self._made(_value(self._node(name, [self._float()], domain=LOCAL), FLOAT, SHAPE))

    def _group(self, op: str, inputs: list[str], inside: onnx.GraphProto, **attributes: Any) -> None:
        """Adds a node with graphs inside; its first output is like the tensor that it reads."""
        first = self._node(op, inputs, **attributes)
        self._made(_value(first, FLOAT, SHAPE))
        for value in inside.output[2 if op == "Loop" else 1 :]:
            more = _value(f"v{next(self.numbers)}", value.type.tensor_type.elem_type, None)
            self.graph.node[-1].output.append(more.name)
            self._made(more)

    def _body(
        self,
        inputs: Sequence[onnx.ValueInfoProto],
        source: str,
        shape: tuple[int, ...] = SHAPE,
        copied: str = "",
    ) -> Maker:
        """A graph inside a node, that computes from a tensor one like it; `copied` is an output, too."""
        inner = Maker(self.rng, self.opset, self.runtime, self.numbers, self)
        inner.graph.input.extend(inputs)
        for value in inputs:
            inner._made(value)
        inner.grow(self.rng.randint(*INNER_NODES))
        last = inner._node(self.rng.choice(UNARY), [self.rng.choice([source, *inner.values.get((FLOAT, shape), [])])])
        if copied:
            inner.graph.output.append(_value(inner._node("Identity", [copied]), BOOL, ()))
        inner.graph.output.append(_value(last, FLOAT, shape))
        return inner

    def unread(self) -> list[onnx.ValueInfoProto]:
        """The tensors that no node reads; none of a few graphs, whose nodes stay without a use."""
        read = {name for node in self.graph.node for name in _reads(node)} | {v.name for v in self.graph.input}
        tensors = [v for v in self.shown.values() if v.type.tensor_type.elem_type > 0 and v.name not in read]
        return tensors if self.rng.random() < USED else []

    def _float(self) -> str:
        known = self.known((FLOAT, SHAPE))
        return self.rng.choice(known) if known and self.rng.random() < READ else self._input(FLOAT, SHAPE)

    def _input(self, data_type: int, shape: tuple[int, ...]) -> str:
        name = f"v{next(self.numbers)}/x"
        self.root.graph.input.append(_value(name, data_type, shape))
        return name

    def _node(self, op: str, inputs: list[str], **attributes: Any) -> str:
        """Adds a node; the name of its output."""
        number = next(self.numbers)
        self.graph.node.append(helper.make_node(op, inputs, [f"v{number}"], name=f"k{number}", **attributes))
        return f"v{number}"

    def _tensor(self, tensor: onnx.TensorProto) -> str:
        tensor.name = f"v{next(self.numbers)}/c"
        self.graph.initializer.append(tensor)
        return tensor.name

    def _constant(self, values: list[int]) -> str:
        return self._tensor(numpy_helper.from_array(np.array(values, np.int64)))

    def grow(self, nodes: int) -> None:
        """Adds nodes until there are so many."""
        groups = (self.add_if, self.add_loop, self.add_scan, self.add_function)
        for _ in range(20 * nodes):
            if len(self.graph.node) >= nodes:
                return
            chance = self.rng.random()
            if chance < GROUP_SHARE and self.depth < MOST_DEPTH:
                self.rng.choice(groups)()
            elif chance < GROUP_SHARE + 0.15:
                self.add_sizes()
            elif (key := self.key()) is not None:
                self.add(key)

    def model(self) -> onnx.ModelProto:
        graph, rng = self.graph, self.rng
        read = {name for node in graph.node for name in _reads(node)}
        shown = [value for name, value in self.shown.items() if name not in read or rng.random() < SHOWN]
        graph.output.extend(shown)
        if rng.random() < OPEN_SHARE:
            for value in graph.input:
                dims = value.type.tensor_type.shape.dim
                for i, dim in enumerate(dims[: rng.choice((1, 1, 2, 9))] if rng.random() < 0.7 else ()):
                    dim.dim_param = f"{'NCHW'[i % 4]}{dim.dim_value}"
        imports = [helper.make_opsetid("", self.opset)]
        domains = {node.domain for node in all_nodes(graph.node)} - {""}
        imports += [helper.make_opsetid(domain, 1) for domain in sorted(domains)]
        return onnx.ModelProto(ir_version=8, graph=graph, opset_import=imports, functions=self.functions)


def random_model(seed: int, index: int, runtime: Runtime) -> onnx.ModelProto:
    """The same valid model for the same seed and index of one version."""
    rng = random.Random(f"{seed}/{index}")
    while True:
        maker = Maker(rng, rng.randint(OLDEST, min(NEWEST, runtime.newest_opset)), runtime)
        maker.grow(rng.randint(*NODES))
        model = maker.model()
        try:
            shape_inference.infer_shapes(model, strict_mode=True)
        except (shape_inference.InferenceError, ValueError):
            continue
        return model


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
    """The disagreements about models, and how much was compared."""

    wrong: list[str] = field(default_factory=list)
    """Nodes that run elsewhere, or that were said to be folded."""
    other: list[str] = field(default_factory=list)
    """The session, and its graph capture."""
    models: int = 0
    """Models that ONNX Runtime takes for valid."""
    nodes: int = 0
    unknown: list[str] = field(default_factory=list)
    copied: int = 0
    """Models whose copies were seen."""
    copies: list[str] = field(default_factory=list)
    """Of these models, those with other copies than predicted."""


def predicted(model: onnx.ModelProto, runtime: Runtime) -> SessionAnswer:
    return OnnxSessions(model, lambda *_: None).of(runtime, SessionOptions()).placement


def compare(model: onnx.ModelProto, runtime: Runtime, ask: Ask, found: Compared) -> None:
    """Asks about a model, and notes how the answer differs from what is predicted."""
    prediction, answer = predicted(model, runtime), ask(model, {}, True)
    created = bool(answer.get("session"))
    if not created and prediction.created is not False:
        error = error_of(ask(model, {}, False))
        if error is not None and not NO_KERNEL.search(error) and BROKEN not in error:
            return  # it is not valid
    found.models += 1
    if prediction.created is not created:
        kind = found.unknown if prediction.created is None else found.other
        kind.append(f"session {created}: {error_of(answer)}: {prediction.failure}")
    if not created:
        return
    said: dict[str, list[NodePlacement]] = {}
    for node in prediction.nodes.values():
        said.setdefault(_named(node.path), []).append(node)
    lines = ask(with_sentinels(model), NO_FUSION, True).get("placement", [])
    if lines:
        copies = tuple([sum(f"{name} (" in line for line in lines) for name in ("MemcpyToHost", "MemcpyFromHost")])
        found.copied += 1
        if prediction.copies != copies:
            found.copies.append(f"copies {copies}, predicted {prediction.copies}")
    for name, at in providers(lines).items():
        places = {node.provider for node in said.get(_named(name), ())}
        if len(places) != 1 or Provider.BOTH in places:
            continue  # made by ONNX Runtime; or by calls of one function
        (place,), (node, *_) = places, said[_named(name)]
        found.nodes += 1
        if place != at:
            kind = found.unknown if place is Provider.UNKNOWN else found.wrong
            kind.append(f"{name} {node.op}: {at}, predicted {place} ({node.why})")
    captured = bool(ask(model, {"ep.dml.enable_graph_capture": "1"}, True).get("session"))
    if prediction.capture is None:
        found.unknown.append(f"capture {captured}")
    elif prediction.capture is not captured:
        found.other.append(f"capture {captured}: {prediction.capture_prevented_by or 'accepted'}")


def _named(path: str) -> str:
    """The end of the name that ONNX Runtime gives a node of a function or branch that it inlines: the model's."""
    found = re.search(r"k\d+$", path)
    return path if found is None else found[0]


def _value(name: str, data_type: int, shape: Sequence[int] | None) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, data_type, shape)


def _place(value: onnx.ValueInfoProto) -> Place:
    tensor = value.type.tensor_type
    return tensor.elem_type, tuple(dim.dim_value for dim in tensor.shape.dim)


def _is_static(value: onnx.ValueInfoProto) -> bool:
    tensor = value.type.tensor_type
    return tensor.HasField("shape") and all(dim.dim_value > 0 for dim in tensor.shape.dim) and tensor.elem_type > 0


def _reads(node: onnx.NodeProto) -> Iterator[str]:
    """The names that a node, and the graphs in it, read."""
    for each in all_nodes([node]):
        yield from each.input


def _rename(node: onnx.NodeProto, names: Mapping[str, str]) -> None:
    """Renames what a node reads and writes, and what the graphs in it read from outside."""
    for each in all_nodes([node]):
        each.input[:] = [names.get(name, name) if each is node or name == "cx" else name for name in each.input]
    node.output[:] = [names.get(name, name) for name in node.output]
