"""CompileGraph of the emulated device: the report, and the shaders that a dispatch runs on the bound memory.

"release" results: the release's dispatches on the memory that CompileGraph assigns to them, right or wrong. "right"
results: each node by itself, with separate memory for every tensor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from graphlib import TopologicalSorter
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import numpy as np

from dmlsplit.descriptors.any_operator import AnyOperatorDesc
from dmlsplit.descriptors.descs import SplitOperatorDesc, TensorDesc
from dmlsplit.descriptors.enums import TEMPORARY_BUFFER_ALIGNMENT, TensorFlags
from dmlsplit.descriptors.layout import packed_strides
from dmlsplit.descriptors.location import Location
from dmlsplit.device.arithmetic import Function, applied, copied, function_of, swish
from dmlsplit.graphs import GraphDesc, GraphReport, evaluate_graph
from dmlsplit.graphs.descriptors import described, node_tensors
from dmlsplit.graphs.memory import compile_graph
from dmlsplit.graphs.operators import BY_NUMBER, Family
from dmlsplit.graphs.program import BufferView, CompiledGraph, Unmodelled, numbers_of
from dmlsplit.graphs.traits import traits_of
from dmlsplit.native.binding import NUMPY_DTYPE
from dmlsplit.rules.graph import GRAPH_RULES
from dmlsplit.targets.target import Target

if TYPE_CHECKING:
    import numpy.typing as npt

Memory: TypeAlias = "Mapping[str, npt.NDArray[np.uint8]]"
"""Maps each buffer's name ("input 0", "output 0", "temporary 3") to its bytes."""
Run: TypeAlias = Callable[[], None]

_FLOATS: Final[Mapping[int, np.dtype[Any]]] = {4: np.dtype(np.float32), 2: np.dtype(np.float16)}
"""Maps an element's size in bytes, by which the memory model describes elements, to its float type."""


class StridedView(NamedTuple):
    """Elements in a buffer; offset and steps in bytes."""

    buffer: str
    offset: int
    sizes: tuple[int, ...]
    steps: tuple[int, ...]
    dtype: np.dtype[Any]

    def of(self, memory: Memory) -> npt.NDArray[Any]:
        return np.ndarray(self.sizes, self.dtype, memory[self.buffer], self.offset, self.steps)

    def part(self, sizes: Sequence[int], offsets: Sequence[int], strides: Sequence[int]) -> StridedView:
        """Returns the view with these sizes that starts at index `offsets` of this one (one number of elements for each
        dimension) and takes every `strides`-th element in each dimension."""
        offset = self.offset + sum(a * b for a, b in zip(offsets, self.steps, strict=True))
        steps = tuple(a * b for a, b in zip(self.steps, strides, strict=True))
        return self._replace(offset=offset, sizes=tuple(sizes), steps=steps)


class Shader(NamedTuple):
    """One dispatch of the GPU: applies a function to the views that it reads, and writes the result."""

    function: Function
    reads: tuple[StridedView, ...]
    writes: StridedView


class Shaders(NamedTuple):
    """All shaders of a graph, in order, and the size of each buffer that is neither an input nor an output."""

    shaders: tuple[Shader, ...]
    temporaries: Mapping[str, int]

    @property
    def temporary_size(self) -> int:
        return sum(map(_rounded, self.temporaries.values()))

    def run(self, bound: Memory, temporary: npt.NDArray[np.uint8]) -> Run:
        """Returns a function that runs the shaders on bound memory, by the names of buffers; `temporary` has at least
        `temporary_size` bytes."""
        memory, place = dict(bound), 0
        for name, size in self.temporaries.items():
            memory[name] = temporary[place : place + size]
            place += _rounded(size)
        calls = [(s.function, [view.of(memory) for view in s.reads], s.writes.of(memory)) for s in self.shaders]

        def run() -> None:
            for function, inputs, output in calls:
                output[...] = applied(function, inputs, output.dtype)

        return run


def _rounded(size: int) -> int:
    return -(-size // TEMPORARY_BUFFER_ALIGNMENT) * TEMPORARY_BUFFER_ALIGNMENT


def as_released(graph: GraphDesc, compiled: CompiledGraph) -> Shaders:
    """Returns a build's dispatches for the graph. Raises Unmodelled if they are wrong in an unknown way."""
    shaders: list[Shader] = []
    temporaries: dict[str, int] = {}
    for dispatch in compiled.dispatches:
        if dispatch.wrong is not None and dispatch.wrong.fault.rule == "graph/five-dimensions":
            raise Unmodelled("which elements an incorrect Split of five dimensions copies was not observed")
        node = None if dispatch.node is None else graph.nodes[dispatch.node]
        function = copied
        if dispatch.name == "SWISH":
            function = swish
        elif not dispatch.copies and isinstance(node, AnyOperatorDesc):
            function = function_of(node)
        reads = tuple([_view(region) for _, region in dispatch.reads])
        shaders.append(Shader(function, reads, _view(dispatch.writes)))
        for view in (*dispatch.reads, (None, dispatch.writes)):
            region = view[1]
            if region.buffer.startswith("temporary"):
                temporaries[region.buffer] = max(temporaries.get(region.buffer, 0), region.end)
    return Shaders(tuple(shaders), temporaries)


def _view(region: BufferView) -> StridedView:
    return StridedView(region.buffer, region.offset, region.sizes, region.steps, _FLOATS[region.element_bytes])


def as_it_should_be(graph: GraphDesc) -> Shaders:
    """Returns one shader for each node, which together compute the right results. Raises Unmodelled if a node's
    arithmetic is not emulated. The graph must have no faults."""
    sources: list[dict[int, str]] = [{} for _ in graph.nodes]
    needs: dict[int, set[int]] = {i: set() for i in range(len(graph.nodes))}
    for edge in graph.input_edges:
        sources[edge.to_node_index][edge.to_node_input_index] = f"input {edge.graph_input_index}"
    for wire in graph.intermediate_edges:
        name = f"temporary {wire.from_node_index}.{wire.from_node_output_index}"
        sources[wire.to_node_index][wire.to_node_input_index] = name
        needs[wire.to_node_index].add(wire.from_node_index)
    shaders: list[Shader] = []
    temporaries: dict[str, int] = {}
    for i in TopologicalSorter(needs).static_order():
        inputs, outputs = node_tensors(graph.nodes[i])
        reads = [_whole(sources[i][k], tensor) for k, tensor in enumerate(inputs)]
        writes = [_whole(f"temporary {i}.{k}", tensor) for k, tensor in enumerate(outputs)]
        shaders += _of_node(graph, i, reads, writes)
        for view, tensor in zip(writes, outputs, strict=True):
            temporaries[view.buffer] = _bytes(tensor)
    for out in graph.output_edges:
        tensor = node_tensors(graph.nodes[out.from_node_index])[1][out.from_node_output_index]
        view = _whole(f"temporary {out.from_node_index}.{out.from_node_output_index}", tensor)
        shaders.append(Shader(copied, (view,), view._replace(buffer=f"output {out.graph_output_index}")))
    return Shaders(tuple(shaders), temporaries)


def _bytes(tensor: TensorDesc | None) -> int:
    assert tensor is not None
    return tensor.total_tensor_size_in_bytes or 0


def _whole(buffer: str, tensor: TensorDesc | None) -> StridedView:
    assert tensor is not None
    desc = tensor.desc
    assert desc is not None
    assert desc.sizes is not None
    dtype = NUMPY_DTYPE.get(desc.data_type)
    if dtype is None:
        raise Unmodelled(f"graphs of {desc.data_type!s} are not emulated")
    if desc.flags & TensorFlags.OWNED_BY_DML:
        raise Unmodelled("graphs with inputs that DirectML owns are not emulated")
    strides = packed_strides(desc.sizes) if desc.strides is None else desc.strides
    return StridedView(buffer, 0, desc.sizes, tuple([stride * dtype.itemsize for stride in strides]), dtype)


def _of_node(
    graph: GraphDesc, number: int, reads: Sequence[StridedView], writes: Sequence[StridedView]
) -> Iterator[Shader]:
    node = graph.nodes[number]
    if not isinstance(node, AnyOperatorDesc):
        parts, whole = (writes, reads[0]) if isinstance(node, SplitOperatorDesc) else (reads, writes[0])
        place = 0
        for part in parts:
            offsets = [place if d == node.axis else 0 for d in range(len(part.sizes))]
            in_whole = whole.part(part.sizes, offsets, [1] * len(offsets))
            yield Shader(copied, (in_whole,), part) if parts is writes else Shader(copied, (part,), in_whole)
            place += part.sizes[node.axis]
        return
    row = BY_NUMBER.get(node.type)
    if row is not None and row.family is Family.SLICE:
        rank = len(reads[0].sizes)
        strides = numbers_of(node, "InputWindowStrides", rank)
        if min(strides, default=1) < 1:
            raise Unmodelled("a Slice with strides that are not positive is not emulated")
        window = reads[0].part(writes[0].sizes, numbers_of(node, "InputWindowOffsets", rank), strides)
        yield Shader(copied, (window,), writes[0])
        return
    if any(read.sizes != writes[0].sizes for read in reads):
        raise Unmodelled(f"node {number} has tensors of different sizes")
    yield Shader(function_of(node), tuple(reads), writes[0])


def compiled_graph(graph: GraphDesc, target: Target, results: str) -> tuple[GraphReport, Shaders | None]:
    """Returns a release's report on a graph, and the shaders that compute `results` ("release" or "right"); None if the
    graph cannot be run."""
    report = evaluate_graph(graph, target)
    graph = described(graph)
    assert target.release is not None
    traits = traits_of(target.release)
    try:
        if results == "right":
            # The graph itself may have faults, apart from how a release compiles it.
            at_fault = any(d.rule not in GRAPH_RULES or not GRAPH_RULES[d.rule].sound for d in report.errors)
            return report, None if at_fault else as_it_should_be(graph)
        if report.compiles is not True or "unknown" in report.outputs or traits is None:
            return report, None
        return report, as_released(graph, compile_graph(graph, traits))
    except Unmodelled as reason:
        note = GRAPH_RULES["graph/unknown"].diagnostic(Location(), str(reason))
        return replace(report, diagnostics=(*report.diagnostics, note), hresult=None, compiles=None), None
