"""The model of CompileGraph: a graph becomes a list of dispatches, and the memory that each one reads and writes.

Found by asking builds of DirectML, and true of them as far as `Unmodelled` does not say otherwise. It happens in this
order; the first three steps are in passes.py, the others below:

    fuse        p * sigmoid(q) becomes one dispatch
    bypass      identities are taken out
    elide       what reads a part of a Split reads the Split's input at an offset instead: the part is a *view*
    place       an input of a Join is computed straight into the joined buffer: the input *lives* in the output
    home        a graph output is computed straight into the buffer that is bound for it, or copied there
    order       nodes are executed by depth, the deepest first
    share       an element-by-element operator works *in place*: its output takes the memory of one input

At the end every tensor has its place in a buffer. Each step asks how often a tensor is used, and counts uses of the
tensor itself only. So memory is shared although something else still needs it: a view of it, or a tensor that lives in
it. That is what goes wrong in graphs.
"""

from __future__ import annotations

import math
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from dmlsplit.descriptors.layout import is_packed, packed_strides
from dmlsplit.graphs.descriptors import GraphDesc
from dmlsplit.graphs.operators import Family, short_name
from dmlsplit.graphs.passes import Passes
from dmlsplit.graphs.program import (
    VECTOR,
    BufferView,
    CompiledGraph,
    Dispatch,
    Node,
    Operand,
    Part,
    Refused,
    StandIn,
    Tensor,
    Unmodelled,
    Uses,
)
from dmlsplit.graphs.traits import FiveDimensions, GraphTraits, JoinPlacement

LAST_FACTOR: Final = 2
"""Of x * sigmoid(x) * y * z: what the fused product can be computed in place of."""


class Compiler(Passes):
    """One graph on its way to dispatches, for builds of these traits."""

    def compile(self) -> CompiledGraph:
        self._fuse()
        self._bypass()
        if self.traits.splits_are_slices:
            self._cut()
        if self.traits.join_placement is JoinPlacement.ALL_OR_NONE:
            # Where one input of a Join would begin at an odd place, the Join copies all of them itself.
            for join in [node for node in self.nodes if node.family is Family.JOIN]:
                join.kept = self._copies_inputs(join, packed_strides(join.output.sizes))
        self._elide()
        if self.traits.five_dimensions is not FiveDimensions.SOUND:
            self._break_splits()
        self._place()
        homes = self._home()
        order = reversed(self._readers_first(homes, deepest=False))
        self._share(homes)
        dispatches = self._without_idle(self._fitting(self._dispatches(order)), homes)
        # Only where an operator in place has joined two buffers does a copy that was put in stay in one.
        if self.traits.forgets_repeats and any(
            d.node is None and d.reads[0][1].buffer == d.writes.buffer for d in dispatches
        ):
            raise Unmodelled("a copy from one Join to another that came to lie in the same buffer may be forgotten")
        stand_ins = [
            StandIn(node.output, self._place_of(node, k, part.sizes), whole, part)
            for node, k, whole, part in self.stand_ins
        ]
        lost = [(node.output, self._place_of(node, k, node.operands[k].sizes), k) for node, k in self.lost]
        return CompiledGraph(dispatches, self.results, homes, self.parts, lost, stand_ins)

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
            if node.family is Family.JOIN and node.kept:
                narrow = len(node.output.sizes) in self.traits.narrow_ranks
                if narrow and not node.output.packed and not self._copies_inputs(node, node.output.strides):
                    raise Unmodelled("what a Join of five dimensions in rows of another copies was not found out")
            elif node.family is Family.JOIN:
                if self.traits.join_placement is JoinPlacement.ALL_OR_NONE:
                    node.kept = self._copies_inputs(node, node.output.strides)
                if not node.kept:
                    joins.append(node)
        for node in joins:
            self._fill(node)

    def _place_tensor(self, tensor: Tensor, uses: Uses) -> None:
        traits, readers = self.traits, uses[tensor]
        joins = [(node, k) for node, k in readers if node.family is Family.JOIN and not node.kept]
        blocks = [(node, k) for node, k in joins if tensor.is_block_of(node.output)]
        found = [node.operands[k] for node, k in blocks]
        direct = any(operand.rank[0] == 0 and operand.stands_for is None for operand in found)
        is_output = tensor in self.output_set
        if is_output and blocks and (direct or tensor not in self.result_set):
            self.copies_for_outputs.add(tensor)
        chosen = blocks[0] if blocks else self._join_for_rows(tensor, readers)
        producer = tensor.producer
        assert producer is not None
        if traits.one_home_per_node and (is_output or chosen):
            self.homes_of_nodes.setdefault(producer, tensor)
        if chosen is None or (is_output and tensor not in self.copies_for_outputs):
            return
        node, k = chosen
        output, operand = node.output, node.operands[k]
        place = node.place(output.strides, k)
        if producer.family is Family.APART:
            return
        if operand.view or place % VECTOR or self.homes_of_nodes.get(producer, tensor) is not tensor:
            return
        anywhere = traits.join_placement is JoinPlacement.ALL_OR_NONE or producer.copies_anywhere
        if not anywhere and not tensor.is_vectors_in(output.strides):
            return
        tensor.joined, tensor.strides = (output, place), output.strides
        tensor.joined_as = (node, k)

    def _fill(self, node: Node) -> None:
        """Copies to the places of a Join that no tensor lives in."""
        output = node.output
        self.parts[output] = []
        places = node.places(output.strides)
        for k, operand in enumerate(node.operands):
            tensor, part = operand.tensor, operand.stands_for
            if tensor.joined_as == (node, k):
                self.parts[output].append(tensor)
            elif self.traits.forgets_repeats and tensor.joined and [*tensor.outer()][-1] in (output, *output.outer()):
                self.lost.append((node, k))
            else:
                copy = self._copy(operand)
                copy.joined, copy.strides = (output, places[k]), output.strides
                self.parts[output].append(copy)
                node.operands[k] = Operand(copy, operand.rank)
            if part is not None:
                _refuse_narrow(operand, part, output)
                self.stand_ins.append((node, k, self.parts[output][-1], part))

    def _copy(self, operand: Operand) -> Tensor:
        source = operand.tensor
        read = Operand(source, operand.rank, operand.offset, operand.sizes)
        node = Node(Family.IDENTITY, 0, [read], [], None, copies=True)
        node.outputs = [Tensor(operand.sizes, source.element_bytes, node, 0)]
        self.nodes.append(node)
        return node.output

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

    def _readers_first(self, homes: Sequence[Tensor], *, deepest: bool) -> list[Node]:
        """The nodes from the graph outputs on, the last output first, each behind all that read its outputs.

        Level by level; `deepest`: of those whose readers are done the one that became so last.
        """
        waiting: dict[Node, int] = defaultdict(int)
        for node in self.nodes:
            for operand in node.operands:
                if operand.tensor.producer is not None:
                    waiting[operand.tensor.producer] += 1
        for tensor in homes:
            assert tensor.producer is not None
            waiting[tensor.producer] += 1
        ready: deque[Node | Tensor] = deque(homes if deepest else reversed(homes))
        order = []
        while ready:
            item = ready.pop() if deepest else ready.popleft()
            if isinstance(item, Node):
                order.append(item)
            for tensor in [operand.tensor for operand in item.operands] if isinstance(item, Node) else [item]:
                producer = tensor.producer
                if producer is not None:
                    waiting[producer] -= 1
                    if waiting[producer] == 0:
                        ready.append(producer)
        return order

    def _share(self, homes: Sequence[Tensor]) -> None:
        """An operator that computes element by element takes the memory of an input that nothing else uses.

        One use is counted, of the tensor itself: that it lives in a Join's output, or has views, is not looked at.
        Where both inputs could be taken, the order of the nodes that they come from decides.
        """
        uses = self._uses()
        claimed: set[Node] = set()
        for node in self._readers_first(homes, deepest=True):
            for tensor in node.outputs:
                readers = uses[tensor]
                if tensor.graph_output is not None or tensor.joined is not None or len(readers) != 1:
                    continue
                reader, k = readers[0]
                if not reader.family.computes or reader.copies or reader in claimed:
                    continue
                if reader.fused and k != LAST_FACTOR:
                    continue
                operand, output = reader.operands[k], reader.output
                if math.prod(operand.sizes) != math.prod(output.sizes):  # it is broadcast
                    continue
                packed = output.packed and (not operand.view or is_packed(operand.sizes, tensor.strides))
                if not packed and not _lie_alike(operand.sizes, tensor.strides, output.strides):
                    continue
                if operand.thin and not self.traits.shares_thin_parts:
                    continue
                tensor.shares = output
                claimed.add(reader)

    def _dispatches(self, order: Iterable[Node]) -> Iterator[Dispatch]:
        for node in order:
            if node.family is Family.JOIN and not node.kept:
                self._region(node.output)
                continue
            reads = [self._read_region(operand) for operand in node.operands]
            name = "COPY" if node.number is None else "SWISH" if node.fused else short_name(node.type)
            if node.family is Family.JOIN:
                yield from self._kept_join(node, reads)
                continue
            for tensor, offsets in zip(node.outputs, node.output_offsets(), strict=True):
                found, begins = reads, None
                copies = node.copies or node.family in (Family.SPLIT, Family.SLICE, Family.IDENTITY)
                if node.family in (Family.SPLIT, Family.SLICE):
                    if self.traits.splits_are_slices:  # its operand is the part already
                        offsets = (0,) * len(offsets)
                    found = [(reads[0][0], reads[0][1].window(tensor.sizes, offsets, node.steps))]
                    begins = reads[0][1].offset
                region = self._region(tensor)
                in_place = len(found) == 1 and region.begins_as(found[0][1])
                yield Dispatch(
                    node.number,
                    name,
                    tuple(found),
                    tensor,
                    region,
                    copies,
                    copies or node.family.computes,
                    node.wrong,
                    binding=begins,
                    rectifies=in_place and node.keeps_positive,
                )

    def _without_idle(self, dispatches: Sequence[Dispatch], homes: list[Tensor]) -> list[Dispatch]:
        """Without copies that were put in and would leave their inputs where they are: the inputs stand for them."""
        source = {d.output: d.reads[0][0] for d in dispatches if d.node is None and d.reads[0][1] == d.writes}
        if not source:
            return list(dispatches)
        for tensors in (*self.parts.values(), homes):
            tensors[:] = [source.get(tensor, tensor) for tensor in tensors]
        self.stand_ins = [(node, k, source.get(whole, whole), part) for node, k, whole, part in self.stand_ins]
        return [dispatch for dispatch in dispatches if dispatch.output not in source]

    def _kept_join(self, node: Node, reads: Sequence[tuple[Tensor, BufferView]]) -> Iterator[Dispatch]:
        whole = self._region(node.output)
        for read, place in zip(reads, node.places(node.output.strides), strict=True):
            region = whole.part(place, read[1].sizes)
            yield Dispatch(node.number, "JOIN", (read,), node.output, region, True, True, view_offset=whole.offset)

    def _read_region(self, operand: Operand) -> tuple[Tensor, BufferView]:
        return operand.tensor, self._region(operand.tensor).part(operand.offset, operand.sizes)

    def _region(self, tensor: Tensor) -> BufferView:
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
            near.region = near.view(far.region.buffer, far.region.offset + (near.joined[1] if near.joined else 0))
        assert tensor.region is not None
        return tensor.region

    def _place_of(self, node: Node, k: int, sizes: tuple[int, ...]) -> BufferView:
        """Where input k of a Join should be."""
        return self._region(node.output).part(node.place(node.output.strides, k), sizes)

    def _settle(self, tensor: Tensor) -> None:
        """Memory of its own, or a graph's input or output buffer."""
        size = tensor.bytes
        if tensor.graph_output is not None:
            buffer = f"output {tensor.graph_output}"
        elif tensor.producer is None:
            buffer = f"input {tensor.index}"
        else:
            buffer = f"temporary {len(self.buffers)}"
            size = -(-size // VECTOR) * VECTOR
        self.buffers[buffer] = size
        tensor.region = tensor.view(buffer, 0)

    def _fitting(self, dispatches: Iterable[Dispatch]) -> list[Dispatch]:
        """The dispatches; Refused, for each buffer, where what they read or write does not fit the memory there is."""
        found = list(dispatches)
        refused: dict[str, Refused] = {}
        for dispatch in found:
            for region in (*(region for _, region in dispatch.reads), dispatch.writes):
                available = self.buffers[region.buffer]
                if region.end > available and region.buffer not in refused:
                    size = region.end - region.offset
                    message = f"{size} bytes at {region.offset} do not fit the {available} of {region.buffer}"
                    refused[region.buffer] = self._refused(dispatch, message)
        if refused:
            first, *others = refused.values()
            first.others = others
            raise first
        return found

    def _refused(self, dispatch: Dispatch, message: str) -> Refused:
        for _, _, whole, part in self.stand_ins:
            if dispatch.output is whole:
                return Refused(part.split, message, "graph/whole-for-part")
        return Refused(dispatch.node or 0, message)


def _lie_alike(sizes: Sequence[int], one: Sequence[int], other: Sequence[int]) -> bool:
    """Whether elements are as far apart in some strides as in others: those of a Split's part may be, and a Join's."""
    return all(a == b for size, a, b in zip(sizes, one, other, strict=True) if size > 1)


def _refuse_narrow(operand: Operand, part: Part, output: Tensor) -> None:
    """Refused where the whole that is copied for a part would have fewer bytes in the output's rows than it has."""
    extent = 1 + sum((size - 1) * stride for size, stride in zip(operand.sizes, output.strides, strict=True))
    thin = part.sizes[part.axis] == 1 < operand.sizes[part.axis]
    if thin or extent < math.prod(operand.sizes):
        raise Refused(part.split, "its input does not fit the place of a part", "graph/whole-for-part")


def compile_graph(graph: GraphDesc, traits: GraphTraits, assumed: Mapping[int, Family] | None = None) -> CompiledGraph:
    """The dispatches that a sound graph compiles to; Refused, Crash or Unmodelled. `assumed`: as Program has it."""
    return Compiler(graph, traits, assumed).compile()
