"""ONNX Runtime's graph optimization, as far as it matters for a Split or Concat nearby.

From level 1 on nodes that do nothing are removed, equal ones merged, and what is constant is put into a convolution's
weights; from level 2 on x * Sigmoid(x) becomes one operator, and activations become part of what feeds them. Source:
the transformers of ONNX Runtime (identity_elimination.cc, noop_elimination.cc, common_subexpression_elimination.cc,
conv_*_fusion.cc, relu_clip_fusion.cc, quick_gelu_fusion.cc, DmlOperatorFusion); observed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import onnx

from dmlsplit.descriptors.dims import is_static
from dmlsplit.formats.onnx.protobuf import domain_of
from dmlsplit.formats.onnx.tensors import Array
from dmlsplit.formats.onnx.walking import depth_first
from dmlsplit.onnxruntime.lowered import FUSED_ADD
from dmlsplit.onnxruntime.neighbours import ABSORBS, CPU_INPUTS, IN_PATTERNS, KEPT, STAYING
from dmlsplit.onnxruntime.session_graph import SessionGraph

_NEUTRAL: Final[Mapping[str, tuple[float, tuple[int, ...]]]] = {
    "Mul": (1, (0, 1)),
    "Add": (0, (0, 1)),
    "Sub": (0, (1,)),
    "Div": (1, (1,)),
}
"""The constant that makes an operator do nothing, and as which of its inputs."""

_CORES: Final = frozenset({"Erf", "ReduceMean", "Softmax"})
"""Operators in the middle of what ONNX Runtime makes one operator of."""
_REACH: Final = 3
"""How many nodes away the others are."""

SILU: Final = "QuickGelu"
"""x * Sigmoid(x) as one node of ONNX Runtime's; two operators of DirectML's, as before."""


_REACH_OF_WEIGHTS: Final = 6
"""How many nodes away weights may be of an operator that optimization looks for with them."""
_ALONE: Final = STAYING | KEPT | {"BatchNormalization", "Clip", "Gemm", "If", FUSED_ADD, SILU}
"""Operators that are left alone beside one another, but for what is followed here."""


@dataclass(eq=False, slots=True)
class Op:
    """A node that optimization leaves."""

    index: int
    """Of the node in the graph; of several that were made one, the last."""
    op_type: str
    """"" for a domain other than the default one."""
    inputs: list[str]
    outputs: list[str]
    node: onnx.NodeProto
    number: tuple[int, int]
    """Where ONNX Runtime has the node: those that optimization makes come last."""
    absorbed: list[int] = field(default_factory=list)
    """The nodes that became part of it."""
    unwritten: str = ""
    """The output of the graph that nothing computes any more, since an activation was put into the node."""
    first: int | None = None
    """Of SILU: the node of the Sigmoid."""


class Optimized:
    """The nodes of a graph without graphs in them, as optimization leaves them; `ops` in the order of the file."""

    def __init__(self, graph: SessionGraph) -> None:
        self.graph = graph
        self._made = 0
        self._gone: set[Op] = set()
        self._undone: set[Op] = set()
        """Transposes that another one undoes."""
        self.ops = [
            Op(
                index,
                node.op_type if domain_of(node) == "" else "",
                [graph.source(name) for name in node.input],
                list(node.output),
                node,
                graph.number(index),
            )
            for index, node in graph.alive
            if not graph.removed(index)
        ]
        if graph.options.optimization >= 1:
            self._remove()
            self.producers, self.readers = producers_of(self.ops), readers_of(self.ops)
            self._merge_constants()
        if graph.options.optimization >= 2:
            self._make_silu()
            self._absorb()
        self.ops = [op for op in self.ops if op not in self._gone]

    # Questions of the passes.

    def _only_reader(self, op: Op) -> Op | None:
        """The node that alone reads what `op` computes, where it is no output of the graph."""
        found = self.readers.get(op.outputs[0], ())
        if len(found) != 1 or op.outputs[0] in self.graph.outputs:
            return None
        (reader,) = found
        return reader if reader.inputs.count(op.outputs[0]) == 1 else None

    # Level 1.

    def _remove(self) -> None:
        """Nodes that do nothing; what is equal to another is gone already."""
        outputs = self.graph.outputs
        producers, readers = producers_of(self.ops), readers_of(self.ops)
        alias: dict[str, str] = {}
        kept: dict[Op, None] = {}
        renamed: dict[Op, dict[str, str]] = {}
        for op in depth_first(
            reversed(self.ops), lambda op: [producers[n] for n in reversed(op.inputs) if n in producers]
        ):
            op.inputs = [alias.get(name, name) for name in op.inputs]
            bound = [name for name in op.outputs if name in outputs]
            if self._does_nothing(op, producers):
                source = op.inputs[0]
                if not bound:
                    alias[op.outputs[0]] = source
                    continue
                before = producers.get(source)
                alone = len(readers.get(source, ())) == 1 and source not in outputs
                if op.op_type == "Identity" and before is not None and before in kept and alone:
                    renamed.setdefault(before, {})[source] = op.outputs[0]
                    producers[op.outputs[0]] = before
                    continue
            kept[op] = None
        for op, names in renamed.items():
            op.outputs = [names.get(name, name) for name in op.outputs]
        read = {name for op in kept for name in op.inputs} | outputs
        left = [op for op in kept if op not in self._undone or not read.isdisjoint(op.outputs)]
        self.ops = sorted(left, key=lambda op: op.index)

    def _does_nothing(self, op: Op, producers: Mapping[str, Op]) -> bool:
        if op.op_type == "Identity":
            return True
        if op.op_type == "Dropout":
            training = constant(self.graph, op.inputs[2]) if len(op.inputs) > 2 else np.zeros(1)
            mask = len(op.outputs) > 1 and op.outputs[1] != ""
            return not mask and training is not None and not training.any()
        if op.op_type == "Expand":
            shapes = [self.graph.shape(name) for name in (op.inputs[0], op.outputs[0])]
            return is_static(shapes[0]) and shapes[0] == shapes[1] and self.graph.is_constant(op.inputs[1])
        if op.op_type == "Cast":
            types = [self.graph.scope.type_of(name)[0] for name in (op.inputs[0], op.outputs[0])]
            return types[0] is not None and types[0] == types[1]
        if op.op_type == "Transpose":
            before = producers.get(op.inputs[0])
            if before is None or before.op_type != "Transpose":
                return False
            rank = len(self.graph.shape(op.outputs[0]) or ())
            first, second = permutation(before.node, rank), permutation(op.node, rank)
            if len(first) != len(second) or [first[i] for i in second] != list(range(len(first))):
                return False
            op.inputs[0] = before.inputs[0]
            self._undone.add(before)
            return True
        place = neutral(self.graph, op)
        if place is not None:
            op.inputs.insert(0, op.inputs.pop(1 - place))
        return place is not None

    def _merge_constants(self) -> None:
        """BatchNormalization, Mul and Add of constants become part of a Conv; a Relu becomes part of a Clip."""
        for op in self.ops:
            if op in self._gone:
                continue
            if op.op_type == "Conv" and all(map(self.graph.is_constant, op.inputs[1:])):
                while (after := self._only_reader(op)) is not None and self._fits_weights(op, after):
                    self._join(op, after)
            elif op.op_type == "Relu":
                after = self._only_reader(op)
                if after is not None and after.op_type == "Clip" and after.inputs[0] == op.outputs[0]:
                    limits = [name for name in after.inputs[1:] if name]
                    if self.graph.scope.origin.opset < 11 or all(map(self.graph.is_constant, limits)):
                        after.inputs[0] = op.inputs[0]
                        after.absorbed.append(op.index)
                        self._replace_reader(op, after)

    def _fits_weights(self, op: Op, after: Op) -> bool:
        if after.op_type == "BatchNormalization":
            return after.inputs[0] == op.outputs[0] and all(map(self.graph.is_constant, after.inputs[1:]))
        if after.op_type not in ("Mul", "Add") or len(after.inputs) != 2:
            return False
        other = next((name for name in after.inputs if name != op.outputs[0]), "")
        shape, whole = self.graph.shape(other), self.graph.shape(op.outputs[0])
        if not other or not self.graph.is_constant(other) or shape is None or whole is None:
            return False
        if after.op_type == "Mul" and not shape:
            return True
        padded = (1,) * (len(whole) - len(shape)) + tuple(shape)
        channels = [size for i, size in enumerate(padded) if size != 1]
        return len(shape) >= len(whole) - 1 and (channels == [] or (channels == [padded[1]] == [whole[1]]))

    def _join(self, op: Op, after: Op) -> None:
        """`after` becomes part of `op`."""
        op.absorbed += [op.index, *after.absorbed]
        op.outputs, op.index = after.outputs, after.index
        op.number = self._new()
        self.producers.update(dict.fromkeys(op.outputs, op))
        self._gone.add(after)

    def _replace_reader(self, gone: Op, op: Op) -> None:
        """`op` reads what `gone` did, which is no more."""
        for name in gone.inputs:
            found = self.readers.get(name, {})
            if gone in found:
                del found[gone]
                found[op] = None
        self._gone.add(gone)

    def _new(self) -> tuple[int, int]:
        self._made += 1
        return 2, self._made

    # Level 2.

    def _make_silu(self) -> None:
        for op in self.ops:
            if op.op_type != "Mul" or len(op.inputs) != 2 or op in self._gone:
                continue
            for k in (0, 1):
                sigmoid, other = self.producers.get(op.inputs[k]), op.inputs[1 - k]
                if sigmoid is None or sigmoid.op_type != "Sigmoid" or sigmoid.inputs != [other]:
                    continue
                if self._only_reader(sigmoid) is not op:
                    continue
                op.op_type, op.inputs, op.first = SILU, [other], sigmoid.index
                op.absorbed.append(sigmoid.index)
                op.number = self._new()
                self._replace_reader(sigmoid, op)
                break

    def _absorb(self) -> None:
        """Activations become part of what feeds them: outputs of the graph between them are not counted."""
        for op in self.ops:
            wanted = ABSORBS.get(op.op_type)
            if wanted is None or op in self._gone or (op.op_type == "Sum" and len(op.inputs) != 2):
                continue
            found = self.readers.get(op.outputs[0], {})
            reader = next(iter(found), None)
            if reader is None or len(found) > 1 or reader.op_type not in wanted:
                continue
            if op.outputs[0] in self.graph.outputs:
                op.unwritten = op.outputs[0]
            self._join(op, reader)
            if op.op_type in ("Add", "Sum"):
                op.op_type = FUSED_ADD


def producers_of(ops: Iterable[Op]) -> dict[str, Op]:
    """The nodes by the names that they write."""
    return {name: op for op in ops for name in op.outputs if name}


def readers_of(ops: Iterable[Op]) -> dict[str, dict[Op, None]]:
    """The nodes by the names that they read, in order, each once."""
    found: dict[str, dict[Op, None]] = {}
    for op in ops:
        for name in filter(None, op.inputs):
            found.setdefault(name, {})[op] = None
    return found


def followed(graph: SessionGraph, ops: Sequence[Op]) -> set[Op]:
    """The nodes that ONNX Runtime certainly has as they are in `ops`: optimization that is not followed here makes none
    of them part of another."""
    if graph.options.optimization < 1:
        return set(ops)
    producers, readers = producers_of(ops), readers_of(ops)
    patterns = _around({op for op in ops if op.op_type in IN_PATTERNS}, producers, readers, _REACH_OF_WEIGHTS)
    found = set()
    for op in ops:
        if op.op_type in KEPT:
            found.add(op)
            continue
        on_cpu = CPU_INPUTS.get(op.op_type, ())
        read = [name for i, name in enumerate(op.inputs) if name and i not in on_cpu]
        if op in patterns and any(map(graph.is_constant, read)):
            continue
        beside = {op.op_type, *(producers[name].op_type for name in op.inputs if name in producers)}
        beside.update(reader.op_type for name in op.outputs for reader in readers.get(name, ()))
        if beside <= _ALONE:
            found.add(op)
    return found


def constant(graph: SessionGraph, name: str) -> Array | None:
    """The elements of a small constant; None where they are not known."""
    return graph.scope.elements(name) if graph.is_constant(name) else None


def neutral(graph: SessionGraph, op: Op) -> int | None:
    """Which input of Mul, Add, Sub or Div is the constant that changes nothing; None where there is none."""
    if op.op_type not in _NEUTRAL or len(op.inputs) != 2:
        return None
    value, places = _NEUTRAL[op.op_type]
    for place in places:
        array = constant(graph, op.inputs[place])
        if array is None or array.size != 1 or array.ravel()[0] != value:
            continue
        if graph.shape(op.inputs[1 - place]) == graph.shape(op.outputs[0]):
            return place
    return None


def fusible(group: Sequence[Op]) -> set[Op]:
    """Nodes that ONNX Runtime may have made one operator of: a GELU around an Erf, a normalization around a mean."""
    cores = {op for op in group if op.op_type in _CORES}
    return _around(cores, producers_of(group), readers_of(group), _REACH)


def _around(found: set[Op], producers: Mapping[str, Op], readers: Mapping[str, Iterable[Op]], reach: int) -> set[Op]:
    """Nodes, and those that are at most `reach` nodes away from one of them."""
    found = set(found)
    new = found
    for _ in range(reach):
        names = {name for op in new for name in (*op.inputs, *op.outputs)}
        near = {op for name in names for op in readers.get(name, ())}
        near.update(producers[name] for name in names if name in producers)
        new = near - found
        found |= new
    return found


def permutation(node: onnx.NodeProto, rank: int) -> Sequence[int]:
    """Of a Transpose."""
    found = next((tuple(a.ints) for a in node.attribute if a.name == "perm"), tuple(range(rank - 1, -1, -1)))
    return found if sorted(found) == list(range(len(found))) else ()
