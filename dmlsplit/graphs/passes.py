"""The passes of CompileGraph before memory is given: they say which nodes are left."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, TypeAlias

from dmlsplit.descriptors.layout import is_packed, packed_strides
from dmlsplit.graphs.operators import MULTIPLY, SIGMOID, Family
from dmlsplit.graphs.program import (
    VECTOR,
    Crash,
    Node,
    Operand,
    Part,
    Refused,
    Tensor,
    Unmodelled,
    Uses,
    Wrong,
    depth_first,
    same_layout,
)
from dmlsplit.graphs.reading import Program
from dmlsplit.graphs.traits import FiveDimensions, Fusion

Readers: TypeAlias = Sequence[tuple[Node, int]]
"""Nodes, and which of their inputs it is."""
INNER: Final = 4
"""Dimensions of the shader that broken Splits of five and more are compiled for."""


class Passes(Program):
    """The passes over nodes: what is fused, bypassed, cut and elided, and which Splits and Joins stay."""

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
                if source.tensor.origin is other.origin:
                    self._check_sizes(product)
                    if other is not source.tensor:
                        product.wrong = Wrong(
                            "graph/fused-wrongly",
                            f"it computes q * sigmoid(q) of q = {source.tensor.name}, not {other.name} * sigmoid(q)",
                            ((_value_of(source.tensor), _value_of(other)),),
                        )
                    product.operands, product.fused = [source], True
                    sigmoid.removed = True
                    break
                if self.traits.fusion is Fusion.CHAIN and self._fuse_chain(product, k, sigmoid, uses):
                    break
        # Nodes that only lost nodes have read are not computed.
        read = set(depth_first(tensor.producer for tensor in self.outputs if tensor.producer is not None))
        self.nodes = [node for node in self.nodes if node in read]
        if self.traits.fusion is Fusion.CHAIN:
            self._fuse_products()

    def _check_sizes(self, product: Node) -> None:
        if any(operand.sizes != product.output.sizes for operand in product.operands):
            raise Unmodelled("a product with a sigmoid of tensors of different sizes was not observed")

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
        if p is not source and q.origin is not source.origin:
            return False
        rest = q if p is source else p
        self._check_sizes(product)
        self._check_sizes(inner)
        place = rest.index if rest.producer is not None else 0
        found = [source] if source.producer is None else source.producer.outputs
        if place >= len(found):
            raise Crash(product.number or 0, f"its fusion wants output {place} of a node that has {len(found)}")
        taken = found[place]
        if {p, q} != {source, taken} or (p is q) != (source is taken):
            product.wrong = Wrong(
                "graph/fused-wrongly",
                f"it computes {taken.name} * r * sigmoid(r) of r = {source.name}, not {p.name} * {q.name} * sigmoid(r)",
                ((_value_of(taken), _value_of(rest)), (_value_of(source), _value_of(p if rest is q else q))),
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
                swishes = [(i, self._swish(inner.operands[i].tensor, uses)) for i in (0, 1)]
                i, swish = next((each for each in swishes if each[1] is not None), (0, None))
                if swish is None:
                    continue
                outer.operands = [swish.operands[0], inner.operands[1 - i], outer.operands[1 - k]]
                outer.wrong = outer.wrong or inner.wrong or swish.wrong
                outer.fused = inner.removed = swish.removed = True
                break
        self.nodes = [node for node in self.nodes if not node.removed]

    def _swish(self, tensor: Tensor, uses: Uses) -> Node | None:
        """The node of x * sigmoid(x), fused, if the tensor is that and used once."""
        node = tensor.producer
        return node if node and node.fused and len(uses[tensor]) == 1 and tensor not in self.output_set else None

    def _bypass(self) -> None:
        """Readers of an identity's output read its input instead. Of a graph output only the home is left.

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
        self.output_set = set(self.outputs)
        self.nodes = [node for node in self.nodes if node.output not in instead]

    def _cut(self) -> None:
        """A Split becomes a Slice for each output that is used."""
        uses = self._uses()
        before, self.nodes = self.nodes, []
        for node in before:
            if node.family is not Family.SPLIT:
                self.nodes.append(node)
                continue
            source = node.operands[0]
            for tensor, offsets in zip(node.outputs, node.output_offsets(), strict=True):
                if tensor in self.output_set or uses[tensor]:
                    operand = Operand(source.tensor, source.rank)
                    tensor.producer = Node(Family.SLICE, node.type, [operand], [tensor], node.number, offsets=offsets)
                    tensor.producer.from_split = True
                    self.nodes.append(tensor.producer)

    def _elide(self) -> None:
        """A Split, or a Slice, whose parts are read by operators that can read with strides is no dispatch.

        Not where a part is a graph output, is read by a Join that is computed in place, or has views itself. A view
        begins at a multiple of 16 bytes. What reads the part reads the Split's input; the input's other views do not
        know of it. A Join that takes the part into rows takes the Split's whole input for it.
        """
        traits = self.traits
        uses = self._uses()
        families = {Family.SPLIT, Family.SLICE} if traits.slices_are_views else {Family.SPLIT}
        removed: set[Node] = set()
        for node in reversed(self._topological()):
            if node.family is Family.JOIN and not node.kept and not traits.joins_reuse_rows:
                self._lay_in_rows(node.output, [use for use in uses[node.output] if use[0] not in removed])
            if node.family not in families:
                continue
            source = node.operands[0]
            if node.slices_everything and not traits.splits_are_slices:
                continue
            element = source.tensor.element_bytes
            strides = packed_strides(source.tensor.sizes)
            parts = [
                (tensor, sum(a * b for a, b in zip(offsets, strides, strict=True)) * element)
                for tensor, offsets in zip(node.outputs, node.output_offsets(), strict=True)
            ]
            readers = [[use for use in uses[tensor] if use[0] not in removed] for tensor, _ in parts]
            if self._elidable(node, parts, strides, readers):
                for (tensor, offset), part_readers in zip(parts, readers, strict=True):
                    for reader, k in part_readers:
                        old = reader.operands[k]
                        if reader.family is Family.JOIN and not reader.kept:
                            part = Part(node.number or 0, tensor.sizes, node.axis, offset == 0)
                            reader.operands[k] = replace(source, rank=old.rank, stands_for=part)
                        else:
                            reader.operands[k] = Operand(
                                source.tensor,
                                old.rank,
                                source.offset + offset + old.offset,
                                old.sizes,
                                view=source.view or old.view or not node.slices_everything,
                                thin=node.family is Family.SPLIT and tensor.sizes[node.axis] == 1,
                            )
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

    def _lay_in_rows(self, output: Tensor, readers: Readers) -> None:
        """The strides of a Join's output that will live in rows of another Join, where it is used only there."""
        if len(readers) != 1 or output in self.output_set:
            return
        ((reader, k),) = readers
        if reader.family is Family.JOIN and not reader.kept and not reader.operands[k].view:
            output.strides = reader.output.strides

    def _elidable(
        self, node: Node, parts: Sequence[tuple[Tensor, int]], strides: Sequence[int], uses: Sequence[Readers]
    ) -> bool:
        """`uses`: the readers of each part."""
        traits = self.traits
        if any(step != 1 for step in node.steps):
            return False
        if node.family is Family.SLICE and not traits.splits_are_slices:
            changed = zip(node.output.sizes, node.operands[0].tensor.sizes, strict=True)
            if sum(a != b for a, b in changed) != 1:
                return False
        for (tensor, offset), readers in zip(parts, uses, strict=True):
            if tensor in self.output_set:
                return False
            in_rows = self._join_for_rows(tensor, readers) is not None
            if offset % VECTOR and (readers or traits.all_places_aligned):
                copies = readers and all(reader.only_copies for reader, _ in readers)
                if not (traits.splits_are_slices and copies):
                    return False
            computed = any(reader.family.computes or reader.family is Family.SLICE for reader, _ in readers)
            if computed and traits.vector_reads and tensor.block_bytes(node.axis) % VECTOR:
                return False
            for reader, k in readers:
                if reader.operands[k].stands_for is not None:
                    return False
                if reader.family is Family.JOIN and not reader.kept:
                    if in_rows or tensor.is_block_of(reader.output):
                        return False
                    continue
                if reader.operands[k].view:
                    return False
                if traits.splits_are_slices and reader.family is Family.SLICE and not reader.slices_everything:
                    return False
                if self._too_narrow(reader, tensor.sizes, strides):
                    return False
        return True

    def _join_for_rows(self, tensor: Tensor, readers: Readers) -> tuple[Node, int] | None:
        """The Join, and which of its inputs, in whose rows a tensor with these readers can lie."""
        joins = [(node, k) for node, k in readers if node.family is Family.JOIN and not node.kept]
        viewed = any(node.operands[k].view for node, k in readers)  # views are of packed tensors
        if not joins or viewed or not (self.traits.joins_reuse_rows or len(readers) == 1):
            return None
        rows = joins[-1][0].output.strides
        others = [node for node, _ in readers if node.family is not Family.JOIN]
        return None if any(self._too_narrow(node, tensor.sizes, rows) for node in others) else joins[-1]

    def _break_splits(self) -> None:
        """A Split of five dimensions is compiled as one of four: what lies behind the first index is not found."""
        uses = self._uses()
        broken = []
        for node in self.nodes:
            outer = len(node.output.sizes) - INNER
            if node.family is Family.SPLIT and math.prod(node.operands[0].sizes[:-INNER]) > 1:
                broken.append(node)
                message = "all but the elements of the first index come from wrong places"
                node.wrong = Wrong("graph/five-dimensions", message, behind_first=True)
                if node.axis < outer:
                    used = [k for k, tensor in enumerate(node.outputs) if uses[tensor] or tensor in self.output_set]
                    if used == [0] and math.prod(node.output.sizes[:-INNER]) > 1:
                        raise Unmodelled("what the first part of a Split along an outer dimension is was not seen")
                    message = f"a Split of {outer + INNER} dimensions along one before the last four"
                    raise Refused(node.number or 0, message, "graph/five-dimensions")
            if node.family is Family.JOIN and node.kept and node.axis < outer and len(node.operands) > 1:
                if any(math.prod(operand.sizes[:-INNER]) == 1 for operand in node.operands):
                    message = f"a Join of {outer + INNER} dimensions along one before the last four copies its inputs"
                    raise Refused(node.number or 0, message, "graph/five-dimensions")
                if outer > 1:
                    raise Unmodelled("which Joins of more than five dimensions are refused was not found out")
        unseen = self.traits.five_dimensions is FiveDimensions.UNKNOWN
        if any(unseen or len(node.output.sizes) > 5 for node in broken):
            raise Unmodelled("what a Split of so many dimensions computes was not observed of this build")

    def _too_narrow(self, node: Node, sizes: Sequence[int], strides: Sequence[int], *, leaves: bool = False) -> bool:
        """Whether an operator of at most four dimensions would have to read, or write, five that do not fold.

        Which do was tried out. With four sizes above 1, and a gap behind the first, it is the innermost size that
        decides: it has to be as large as the gap, in multiples of what lies behind the first. `leaves`: it
        writes a graph output.
        """
        if node.family not in (Family.ACTIVATION, Family.SLICE) or len(sizes) not in self.traits.narrow_ranks:
            return False
        if sizes[1] == sizes[2] == 1 and not leaves:
            return False
        large = [(size, stride) for size, stride in zip(sizes, strides, strict=True) if size > 1]
        if is_packed(sizes, strides):
            return len(large) > 3
        rows = [strides[-2] * stride for stride in packed_strides(sizes[:-1])]
        if sizes[-1] > 1 and same_layout(sizes[:-1], strides[:-1], rows):
            return not self.traits.narrow_ranks_take_rows
        behind = [size for size, _ in large[1:]]
        if len(large) == 4 and packed_strides(behind) == tuple(stride for _, stride in large[1:]):
            return large[0][1] != math.prod(behind) * behind[-1]
        return leaves or len(large) != 2 or sizes[0] == 1

    def _copies_inputs(self, join: Node, strides: Sequence[int]) -> bool:
        """Whether an input cannot be computed into a Join's output that lies in these strides."""
        for operand, place in zip(join.operands, join.places(strides), strict=True):
            tensor, producer = operand.tensor, operand.tensor.producer
            if place % VECTOR:
                return True
            if producer is None or producer.family in (Family.SPLIT, Family.JOIN) or operand.stands_for is not None:
                continue
            if self.traits.vector_joins and tensor.block_bytes(join.axis) % VECTOR:
                return True
            if producer.family is Family.SLICE and len(tensor.sizes) in self.traits.narrow_ranks:
                raise Unmodelled("when a Slice of five dimensions is computed into a Join was not found out")
            if self._too_narrow(producer, tensor.sizes, strides, leaves=tensor in self.output_set):
                return True
        return False


def _value_of(tensor: Tensor) -> Tensor:
    """The tensor that identities made this one of."""
    while tensor.producer is not None and tensor.producer.family is Family.IDENTITY:
        tensor = tensor.producer.operands[0].tensor
    return tensor
