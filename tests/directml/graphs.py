"""Graphs: in the harness's words, at random, and what the model of memory says that they compile to."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import dmlsplit as dml
from dmlsplit import graphs
from dmlsplit.descriptors.schema import find_operator
from dmlsplit.formats.graph_json import dumps
from dmlsplit.graphs.descriptors import node_tensors, node_type
from dmlsplit.graphs.examples import End, Sketch
from dmlsplit.graphs.memory import compile_graph
from dmlsplit.graphs.operators import OPERATORS, Family
from dmlsplit.graphs.program import BufferView, CompiledGraph, Crash, Refused, Unmodelled
from dmlsplit.graphs.traits import GraphTraits
from dmlsplit.library.asking import graph_steps
from dmlsplit.library.process import Library

VECTOR: Final = 16
"""Views begin at a multiple of it; what lies between is in the shader's constants."""

View = tuple[str, int]
"""A buffer, and where in it a binding begins, rounded down to 16 bytes. Temporary memory has no place here."""


@dataclass(frozen=True)
class Compiled:
    """What CompileGraph, or the model of it, makes of a graph."""

    outcome: str
    """"00000000", another HRESULT, "refused" of the model, "crash", "unknown: " and why."""
    dispatches: tuple[tuple[View, ...], ...] = ()

    def agrees(self, said: Compiled) -> bool:
        if said.outcome == "refused":
            return self.outcome in ("80070057", "80000003")
        return self == said


def modelled(graph: graphs.GraphDesc, traits: GraphTraits) -> Compiled:
    """What the model says."""
    numbers = [node_type(node) for node in graph.nodes]
    assumed = {i: _FAMILIES[number] for i, number in enumerate(numbers) if number in _FAMILIES}
    try:
        plan = compile_graph(graph, traits, assumed or None)
    except Refused:
        return Compiled("refused")
    except Crash:
        return Compiled("crash")
    except Unmodelled as reason:
        return Compiled(f"unknown: {reason}")
    return Compiled("00000000", tuple(_views(plan, i) for i in range(len(plan.dispatches))))


def _views(plan: CompiledGraph, i: int) -> tuple[View, ...]:
    dispatch = plan.dispatches[i]
    reads = [_view(region, dispatch.binding_of(region)) for _, region in dispatch.reads]
    offset = dispatch.writes.offset if dispatch.view_offset is None else dispatch.view_offset
    return _once((*reads, _view(dispatch.writes, offset)))


def _once(views: Iterable[View]) -> tuple[View, ...]:
    """Each view once: an operator of whole tensors binds one in several places."""
    return tuple(sorted(set(views)))


def _view(region: BufferView, offset: int) -> View:
    if region.buffer.startswith("temporary"):
        return ("temporary", 0)
    return (region.buffer, offset // VECTOR * VECTOR)


def compiled(library: Library, descs: Sequence[graphs.GraphDesc]) -> list[Compiled]:
    """What the library makes of graphs whose operators it creates."""
    found = []
    for desc, answer in zip(descs, library.sessions([graph_steps(desc) for desc in descs]), strict=True):
        if answer is None:
            found.append(Compiled("crash"))
            continue
        *_, result, _, removed, recorded = answer
        if result == "00000000" and removed != result:
            raise AssertionError(f"the dispatch of {dumps(desc)} removes the device: {removed}")
        dispatches = recorded.split(";")[:-1] if result == "00000000" else []
        found.append(Compiled(result, tuple(_recorded(words, desc) for words in dispatches)))
    return found


def _recorded(words: str, desc: graphs.GraphDesc) -> tuple[View, ...]:
    views: list[View] = []
    for word in words.split(","):
        number, offset, _ = word.split("+")
        index = int(number)
        inputs, ends = len(desc.inputs), len(desc.inputs) + len(desc.outputs)
        if index == ends:
            views.append(("temporary", 0))
        else:
            name = f"input {index}" if index < inputs else f"output {index - inputs}"
            views.append((name, int(offset) // VECTOR * VECTOR))
    return _once(views)


UNARY: Final = ("ACTIVATION_RELU", "ACTIVATION_SIGMOID", "ACTIVATION_TANH", "ELEMENT_WISE_EXP", "ELEMENT_WISE_ABS")
BINARY: Final = ("ELEMENT_WISE_ADD", "ELEMENT_WISE_MULTIPLY", "ELEMENT_WISE_MULTIPLY", "ELEMENT_WISE_MAX")
ALL_UNARY: Final = tuple(row.name for row in OPERATORS if row.family in (Family.UNARY, Family.ACTIVATION))
ALL_BINARY: Final = tuple(row.name for row in OPERATORS if row.family is Family.BINARY)
WHOLE: Final = {
    "TILE": Family.WHOLE,
    "REDUCE": Family.WHOLE,
    "DEPTH_TO_SPACE": Family.WHOLE,
    "BATCH_NORMALIZATION": Family.BLOCK,
}
"""Operators of whole tensors that are one dispatch, each with its family: most others are several."""
_FAMILIES: Final = {find_operator(name).number: family for name, family in WHOLE.items()}
_SUM: Final = 10  # DML_REDUCE_FUNCTION_SUM
_MEMBERS: Final = {"Alpha": 0.5, "Beta": 0.25, "Gamma": 0.5, "Steepness": 1.0}
_CLIP: Final = {"MinMaxDataType": 1, "Min": -0.5, "Max": 0.5}

RANKS: Final = (*(2, 3, 4, 4) * 5, 5, 6, 7, 8)
"""Few above four, as in models: of those some old builds refuse many Splits, or it is unknown what they compute."""


def random_graph(seed: int, index: int, *, most_nodes: int = 10, every: bool = True) -> graphs.GraphDesc:
    """The graph with that number of a seed's endless row: every node's output is used. `every`: half of the graphs have
    any operators that the model speaks of; the others, and else all, have some that even old builds have."""
    rng = random.Random(f"{seed}:{index}")
    sketch = Sketch()
    every = every and rng.random() < 0.5
    sizes = [rng.choice((1, 1, 2, 3, 4)) for _ in range(rng.choice(RANKS))]
    sizes[rng.randrange(len(sizes))] = rng.choice((4, 8, 12, 16))
    ends: list[End] = [sketch.input(*sizes) for _ in range(rng.choice((1, 1, 2)))]
    for _ in range(rng.randint(1, most_nodes)):
        ends += _grown(sketch, ends, rng, every=every)
    used = {end for sources in sketch.sources for end in sources}
    loose = [end for end in ends if end[0] is not None and end not in used]
    split = {node for node, desc in enumerate(sketch.nodes) if isinstance(desc, dml.SplitOperatorDesc)}
    reached = {node for node, _ in used}
    outputs = []
    for end in loose:  # of a Split one output in use is enough
        if end[0] in split and end[0] in reached and rng.random() < 0.5:
            continue
        outputs.append(end)
        reached.add(end[0])
    outputs += [end for end in ends if end[0] is not None and end in used and rng.random() < 0.1]
    rng.shuffle(outputs)
    taken = {index for sources in sketch.sources for node, index in sources if node is None}
    unused = [i for i in range(len(sketch.inputs)) if i not in taken]
    for i in unused:  # a graph input that nothing uses is bound as NONE, which is not what is tested
        outputs.append(sketch("ACTIVATION_RELU", (None, i)))
    return sketch.graph(*outputs)


def _grown(sketch: Sketch, ends: Sequence[End], rng: random.Random, *, every: bool) -> list[End]:
    """The outputs of one more node; `every`: of any operator that the model speaks of, else of some."""
    source = rng.choice(ends[-6:] if rng.random() < 0.7 else ends)
    sizes = sketch.tensors[source].sizes or ()
    alike = [end for end in ends if sketch.tensors[end].sizes == sizes]
    kind = rng.choice(("split", "split", "join", "join", "slice", "unary", "unary", "binary", "binary", "identity"))
    if every and rng.random() < 0.15:
        made = _whole(sketch, source, rng)
        if made is not None:
            return [made]
    if kind in ("split", "slice"):
        axes = [d for d, size in enumerate(sizes) if size > 1]
        if axes:
            axis = rng.choice(axes)
            cut = rng.choice((sizes[axis] // 2, rng.randint(1, sizes[axis] - 1)))
            if kind == "split":
                return sketch.split(source, axis, (cut, sizes[axis] - cut))
            return [sketch.slice(source, axis, rng.randint(0, sizes[axis] - cut), cut)]
    if kind == "join" and len(sizes) > 0:
        parts = [source, *(rng.choice(alike) for _ in range(rng.choice((1, 1, 2))))]
        rng.shuffle(parts)
        return [sketch.join(parts, rng.randrange(len(sizes)))]
    if kind == "binary":
        operator = rng.choice(ALL_BINARY if every else BINARY)
        return [sketch(operator, source, rng.choice(alike))]
    if kind == "identity":
        return [sketch("ELEMENT_WISE_IDENTITY", source)]
    return [_unary(sketch, rng.choice(ALL_UNARY if every else UNARY), source, rng)]


def _unary(sketch: Sketch, operator: str, source: End, rng: random.Random) -> End:
    """An operator of one input, with the members that its struct needs."""
    if operator == "CUMULATIVE_SUMMATION":
        axis = rng.randrange(len(sketch.tensors[source].sizes or ()))
        return sketch(operator, source, Axis=axis, AxisDirection=0, HasExclusiveSum=0)
    if operator == "ELEMENT_WISE_CLIP1":
        return sketch(operator, source, **_CLIP)
    needed = [member.name for member in find_operator(operator).members if member.name in _MEMBERS]
    return sketch(operator, source, **{name: _MEMBERS[name] for name in needed})


def _whole(sketch: Sketch, source: End, rng: random.Random) -> End | None:
    """An operator of whole tensors of four dimensions; None where it takes no such tensor."""
    sizes = sketch.tensors[source].sizes or ()
    if len(sizes) != 4:
        return None
    operator = rng.choice(list(WHOLE))
    if operator == "TILE":
        return sketch(operator, source, sizes=(*sizes[:3], 2 * sizes[3]), Repeats=(1, 1, 1, 2))
    if operator == "REDUCE":
        return sketch(operator, source, sizes=(*sizes[:3], 1), Function=_SUM, Axes=(3,))
    if operator == "DEPTH_TO_SPACE":
        if sizes[1] % 4:
            return None
        return sketch(operator, source, sizes=(sizes[0], sizes[1] // 4, 2 * sizes[2], 2 * sizes[3]), BlockSize=2)
    weights = [sketch.input(1, sizes[1], 1, 1) for _ in range(4)]
    return sketch(operator, source, *weights, Spatial=1, Epsilon=1e-5)


def smaller(graph: graphs.GraphDesc) -> int:
    """What makes a failure easier to read: few nodes, few edges."""
    return sum(len(side) for node in graph.nodes for side in node_tensors(node)) + 10 * len(graph.nodes)
