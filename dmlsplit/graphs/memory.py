"""What CompileGraph makes of a graph: a list of dispatches, and the memory that each one reads and writes.

Found by asking builds of DirectML, and true of them as far as `Unmodelled` does not say otherwise. It happens in this
order, each step a function below:

    fuse        p * sigmoid(q) becomes one dispatch
    bypass      identities are taken out
    elide       what reads a part of a Split reads the Split's input at an offset instead: the part is a *view*
    place       an input of a Join is computed straight into the joined buffer: the input *lives* in the output
    home        a graph output is computed straight into the buffer that is bound for it, or copied there
    order       nodes are executed by depth, the deepest first
    share       an element-by-element operator works *in place*: its output takes the memory of one input
    locate      every tensor gets its place in a buffer

Each step asks how often a tensor is used, and counts uses of the tensor itself only. So memory is shared although
something else still needs it: a view of it, or a tensor that lives in it. That is what goes wrong in graphs.
"""

from __future__ import annotations

import math
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from dmlsplit.descriptors import BufferTensorDesc
from dmlsplit.enums import TensorDataType
from dmlsplit.graphs.descriptors import GraphDesc, NeighbourOperatorDesc, node_tensors, node_type
from dmlsplit.graphs.operators import BY_NUMBER, MULTIPLY, SIGMOID, Family, short_name
from dmlsplit.graphs.releases import FiveDimensions, Fusion, GraphTraits, JoinPlacement
from dmlsplit.layout import packed_strides

VECTOR: Final = 16
"""Bytes that a dispatch reads and writes at once, and that places of tensors are aligned to."""
ELEMENT_BYTES: Final = {int(TensorDataType.FLOAT32): 4, int(TensorDataType.FLOAT16): 2}
"""Of the data types that were observed in graphs."""


class Unmodelled(Exception):
    """The model does not say what comes of this graph; the message is the reason."""


class Refused(Exception):
    """CompileGraph returns E_INVALIDARG: a tensor does not fit the memory that it was given."""

    def __init__(self, node: int, message: str) -> None:
        super().__init__(message)
        self.node = node


class Crash(Exception):
    """CompileGraph ends the process."""

    def __init__(self, node: int, message: str) -> None:
        super().__init__(message)
        self.node = node


@dataclass(frozen=True, slots=True)
class Wrong:
    """A dispatch computes something else than its node: the rule that says why, and what it is."""

    rule: str
    message: str


@dataclass(eq=False, slots=True)
class Tensor:
    """A tensor of the graph while it is compiled; where it lies is decided step by step."""

    sizes: tuple[int, ...]
    element_bytes: int
    producer: Node | None
    index: int
    """Among the producer's outputs; of a graph input, among the graph's."""
    strides: tuple[int, ...] = ()
    """Where it lies among others; packed until it is placed in rows of a Join."""
    graph_output: int | None = None
    """The buffer of this graph output is its home."""
    joined: tuple[Tensor, int] | None = None
    """It lives in this output of a Join, so many bytes behind its beginning."""
    joined_as: tuple[Node, int] | None = None
    """The Join, and which of its inputs."""
    shares: Tensor | None = None
    """An operator works in place: its output, whose memory this tensor takes."""
    region: Region | None = None

    def __post_init__(self) -> None:
        self.strides = self.strides or packed_strides(self.sizes)

    @property
    def bytes(self) -> int:
        return -(-math.prod(self.sizes) * self.element_bytes // 4) * 4

    @property
    def packed(self) -> bool:
        return same_layout(self.sizes, self.strides, packed_strides(self.sizes))


@dataclass(eq=False, slots=True)
class Operand:
    """An input of a node: a tensor, or a view of it."""

    tensor: Tensor
    rank: tuple[int, int]
    """Orders the uses of a tensor: edges as the graph lists them, those that a bypassed identity had behind."""
    offset: int = 0
    """Bytes from the tensor's beginning."""
    sizes: tuple[int, ...] = ()
    view: bool = False
    thin: bool = False
    """A view whose size along the Split's axis is 1."""

    def __post_init__(self) -> None:
        self.sizes = self.sizes or self.tensor.sizes


@dataclass(eq=False, slots=True)
class Node:
    """A node of the graph, or a copy that was put in (`number` None)."""

    family: Family
    type: int
    operands: list[Operand]
    outputs: list[Tensor]
    number: int | None
    axis: int = 0
    offsets: tuple[int, ...] = ()
    """Of a Slice, in elements."""
    steps: tuple[int, ...] = ()
    from_split: bool = False
    kept: bool = False
    """A Join that copies its inputs itself."""
    fused: bool = False
    removed: bool = False
    copies: bool = False
    """It only copies, never in place."""
    wrong: Wrong | None = None

    @property
    def output(self) -> Tensor:
        return self.outputs[0]

    @property
    def slices_everything(self) -> bool:
        return self.family is Family.SLICE and self.output.sizes == self.operands[0].tensor.sizes


@dataclass(frozen=True, slots=True)
class Region:
    """Elements in a buffer: `offset` and `steps` in bytes."""

    buffer: str
    offset: int
    sizes: tuple[int, ...]
    steps: tuple[int, ...]
    element_bytes: int
    end: int = field(init=False, compare=False)
    """Bytes, up to the last element and with it."""

    def __post_init__(self) -> None:
        last = sum((size - 1) * step for size, step in zip(self.sizes, self.steps, strict=True))
        object.__setattr__(self, "end", self.offset + last + self.element_bytes)


@dataclass(frozen=True, slots=True)
class Dispatch:
    """One shader: what it reads of which tensors, and what it writes. `node` is the graph's, None for a copy."""

    node: int | None
    name: str
    reads: tuple[tuple[Tensor, Region], ...]
    output: Tensor
    writes: Region
    copies: bool = False
    """Its output is its input."""
    wrong: Wrong | None = None
    view_offset: int | None = None
    """Where the binding of the output begins, if elsewhere than the region."""
    binding: int | None = None
    """The same of its one input."""

    def binding_of(self, tensor: Tensor, region: Region) -> int:
        """Where the binding of an input begins, in bytes of its buffer."""
        return region.offset if self.binding is None else self.binding


@dataclass(slots=True)
class Plan:
    """What a graph compiles to."""

    dispatches: list[Dispatch]
    outputs: list[Tensor]
    """What each graph output should hold."""
    homes: list[Tensor]
    """What lies in the buffer of each graph output."""
    parts: dict[Tensor, list[Tensor]]
    """The output of a Join: the tensors that live in it, in order; None of them is written twice."""
    lost: list[tuple[Tensor, Region, int]] = field(default_factory=list)
    """Outputs of Joins, with the place that is never written, and the number of the input."""


def same_layout(sizes: Sequence[int], one: Sequence[int], other: Sequence[int]) -> bool:
    return all(size == 1 or a == b for size, a, b in zip(sizes, one, other, strict=True))


def whole_vectors(sizes: Sequence[int], strides: Sequence[int], element_bytes: int) -> bool:
    """Whether runs without a gap, and the steps between them, are multiples of 16 bytes."""
    run = 1
    steps: list[int] = []
    for size, stride in zip(reversed(sizes), reversed(strides), strict=True):
        if size == 1:
            continue
        if stride == run and not steps:
            run *= size
        else:
            steps.append(stride)
    return all(step * element_bytes % VECTOR == 0 for step in (run, *steps))


Uses = dict[Tensor, list[tuple[Node, int]]]
"""The nodes that read a tensor, and as which operand; in the order of the edges."""


class Compiler:
    """One graph on its way to dispatches, for builds of these traits."""

    def __init__(self, graph: GraphDesc, traits: GraphTraits) -> None:
        self.traits = traits
        self.nodes: list[Node] = []
        self.outputs: list[Tensor] = []
        self.parts: dict[Tensor, list[Tensor]] = {}
        self.lost: list[tuple[Tensor, int]] = []
        self.copies_for_outputs: set[Tensor] = set()
        self.buffers: dict[str, int] = {}
        """Bytes of each buffer."""
        self.homes_of_nodes: dict[Node, Tensor] = {}
        self._read(graph)
        self.results = list(self.outputs)
        self.result_set = set(self.results)

    def compile(self) -> Plan:
        self.output_set = set(self.outputs)
        self._fuse()
        self._bypass()
        if self.traits.splits_are_slices:
            self._cut()
        if self.traits.join_placement is JoinPlacement.ALL_OR_NONE:
            self._keep_joins()
        self._elide()
        if self.traits.five_dimensions is not FiveDimensions.SOUND:
            self._break_splits()
        self.output_set = set(self.outputs)
        self._place()
        homes = self._home()
        order = self._order(homes)
        self._share(homes)
        dispatches = [self._fit(dispatch) for dispatch in self._dispatches(order)]
        return Plan(dispatches, self.results, homes, self.parts, [self._lost_place(*lost) for lost in self.lost])

    # The graph as it is described

    def _read(self, graph: GraphDesc) -> None:
        inputs = []
        for i, end in enumerate(graph.inputs):
            inputs.append(self._tensor(end.desc if end else None, None, i))
        for number, desc in enumerate(graph.nodes):
            kind = node_type(desc)
            row = BY_NUMBER.get(kind)
            if row is None:
                raise Unmodelled(f"{short_name(kind)} (node {number}) was not observed in graphs")
            node = Node(row.family, kind, [], [], number)
            node.outputs = [
                self._tensor(tensor.desc if tensor else None, node, k) for k, tensor in enumerate(node_tensors(desc)[1])
            ]
            if not isinstance(desc, NeighbourOperatorDesc):
                node.axis = desc.axis
            elif row.family is Family.SLICE:
                rank = len(node.output.sizes)
                node.offsets = _numbers(desc, "InputWindowOffsets", rank)
                node.steps = _numbers(desc, "InputWindowStrides", rank)
            self.nodes.append(node)
        operands: list[dict[int, Operand]] = [{} for _ in self.nodes]
        for edge in graph.input_edges:
            operands[edge.to_node_index][edge.to_node_input_index] = Operand(inputs[edge.graph_input_index], (0, 0))
        for i, wire in enumerate(graph.intermediate_edges):
            source = self.nodes[wire.from_node_index].outputs[wire.from_node_output_index]
            operands[wire.to_node_index][wire.to_node_input_index] = Operand(source, (0, i))
        for node, found, desc in zip(self.nodes, operands, graph.nodes, strict=True):
            node.operands = [found[i] for i in sorted(found)]
            for operand, tensor in zip(node.operands, node_tensors(desc)[0], strict=True):
                if (
                    tensor is None
                    or tensor.sizes != operand.sizes
                    or ELEMENT_BYTES.get(int(tensor.data_type)) != (operand.tensor.element_bytes)
                ):
                    raise Unmodelled("edges whose ends differ in sizes or data type were not observed")
                self._tensor(tensor.desc, None, 0)
            if node.family.computes and any(operand.sizes != node.output.sizes for operand in node.operands):
                raise Unmodelled(f"{short_name(node.type)} of tensors of different sizes was not observed")
        by_output = {edge.graph_output_index: edge for edge in graph.output_edges}
        self.outputs = [
            self.nodes[by_output[i].from_node_index].outputs[by_output[i].from_node_output_index]
            for i in sorted(by_output)
        ]

    def _tensor(self, desc: BufferTensorDesc | None, producer: Node | None, index: int) -> Tensor:
        assert desc is not None
        assert desc.sizes is not None
        size = ELEMENT_BYTES.get(int(desc.data_type))
        if size is None:
            raise Unmodelled(f"data type {desc.data_type!s} was not observed in graphs")
        if desc.strides is not None and not same_layout(desc.sizes, desc.strides, packed_strides(desc.sizes)):
            raise Unmodelled("tensors with strides of their own were hardly observed in graphs")
        if desc.flags:
            raise Unmodelled("tensors that DirectML owns were not observed in graphs")
        tensor = Tensor(desc.sizes, size, producer, index)
        if desc.total_tensor_size_in_bytes != tensor.bytes:
            raise Unmodelled("tensors that are larger than their elements were not observed in graphs")
        return tensor

    def _uses(self) -> Uses:
        uses: Uses = defaultdict(list)
        found = [(operand.rank, node, k) for node in self.nodes for k, operand in enumerate(node.operands)]
        found.sort(key=lambda use: use[0])
        for _, node, k in found:
            uses[node.operands[k].tensor].append((node, k))
        return uses

    def _topological(self) -> list[Node]:
        return depth_first(self.nodes)

    # x * sigmoid(x)

    def _fuse(self) -> None:
        """p * sigmoid(q) becomes q * sigmoid(q): what is compared is the node that p and q come from.

        So p may be another output of the same Split.
        """
        if self.traits.fusion is Fusion.NONE:
            return
        uses = self._uses()
        for product in self.nodes:
            for k in (0, 1) if product.type == MULTIPLY else ():
                gate, other = product.operands[k].tensor, product.operands[1 - k].tensor
                sigmoid = self._only_maker(gate, SIGMOID, uses)
                if sigmoid is None:
                    continue
                source = sigmoid.operands[0]
                if _origin(source.tensor) is _origin(other):
                    if other is not source.tensor:
                        product.wrong = Wrong(
                            "graph/fused-wrongly",
                            f"it computes q * sigmoid(q) of q = {_named(source.tensor)}, "
                            f"not {_named(other)} * sigmoid(q)",
                        )
                    product.operands, product.fused = [source], True
                    sigmoid.removed = True
                    break
                if self.traits.fusion is Fusion.CHAIN and self._fuse_chain(product, k, sigmoid, uses):
                    break
        self.nodes = [node for node in self.nodes if not node.removed]
        if self.traits.fusion is Fusion.CHAIN:
            self._fuse_products()

    def _only_maker(self, tensor: Tensor, type: int, uses: Uses) -> Node | None:
        """The node that a tensor comes from, if it is of this type, not fused, and the tensor is used once."""
        node = tensor.producer
        if node is None or node.type != type or node.removed or node.fused:
            return None
        return node if len(uses[tensor]) == 1 and tensor not in self.output_set else None

    def _fuse_chain(self, product: Node, k: int, sigmoid: Node, uses: Uses) -> bool:
        """(p * q) * sigmoid(r) becomes (r * sigmoid(r)) * rest: of the rest the output index is right, its node r's."""
        gate, other = product.operands[k], product.operands[1 - k]
        inner = self._only_maker(other.tensor, MULTIPLY, uses)
        if inner is None:
            return False
        source = sigmoid.operands[0].tensor
        p, q = (operand.tensor for operand in inner.operands)
        if p is source:
            rest = q
        elif _origin(q) is _origin(source):
            rest = p
        else:
            return False
        place = rest.index if rest.producer is not None else 0
        found = [source] if source.producer is None else source.producer.outputs
        if place >= len(found):
            raise Crash(product.number or 0, f"its fusion wants output {place} of a node that has {len(found)}")
        taken = found[place]
        if {p, q} != {source, taken} or (p is q) != (source is taken):
            product.wrong = Wrong(
                "graph/fused-wrongly",
                f"it computes {_named(taken)} * r * sigmoid(r) of r = {_named(source)}, "
                f"not {_named(p)} * {_named(q)} * sigmoid(r)",
            )
        sigmoid.fused = inner.removed = True
        product.operands[1 - k] = Operand(gate.tensor, gate.rank)
        product.operands[k] = Operand(taken, gate.rank)
        return True

    def _fuse_products(self) -> None:
        """((x * sigmoid(x)) * y) * z, once the first is fused, is one dispatch of x, y and z."""
        uses = self._uses()
        for outer in self.nodes:
            for k in (0, 1) if outer.type == MULTIPLY and len(outer.operands) == 2 else ():
                inner = self._only_maker(outer.operands[k].tensor, MULTIPLY, uses)
                if inner is None:
                    continue
                i = next((i for i in (0, 1) if self._is_swish(inner.operands[i].tensor, uses)), None)
                if i is None:
                    continue
                swish = inner.operands[i].tensor.producer
                assert swish is not None
                outer.operands = [swish.operands[0], inner.operands[1 - i], outer.operands[1 - k]]
                outer.wrong = outer.wrong or inner.wrong or swish.wrong
                outer.fused = inner.removed = swish.removed = True
                break
        self.nodes = [node for node in self.nodes if not node.removed]

    def _is_swish(self, tensor: Tensor, uses: Uses) -> bool:
        """Whether this is x * sigmoid(x), fused, and used once."""
        node = tensor.producer
        return node is not None and node.fused and len(uses[tensor]) == 1 and tensor not in self.output_set

    # Identities

    def _bypass(self) -> None:
        """What reads an identity's output reads its input instead. Of a graph output only the home is left.

        Several identities of one tensor are taken out in an order that was not found out. It decides where the tensor
        lives, if Joins or graph outputs want it behind more than one of them, and it is used otherwise.
        """
        uses = self._uses()
        wanted: dict[Tensor, list[bool]] = defaultdict(list)
        instead: dict[Tensor, Tensor] = {}
        depth: dict[Tensor, int] = {}
        for node in self._topological():
            for operand in node.operands:
                if operand.tensor in instead:
                    operand.rank = (depth[operand.tensor], operand.rank[1])
                    operand.tensor = instead[operand.tensor]
            if node.family is Family.IDENTITY and not self.traits.keeps_identities:
                instead[node.output] = node.operands[0].tensor
                depth[node.output] = node.operands[0].rank[0] + 1
                readers = uses[node.output]
                joined = any(reader.family is Family.JOIN for reader, _ in readers)
                if joined or node.output in self.result_set:
                    wanted[node.operands[0].tensor].append(bool(readers))
        for tensor, used in wanted.items():
            if len(used) > 1 and any(used) and tensor.producer is not None and tensor not in self.result_set:
                raise Unmodelled("several identities of one tensor lead to Joins and graph outputs")
        self.outputs = [instead.get(tensor, tensor) for tensor in self.outputs]
        self.nodes = [node for node in self.nodes if node.output not in instead]

    # Splits

    def _cut(self) -> None:
        """A Split becomes a Slice for each output that is used."""
        uses, outputs = self._uses(), set(self.outputs)
        nodes: list[Node] = []
        for node in self.nodes:
            if node.family is not Family.SPLIT:
                nodes.append(node)
                continue
            for tensor, offsets in zip(node.outputs, _split_offsets(node), strict=True):
                if tensor not in outputs and not uses[tensor]:
                    continue
                source = node.operands[0]
                operand = Operand(source.tensor, source.rank)
                tensor.producer = Node(
                    Family.SLICE, node.type, [operand], [tensor], node.number, 0, offsets, (), from_split=True
                )
                nodes.append(tensor.producer)
        self.nodes = nodes

    def _elide(self) -> None:
        """A Split, or a Slice, whose parts are read by operators that can read with strides is no dispatch.

        Not where a part is a graph output, is read by a Join that is computed in place, or has views itself. A view
        begins at a multiple of 16 bytes. What reads the part reads the Split's input; the input's other views do not
        know of it.
        """
        traits = self.traits
        uses, outputs = self._uses(), set(self.outputs)
        families = {Family.SPLIT, Family.SLICE} if traits.slices_are_views else {Family.SPLIT}
        removed: set[Node] = set()
        for node in reversed(self._topological()):
            if node.family not in families:
                continue
            source = node.operands[0]
            if node.slices_everything and not traits.splits_are_slices:
                continue
            element = source.tensor.element_bytes
            strides = packed_strides(source.tensor.sizes)
            parts = [
                (tensor, sum(a * b for a, b in zip(offsets, strides, strict=True)) * element)
                for tensor, offsets in zip(node.outputs, _offsets(node), strict=True)
            ]
            readers = [[use for use in uses[tensor] if use[0] not in removed] for tensor, _ in parts]
            if self._elidable(node, parts, strides, readers, outputs):
                for (tensor, offset), part_readers in zip(parts, readers, strict=True):
                    for reader, k in part_readers:
                        old = reader.operands[k]
                        whole = node.slices_everything
                        operand = Operand(
                            source.tensor,
                            old.rank,
                            source.offset + offset + old.offset,
                            old.sizes,
                            view=source.view if whole and not old.view else True,
                            thin=node.family is Family.SPLIT and tensor.sizes[node.axis] == 1,
                        )
                        reader.operands[k] = operand
                        uses[source.tensor].append((reader, k))
                removed.add(node)
            elif traits.splits_are_slices:
                source.offset += parts[0][1]
                source.sizes = node.output.sizes
                if node.slices_everything:
                    node.family, node.copies = Family.IDENTITY, True
                else:
                    source.view = True
        self.nodes = [node for node in self.nodes if node not in removed]

    def _elidable(
        self,
        node: Node,
        parts: Sequence[tuple[Tensor, int]],
        strides: Sequence[int],
        uses: Sequence[Sequence[tuple[Node, int]]],
        outputs: set[Tensor],
    ) -> bool:
        traits = self.traits
        into_rows = narrow = False
        if any(step != 1 for step in node.steps):
            return False
        if node.family is Family.SLICE and not traits.splits_are_slices:
            changed = zip(node.output.sizes, node.operands[0].tensor.sizes, strict=True)
            if sum(a != b for a, b in changed) != 1:
                return False
        for (tensor, offset), readers in zip(parts, uses, strict=True):
            if tensor in outputs:
                return False
            if offset % VECTOR and (readers or traits.all_places_aligned):
                copies = readers and all(_only_copies(reader) for reader, _ in readers)
                if not (traits.splits_are_slices and copies):
                    return False
            if readers and traits.vector_reads and _block_bytes(tensor, node.axis) % VECTOR:
                return False
            for reader, k in readers:
                if reader.family is Family.JOIN and not reader.kept:
                    if traits.joins_reuse_rows or _is_block(tensor, reader.output) or len(readers) == 1:
                        return False
                    into_rows = True
                    continue
                if reader.operands[k].view:
                    return False
                if traits.splits_are_slices and reader.family is Family.SLICE and not reader.slices_everything:
                    return False
                if self._too_narrow(reader, tensor.sizes, strides):
                    narrow = True
        if narrow and not into_rows:
            return False
        if into_rows:
            raise Unmodelled("a part of a Split is used elsewhere, and copied to rows of a Join from a wrong place")
        return True

    def _break_splits(self) -> None:
        """A Split of five dimensions is compiled as one of four: what lies behind the first index is not found."""
        uses = self._uses()
        for node in self.nodes:
            sizes = node.operands[0].tensor.sizes
            if node.family is Family.SPLIT and len(sizes) == 5 and sizes[0] > 1:
                if node.axis == 0:
                    raise Refused(node.number or 0, "a Split of five dimensions along the first one")
                if self.traits.five_dimensions is FiveDimensions.UNKNOWN:
                    raise Unmodelled("what a Split of five dimensions computes was not observed of this build")
                if self._cuts_first_dimension(node, uses):
                    raise Unmodelled("what is cut out of a broken part may be right")
                node.wrong = Wrong(
                    "graph/five-dimensions", "all but the elements of the first index come from wrong places"
                )

    def _too_narrow(self, node: Node, sizes: Sequence[int], strides: Sequence[int]) -> bool:
        """Whether an operator of at most four dimensions would have to read, or write, five that do not fold."""
        if not self.traits.narrow_activations or len(sizes) < 5:
            return False
        if node.family not in (Family.ACTIVATION, Family.SLICE, Family.JOIN):
            return False
        if sizes[1] == sizes[2] == 1:
            return False
        if same_layout(sizes, strides, packed_strides(sizes)):
            return sum(size > 1 for size in sizes) > 3
        rows = (*packed_strides(sizes[:-1]), 1)
        step = min((stride for size, stride in zip(sizes[:-1], strides[:-1], strict=True) if size > 1), default=1)
        folds = same_layout(sizes[:-1], strides[:-1], [row * step for row in rows[:-1]]) and sizes[-1] > 1
        return not (self.traits.narrow_activations_take_rows and folds)

    def _cuts_first_dimension(self, node: Node, uses: Uses) -> bool:
        """Whether something that comes of a node may be made of elements of one first index only."""
        seen: set[Node] = {node}
        stack = [node]
        while stack:
            for tensor in stack.pop().outputs:
                for reader, k in uses[tensor]:
                    cuts = reader.family is Family.SLICE or (reader.family is Family.SPLIT and reader.axis == 0)
                    if cuts or reader.operands[k].view:
                        return True
                    if reader not in seen:
                        seen.add(reader)
                        stack.append(reader)
        return False

    # Joins

    def _keep_joins(self) -> None:
        """Where one input of a Join would begin at an odd place, the Join copies all of them itself."""
        for node in self.nodes:
            if node.family is not Family.JOIN:
                continue
            strides = packed_strides(node.output.sizes)
            for operand, place in zip(node.operands, _join_places(node, strides), strict=True):
                producer = operand.tensor.producer
                if place % VECTOR:
                    node.kept = True
                if producer is None or producer.family in (Family.SPLIT, Family.JOIN):
                    continue
                tensor = operand.tensor
                if self.traits.vector_joins and _block_bytes(tensor, node.axis) % VECTOR:
                    node.kept = True
                if self._too_narrow(producer, tensor.sizes, strides):
                    node.kept = True

    def _place(self) -> None:
        """The inputs of a Join live in its output: their producers write there, copies where they cannot.

        From the last Joins to the first, so that it is known where each output lies. A tensor that several Joins take
        lives in the first that it is one block of, else in the last. A graph output does so only as a block, and is
        then copied to its own buffer. The tensor's other readers read it where it lives.
        """
        uses = self._uses()
        joins = []
        for node in reversed(self._topological()):
            for tensor in node.outputs:
                self._place_tensor(tensor, uses)
            if node.family is Family.JOIN and not node.kept:
                joins.append(node)
        for node in joins:
            self._fill(node)

    def _place_tensor(self, tensor: Tensor, uses: Uses) -> None:
        traits, readers = self.traits, uses[tensor]
        joins = [(node, k) for node, k in readers if node.family is Family.JOIN and not node.kept]
        blocks = [(node, k) for node, k in joins if _is_block(tensor, node.output)]
        direct = any(node.operands[k].rank[0] == 0 for node, k in blocks)
        is_output = tensor in self.output_set
        if is_output and blocks and (direct or tensor not in self.result_set):
            self.copies_for_outputs.add(tensor)
        chosen = None
        if blocks:
            chosen = blocks[0]
        elif joins and (traits.joins_reuse_rows or len(readers) == 1):
            chosen = joins[-1]
        producer = tensor.producer
        assert producer is not None
        if traits.one_home_per_node and (is_output or chosen):
            self.homes_of_nodes.setdefault(producer, tensor)
        if chosen is None or (is_output and tensor not in self.copies_for_outputs):
            return
        node, k = chosen
        output, operand = node.output, node.operands[k]
        place = list(_join_places(node, output.strides))[k]
        if operand.view or place % VECTOR or self.homes_of_nodes.get(producer, tensor) is not tensor:
            return
        if not blocks and any(reader.operands[i].view for reader, i in readers):
            return
        anywhere = traits.join_placement is JoinPlacement.ALL_OR_NONE or _copies_anywhere(producer)
        if not anywhere and not whole_vectors(tensor.sizes, output.strides, tensor.element_bytes):
            return
        tensor.joined, tensor.strides = (output, place), output.strides
        tensor.joined_as = (node, k)

    def _fill(self, node: Node) -> None:
        """Copies to the places of a Join that no tensor lives in."""
        output = node.output
        self.parts[output] = []
        places = list(_join_places(node, output.strides))
        for k, operand in enumerate(node.operands):
            tensor = operand.tensor
            if tensor.joined_as == (node, k):
                self.parts[output].append(tensor)
            elif self.traits.forgets_repeats and self._is_in(tensor, output):
                self.lost.append((output, k))
            else:
                copy = self._copy(operand)
                copy.joined, copy.strides = (output, places[k]), output.strides
                self.parts[output].append(copy)
                node.operands[k] = Operand(copy, operand.rank)

    def _is_in(self, tensor: Tensor, output: Tensor) -> bool:
        """Whether the tensor lives in the buffer that this output of a Join lies in."""
        return tensor.joined is not None and _outermost(tensor) is _outermost(output)

    def _copy(self, operand: Operand) -> Tensor:
        source = operand.tensor
        node = Node(
            Family.IDENTITY, 0, [Operand(source, operand.rank, operand.offset, operand.sizes)], [], None, copies=True
        )
        node.outputs = [Tensor(operand.sizes, source.element_bytes, node, 0)]
        self.nodes.append(node)
        return node.output

    # Graph outputs and order

    def _home(self) -> list[Tensor]:
        """A graph output's buffer is the home of its tensor, or of a copy where the tensor has its home elsewhere."""
        homes = []
        for i, tensor in enumerate(self.outputs):
            elsewhere = (
                tensor.producer is None
                or tensor.joined is not None
                or tensor.graph_output is not None
                or tensor in self.copies_for_outputs
                or (self.results[i] is not tensor and tensor in self.result_set)
                or self.homes_of_nodes.get(tensor.producer, tensor) is not tensor
            )
            home = self._copy(Operand(tensor, (9, i))) if elsewhere else tensor
            home.graph_output = i
            homes.append(home)
        return homes

    def _order(self, homes: Sequence[Tensor]) -> list[Node]:
        """Level by level from the graph outputs, the last one first; executed the other way round."""
        waiting: dict[Node, int] = defaultdict(int)
        for node in self.nodes:
            for operand in node.operands:
                if operand.tensor.producer is not None:
                    waiting[operand.tensor.producer] += 1
        for tensor in homes:
            assert tensor.producer is not None
            waiting[tensor.producer] += 1
        ready: deque[Node] = deque()

        def visited(tensor: Tensor) -> None:
            node = tensor.producer
            if node is not None:
                waiting[node] -= 1
                if waiting[node] == 0:
                    ready.append(node)

        for tensor in reversed(homes):
            visited(tensor)
        order = []
        while ready:
            node = ready.popleft()
            order.append(node)
            for operand in node.operands:
                visited(operand.tensor)
        order.reverse()
        return order

    # Memory

    def _share(self, homes: Sequence[Tensor]) -> None:
        """An operator that computes element by element takes the memory of an input that nothing else uses.

        One use is counted, of the tensor itself: that it lives in a Join's output, or has views, is not looked at.
        Where both inputs could be taken, the order of a depth-first walk decides.
        """
        uses = self._uses()
        roots = [tensor.producer for tensor in homes if tensor.producer is not None]
        claimed: set[Node] = set()
        for node in reversed(depth_first(roots)):
            for tensor in node.outputs:
                readers = uses[tensor]
                if tensor.graph_output is not None or tensor.joined is not None or len(readers) != 1:
                    continue
                reader, k = readers[0]
                if not reader.family.computes or reader.copies or reader.fused or reader in claimed:
                    continue
                operand, output = reader.operands[k], reader.output
                if operand.view and not same_layout(operand.sizes, tensor.strides, packed_strides(operand.sizes)):
                    continue
                if not output.packed or (operand.thin and not self.traits.shares_thin_parts):
                    continue
                tensor.shares = output
                claimed.add(reader)

    def _dispatches(self, order: Sequence[Node]) -> Iterator[Dispatch]:
        for node in order:
            if node.family is Family.JOIN and not node.kept:
                self._region(node.output)
                continue
            reads = [self._read_region(operand) for operand in node.operands]
            name = "COPY" if node.number is None else "SWISH" if node.fused else short_name(node.type)
            if node.family is Family.JOIN:
                yield from self._kept_join(node, reads)
                continue
            for tensor, offsets in zip(node.outputs, _offsets(node), strict=True):
                found, begins = reads, None
                copies = node.copies or node.family in (Family.SPLIT, Family.SLICE, Family.IDENTITY)
                if node.family in (Family.SPLIT, Family.SLICE):
                    if self.traits.splits_are_slices:  # its operand is the part already
                        offsets = (0,) * len(offsets)
                    found = [(reads[0][0], _part(reads[0][1], tensor.sizes, offsets, node.steps))]
                    begins = reads[0][1].offset
                region = self._region(tensor)
                yield Dispatch(node.number, name, tuple(found), tensor, region, copies, node.wrong, None, begins)

    def _kept_join(self, node: Node, reads: Sequence[tuple[Tensor, Region]]) -> Iterator[Dispatch]:
        whole = self._region(node.output)
        for read, place in zip(reads, _join_places(node, node.output.strides), strict=True):
            region = Region(whole.buffer, whole.offset + place, read[1].sizes, whole.steps, whole.element_bytes)
            yield Dispatch(node.number, "JOIN", (read,), node.output, region, True, None, whole.offset)

    def _read_region(self, operand: Operand) -> tuple[Tensor, Region]:
        region = self._region(operand.tensor)
        return operand.tensor, Region(
            region.buffer, region.offset + operand.offset, operand.sizes, region.steps, region.element_bytes
        )

    def _region(self, tensor: Tensor) -> Region:
        """Where the tensor lies."""
        chain = [tensor]
        while chain[-1].region is None:
            last = chain[-1]
            onward = last.joined[0] if last.joined else last.shares
            if last.graph_output is not None or last.producer is None or onward is None:
                self._settle(last)
                break
            chain.append(onward)
        for near, far in zip(reversed(chain[:-1]), reversed(chain[1:]), strict=True):
            assert far.region is not None
            offset = far.region.offset + (near.joined[1] if near.joined else 0)
            steps = tuple(stride * near.element_bytes for stride in near.strides)
            near.region = Region(far.region.buffer, offset, near.sizes, steps, near.element_bytes)
        assert tensor.region is not None
        return tensor.region

    def _lost_place(self, output: Tensor, k: int) -> tuple[Tensor, Region, int]:
        node = output.producer
        assert node is not None
        whole, place = self._region(output), list(_join_places(node, output.strides))[k]
        return (
            output,
            Region(whole.buffer, whole.offset + place, node.operands[k].sizes, whole.steps, whole.element_bytes),
            k,
        )

    def _settle(self, tensor: Tensor) -> None:
        """Memory of its own, or a graph's input or output buffer."""
        if tensor.graph_output is not None:
            buffer = f"output {tensor.graph_output}"
        elif tensor.producer is None:
            buffer = f"input {tensor.index}"
        else:
            buffer = f"temporary {len(self.buffers)}"
        self.buffers[buffer] = tensor.bytes
        steps = tuple(stride * tensor.element_bytes for stride in tensor.strides)
        tensor.region = Region(buffer, 0, tensor.sizes, steps, tensor.element_bytes)

    def _fit(self, dispatch: Dispatch) -> Dispatch:
        """The dispatch; Refused where what it writes does not fit the memory that its output was given."""
        written = dispatch.writes
        available = self.buffers[written.buffer]
        if written.end <= available:
            return dispatch
        bytes = written.end - written.offset
        message = f"{bytes} bytes at {written.offset} do not fit the {available} of {written.buffer}"
        raise Refused(dispatch.node or 0, message)


def compile_graph(graph: GraphDesc, traits: GraphTraits) -> Plan:
    """The dispatches that a sound graph compiles to; Refused, Crash or Unmodelled."""
    compiler = Compiler(graph, traits)
    return compiler.compile()


def depth_first(roots: Iterable[Node]) -> list[Node]:
    """The nodes that these depend on, and themselves, each behind what it depends on; operands in order."""
    done: set[Node] = set()
    order = []
    for root in roots:
        stack = [(root, 0)]
        while stack:
            node, k = stack.pop()
            if node in done:
                continue
            if k < len(node.operands):
                stack.append((node, k + 1))
                producer = node.operands[k].tensor.producer
                if producer is not None and producer not in done:
                    stack.append((producer, 0))
            else:
                done.add(node)
                order.append(node)
    return order


def _numbers(desc: NeighbourOperatorDesc, name: str, count: int) -> tuple[int, ...]:
    value = desc.members.get(name)
    if not isinstance(value, tuple) or len(value) != count:
        raise Unmodelled(f"{name} is needed to know which elements a Slice takes")
    return tuple(int(number) for number in value)


def _origin(tensor: Tensor) -> object:
    """What the fusion compares: the node, whichever of its outputs it is."""
    return tensor.producer if tensor.producer is not None else tensor


def _named(tensor: Tensor) -> str:
    """How messages name a tensor."""
    if tensor.producer is None:
        return f"graph input {tensor.index}"
    return f"output {tensor.index} of node {tensor.producer.number}"


def _outermost(tensor: Tensor) -> Tensor:
    while tensor.joined is not None:
        tensor = tensor.joined[0]
    return tensor


def _only_copies(node: Node) -> bool:
    return node.family is Family.IDENTITY or node.slices_everything


def _block_bytes(tensor: Tensor, axis: int) -> int:
    """Bytes of the tensor's part in one row of the dimensions before the axis."""
    return math.prod(tensor.sizes[axis:]) * tensor.element_bytes


def _is_block(tensor: Tensor, output: Tensor) -> bool:
    """Whether an input of a Join is one block of the output, without gaps."""
    return same_layout(tensor.sizes, output.strides, packed_strides(tensor.sizes))


def _copies_anywhere(node: Node) -> bool:
    """Whether a node writes to any place, not only to whole vectors."""
    return node.family in (Family.SPLIT, Family.JOIN) or node.from_split


def _split_offsets(node: Node) -> Iterator[tuple[int, ...]]:
    start = 0
    for tensor in node.outputs:
        yield tuple(start if d == node.axis else 0 for d in range(len(tensor.sizes)))
        start += tensor.sizes[node.axis]


def _offsets(node: Node) -> list[tuple[int, ...]]:
    """Where each output begins in the input, in elements."""
    if node.family is Family.SPLIT:
        return list(_split_offsets(node))
    return [node.offsets or (0,) * len(node.output.sizes)]


def _join_places(node: Node, strides: Sequence[int]) -> Iterator[int]:
    """Where each input begins in the output, in bytes."""
    place = 0
    for operand in node.operands:
        yield place * strides[node.axis] * node.output.element_bytes
        place += operand.sizes[node.axis]


def _part(region: Region, sizes: tuple[int, ...], offsets: Sequence[int], steps: Sequence[int]) -> Region:
    offset = region.offset + sum(a * b for a, b in zip(offsets, region.steps, strict=True))
    scaled = tuple(a * b for a, b in zip(region.steps, steps, strict=True)) if steps else region.steps
    return Region(region.buffer, offset, sizes, scaled, region.element_bytes)
