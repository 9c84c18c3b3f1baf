"""The state of a graph during the passes: tensors, nodes and operands, memory regions, dispatches and their plan."""

from __future__ import annotations

import enum
import math
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import accumulate
from typing import Final, TypeAlias

from dmlsplit.descriptors.any_operator import AnyOperatorDesc
from dmlsplit.descriptors.enums import TensorDataType
from dmlsplit.descriptors.layout import is_packed, packed_strides
from dmlsplit.graphs.operators import Family
from dmlsplit.rules.graph_faults import Fault, TensorName, happens
from dmlsplit.system.records import entity

VECTOR: Final = 16
"""Bytes that a shader reads or writes at once."""
INNER: Final = 4
"""Dimensions of the shader that Splits of five and more dimensions are compiled for in builds that break them."""
ELEMENT_BYTES: Final = {int(TensorDataType.FLOAT32): 4, int(TensorDataType.FLOAT16): 2}


class Use(enum.IntEnum):
    """Why a tensor is used, in the order of CompileGraph's list of uses."""

    EDGE = 0
    GRAPH_OUTPUT = 1
    """The tensor is a graph output."""
    PAST_IDENTITY = 2
    """A use of the output of a removed identity."""
    OF_PART = 3
    """A use of a part of a removed Split."""


Rank: TypeAlias = tuple[Use, int]
"""Sort key of a use: its Use, then the index of the edge or graph output, or the order in which nodes were removed."""


class Unmodelled(Exception):
    """The model cannot predict this graph; the message is the reason."""


class NotCompiled(Exception):
    """CompileGraph makes no operator of the graph because of `fault`; each of `others` alone would have the same
    result."""

    def __init__(self, fault: Fault, others: Sequence[Fault] = ()) -> None:
        super().__init__(fault)
        self.fault = fault
        self.others = others

    def __str__(self) -> str:
        return happens(self.fault)


class Refused(NotCompiled):
    """CompileGraph returns E_INVALIDARG, usually because a tensor does not fit into its memory. There is a fault for
    each buffer that is too small, and for each Split whose whole input is too narrow."""


class Crash(NotCompiled):
    """CompileGraph ends the process."""


def bytes_of(sizes: Sequence[int], element_bytes: int) -> int:
    """Returns the size of a packed tensor in bytes, rounded up to a multiple of 4."""
    return -(-math.prod(sizes) * element_bytes // 4) * 4


# The tensors of a graph have few different sizes and strides, so results that depend only on these are cached.


@lru_cache(maxsize=1024)
def _steps(strides: tuple[int, ...], element_bytes: int) -> tuple[int, ...]:
    """Returns strides in bytes for strides in elements of `element_bytes` bytes."""
    return tuple([stride * element_bytes for stride in strides])


@lru_cache(maxsize=1024)
def _last(sizes: tuple[int, ...], steps: tuple[int, ...]) -> int:
    """Returns the offset in bytes of the last element from the first; `steps` are strides in bytes, sizes at least
    1."""
    return sum([(size - 1) * step for size, step in zip(sizes, steps, strict=True)])


@lru_cache(maxsize=1024)
def _is_packed(sizes: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    return is_packed(sizes, strides)


@lru_cache(maxsize=1024)
def _packed(sizes: tuple[int, ...]) -> tuple[int, ...]:
    return packed_strides(sizes)


@entity
class Wrong:
    """A dispatch that computes something other than its node does: the fault, and the difference."""

    fault: Fault
    instead: tuple[tuple[Tensor, Tensor], ...] = ()
    """Pairs of the tensor that it reads and the tensor that it should read; if their values are equal, the result is
    right."""
    behind_first: bool = False
    """In each output all elements except those at the first index are wrong."""


@dataclass(slots=True, eq=False, repr=False)
class Tensor:
    """A tensor of the graph during compilation; the passes settle its place step by step."""

    sizes: tuple[int, ...]
    element_bytes: int
    producer: Node | None
    index: int
    """Index among the producer's outputs; for a graph input, among the graph's inputs."""
    strides: tuple[int, ...] = ()
    """Strides in memory; packed until the tensor is placed in rows of a Join."""
    graph_output: int | None = None
    """The tensor is computed into the buffer of this graph output."""
    joined: tuple[Tensor, int] | None = None
    """The Join output that the tensor lives in, and its byte offset there."""
    joined_as: tuple[Node, int] | None = None
    """The Join that the tensor is placed in, and the index of its input."""
    shares: Tensor | None = None
    """The output of an in-place operator; it takes the memory of this tensor."""
    region: BufferView | None = None

    def __post_init__(self) -> None:
        self.strides = self.strides or _packed(self.sizes)

    @property
    def bytes(self) -> int:
        return bytes_of(self.sizes, self.element_bytes)

    @property
    def packed(self) -> bool:
        return _is_packed(self.sizes, self.strides)

    @property
    def name(self) -> TensorName:
        """The node and output index by which faults name the tensor; the node is None for a graph input."""
        return TensorName(None if self.producer is None else self.producer.number, self.index)

    @property
    def original(self) -> Tensor:
        """The tensor from which a chain of inserted copies produces this one; the tensor itself if no inserted copy
        produces it."""
        tensor = self
        while tensor.producer is not None and tensor.producer.number is None:
            tensor = tensor.producer.operands[0].tensor
        return tensor

    @property
    def origin(self) -> object:
        """The key that the fusion compares: the node that produces the tensor, whichever output it is; for a graph
        input the tensor itself."""
        return self if self.producer is None else self.producer

    def outer(self) -> Iterator[Tensor]:
        """Yields the Join outputs that the tensor is placed in, innermost first."""
        tensor = self
        while tensor.joined is not None:
            tensor = tensor.joined[0]
            yield tensor

    def block_bytes(self, axis: int) -> int:
        """Returns the size in bytes of one block of the tensor: the elements from `axis` inwards at one index of the
        dimensions before it."""
        return math.prod(self.sizes[axis:]) * self.element_bytes

    def is_block_of(self, output: Tensor) -> bool:
        """True if the tensor is a contiguous block of a Join's output."""
        return _is_packed(self.sizes, output.strides)

    def is_vectors_in(self, strides: Sequence[int]) -> bool:
        """True if, with these strides (in elements), contiguous runs and the steps between them are multiples of 16
        bytes."""
        run = 1
        steps: list[int] = []
        for size, stride in zip(reversed(self.sizes), reversed(strides), strict=True):
            if stride == run and not steps:
                run *= size
            elif size > 1:
                steps.append(stride)
        return all(step * self.element_bytes % VECTOR == 0 for step in (run, *steps))

    def view(self, buffer: str, offset: int) -> BufferView:
        """Returns the view of this tensor at a byte offset of a buffer."""
        return BufferView(buffer, offset, self.sizes, _steps(self.strides, self.element_bytes), self.element_bytes)


@dataclass(slots=True, eq=False, repr=False)
class Operand:
    """An input of a node: a tensor, or a view of it."""

    tensor: Tensor
    rank: Rank
    offset: int = 0
    """Byte offset of the view in the tensor."""
    sizes: tuple[int, ...] = ()
    view: bool = False
    thin: bool = False
    """A view whose size along the Split's axis is 1."""
    stands_for: Part | None = None
    """For a Join: the part that belongs in the place of this tensor, which is the whole input of its Split."""

    def __post_init__(self) -> None:
        self.sizes = self.sizes or self.tensor.sizes


@entity
class Part:
    """A part of a Split in whose place the Split's whole input is joined."""

    split: int
    """The Split's node number."""
    sizes: tuple[int, ...]
    axis: int
    first: bool
    """True if the part begins where the whole begins."""


@dataclass(slots=True, eq=False, repr=False)
class Node:
    """A node of the graph, or an inserted copy (`number` None)."""

    family: Family
    type: int
    operands: list[Operand]
    outputs: list[Tensor]
    number: int | None
    axis: int = 0
    offsets: tuple[int, ...] = ()
    """For a Slice: the offsets in elements."""
    steps: tuple[int, ...] = ()
    from_split: bool = False
    kept: bool = False
    """A Join that copies all its inputs itself."""
    fused: bool = False
    removed: bool = False
    copies: bool = False
    """A copy, never in place."""
    keeps_positive: bool = False
    """It leaves non-negative numbers unchanged, and never makes a negative number positive."""
    never_negative: bool = False
    """A Relu is fused into it."""
    wrong: Wrong | None = None
    constant: bool = False
    """Its results do not depend on what it reads."""
    unseen: str = ""
    """The reason why its results are not known; "" if they are known."""
    starts: list[int] = field(default_factory=list)
    """For a Join: the offset of each input along the axis."""

    @property
    def output(self) -> Tensor:
        return self.outputs[0]

    @property
    def slices_everything(self) -> bool:
        return self.family is Family.SLICE and self.output.sizes == self.operands[0].tensor.sizes

    @property
    def only_copies(self) -> bool:
        return self.family is Family.IDENTITY or self.slices_everything

    @property
    def copies_anywhere(self) -> bool:
        """True if the node can write to any address, not only to multiples of 16 bytes."""
        return self.family in (Family.SPLIT, Family.JOIN) or self.from_split

    def output_offsets(self) -> list[tuple[int, ...]]:
        """Returns, for each output of a Split or Slice, its first element's index in each dimension of the input."""
        if self.family is not Family.SPLIT:
            return [self.offsets or (0,) * len(tensor.sizes) for tensor in self.outputs]
        starts = accumulate([tensor.sizes[self.axis] for tensor in self.outputs[:-1]], initial=0)
        before, behind = (0,) * self.axis, (0,) * (len(self.output.sizes) - self.axis - 1)
        return [(*before, start, *behind) for start in starts]

    def places(self, strides: Sequence[int]) -> list[int]:
        """Returns the byte offset of each input of a Join in an output with these strides (in elements)."""
        return [self.place(strides, k) for k in range(len(self.operands))]

    def place(self, strides: Sequence[int], k: int) -> int:
        """Returns the byte offset of input k of a Join in an output with these strides (in elements)."""
        return self.starts[k] * strides[self.axis] * self.output.element_bytes


# Not frozen: creating a frozen one takes twice as long. Instances are never changed.
@dataclass(unsafe_hash=True, slots=True)
class BufferView:
    """A strided view of a buffer: `offset` and `steps` are in bytes."""

    buffer: str
    offset: int
    sizes: tuple[int, ...]
    steps: tuple[int, ...]
    element_bytes: int
    end: int = field(init=False, compare=False)
    """The byte offset just past the last element."""

    def __post_init__(self) -> None:
        self.end = self.offset + _last(self.sizes, self.steps) + self.element_bytes

    def part(self, offset: int, sizes: tuple[int, ...]) -> BufferView:
        """Returns a view of these sizes with the same steps, `offset` bytes after this one's start."""
        if offset == 0 and sizes is self.sizes:
            return self
        return BufferView(self.buffer, self.offset + offset, sizes, self.steps, self.element_bytes)

    def window(self, sizes: tuple[int, ...], offsets: Sequence[int], steps: Sequence[int]) -> BufferView:
        """Returns the view with these sizes that starts at index `offsets` of this one (one number of elements for each
        dimension) and takes every `steps`-th element in each dimension; every element if `steps` is empty."""
        part = self.part(sum(a * b for a, b in zip(offsets, self.steps, strict=True)), sizes)
        return replace(part, steps=tuple(a * b for a, b in zip(part.steps, steps, strict=True))) if steps else part

    def begins_as(self, other: BufferView) -> bool:
        """True if another view has the same buffer, offset and steps; the sizes may differ."""
        return (self.buffer, self.offset, self.steps) == (other.buffer, other.offset, other.steps)


@dataclass(slots=True, eq=False, repr=False)
class Dispatch:
    """One shader: the tensors and regions that it reads, and the region that it writes. `node` is None for an inserted
    copy."""

    node: int | None
    name: str
    reads: tuple[tuple[Tensor, BufferView], ...]
    output: Tensor
    writes: BufferView
    copies: bool = False
    """The output is a copy of the input."""
    by_element: bool = False
    """Each output element depends only on the input elements at the same index."""
    wrong: Wrong | None = None
    view_offset: int | None = None
    """The byte offset at which the output is bound, if it differs from the region's offset."""
    binding: int | None = None
    """The byte offset at which the only input is bound, if it differs from the region's offset."""
    rectifies: bool = False
    """In place, and positive numbers stay unchanged."""
    turns_signs: bool = False
    """In place, and only signs change."""
    never_negative: bool = False
    """A Relu is fused into it."""
    constant: bool = False
    """Its results do not depend on what it reads."""
    unseen: str = ""
    """The reason why its results are not known; "" if they are known."""

    def compiled_region(self, region: BufferView) -> BufferView:
        """Returns the region that the shader actually accesses in place of `region`: for a Split of five or more
        dimensions that is compiled as four, only the first index; otherwise `region` itself."""
        if self.wrong is None or not self.wrong.behind_first:
            return region
        outer = len(region.sizes) - INNER
        return region.part(0, (1,) * outer + region.sizes[outer:])

    def binding_of(self, region: BufferView) -> int:
        """Returns the byte offset in the buffer at which an input is bound."""
        return region.offset if self.binding is None else self.binding


@entity
class StandIn:
    """The whole input of a Split that was joined in place of a part."""

    output: Tensor
    """The Join's output."""
    place: BufferView
    """The region that belongs to the part."""
    whole: Tensor
    """The tensor copied there: the Split's input, or a copy of it."""
    part: Part


@dataclass(slots=True, eq=False, repr=False)
class CompiledGraph:
    """The dispatches that a graph compiles to, and the tensors in its outputs' buffers."""

    dispatches: list[Dispatch]
    outputs: list[Tensor]
    """The tensor that each graph output should hold."""
    homes: list[Tensor]
    """The tensor in the buffer of each graph output."""
    parts: dict[Tensor, list[Tensor]]
    """Maps a Join's output to the tensors that live in it, in order; each is written once."""
    lost: list[tuple[Tensor, BufferView, int]] = field(default_factory=list)
    """Join outputs, each with the region that is never written and the index of its input."""
    stand_ins: list[StandIn] = field(default_factory=list)
    nodes: Iterable[Node] = ()
    """All nodes that the passes worked on, including removed ones."""

    def release(self) -> None:
        """Frees the nodes and tensors by breaking the cycles between them. The graph cannot be executed afterwards."""
        for node in self.nodes:
            node.operands, node.outputs = [], []


def same_layout(sizes: Sequence[int], one: Sequence[int], other: Sequence[int]) -> bool:
    return all(size == 1 or a == b for size, a, b in zip(sizes, one, other, strict=True))


Uses: TypeAlias = dict[Tensor, list[tuple[Node, int]]]
"""Maps each tensor to its readers, in CompileGraph's order."""
Readers: TypeAlias = Sequence[tuple[Node, int]]
"""Nodes, each with the index of the input that is read."""


def depth_first(roots: Iterable[Node]) -> list[Node]:
    """Returns the roots and all nodes that they depend on, each after its dependencies; operands in order.

    Each node is returned once, even in a cycle.
    """
    entered: set[Node] = set()
    order = []
    for root in roots:
        if root in entered:
            continue
        entered.add(root)
        stack = [(root, iter(root.operands))]
        while stack:
            node, left = stack[-1]
            for operand in left:
                producer = operand.tensor.producer
                if producer is not None and producer not in entered:
                    entered.add(producer)
                    stack.append((producer, iter(producer.operands)))
                    break
            else:
                stack.pop()
                order.append(node)
    return order


def counted_uses(nodes: Iterable[Node], outputs: Iterable[Tensor]) -> Mapping[Node, int]:
    """Maps each node to the number of times that the nodes, and the graph outputs, use its outputs."""
    found: dict[Node, int] = defaultdict(int)
    for node in nodes:
        for operand in node.operands:
            if operand.tensor.producer is not None:
                found[operand.tensor.producer] += 1
    for tensor in outputs:
        if tensor.producer is not None:
            found[tensor.producer] += 1
    return found


def readers_first(
    nodes: Iterable[Node], outputs: Sequence[Tensor], *, deepest: bool, counted: Mapping[Node, int] | None = None
) -> list[Node]:
    """Returns the nodes, ordered from the graph outputs backwards, last output first; each node follows all readers of
    its outputs. `counted` is the result of `counted_uses`, if the caller has it.

    Breadth first, or with `deepest` depth first: the node whose readers were finished last comes next.
    """
    waiting = defaultdict(int, counted_uses(nodes, outputs) if counted is None else counted)
    ready: deque[Node | Tensor] = deque(outputs if deepest else reversed(outputs))
    order = []
    while ready:
        item = ready.pop() if deepest else ready.popleft()
        if isinstance(item, Node):
            order.append(item)
            producers = [operand.tensor.producer for operand in item.operands]
        else:
            producers = [item.producer]
        for producer in producers:
            if producer is not None:
                waiting[producer] -= 1
                if waiting[producer] == 0:
                    ready.append(producer)
    return order


def numbers_of(desc: AnyOperatorDesc, name: str, count: int) -> tuple[int, ...]:
    value = desc.members.get(name)
    if not isinstance(value, tuple) or len(value) != count:
        raise Unmodelled(f"{name} is needed to know which elements a Slice copies")
    return tuple([int(number) for number in value if isinstance(number, (int, float))])
