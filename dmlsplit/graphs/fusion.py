"""CompileGraph's fusion: p * sigmoid(q) becomes one dispatch, which is sometimes wrong."""

from __future__ import annotations

from dmlsplit.graphs.operators import MULTIPLY, SIGMOID, Family
from dmlsplit.graphs.program import (
    Crash,
    Node,
    Operand,
    Tensor,
    Unmodelled,
    Uses,
    Wrong,
    depth_first,
)
from dmlsplit.graphs.reading import Program
from dmlsplit.graphs.traits import Fusion
from dmlsplit.rules.graph_faults import Fault, FaultKind


def fuse(program: Program) -> None:
    """Replaces, in place, each p * sigmoid(q) by the fused q * sigmoid(q) if p and q come from the same node, since
    CompileGraph compares only the nodes. Marks the product as wrong if p is not q.

    So p may be a different output of the same Split. Raises Crash for products that end CompileGraph's process.
    """
    if program.traits.fusion is Fusion.NONE:
        return
    crashes: list[Fault] = []
    try:
        _fuse_sigmoids(program, crashes)
    except Unmodelled:
        if not crashes:  # what follows a product that ends the process is not compiled
            raise
    if crashes:
        first, *others = crashes
        raise Crash(first, others)
    # Nodes all of whose readers were removed are not computed.
    read = set(depth_first(tensor.producer for tensor in program.outputs if tensor.producer is not None))
    program.nodes = [node for node in program.nodes if node in read]
    if program.traits.fusion is Fusion.CHAIN and any(node.fused for node in program.nodes):
        _fuse_products(program)


def _fuse_sigmoids(program: Program, crashes: list[Fault]) -> None:
    """Fuses, in place, the products with a sigmoid. Products that end CompileGraph's process are added to `crashes` and
    left as they are."""
    uses = program.uses()
    for product in program.nodes:
        for k in (0, 1) if product.type == MULTIPLY else ():
            gate, other = product.operands[k].tensor, product.operands[1 - k].tensor
            sigmoid = _only_maker(program, gate, SIGMOID, uses)
            if sigmoid is None:
                continue
            source = sigmoid.operands[0]
            if source.tensor.origin is other.origin:
                _check_sizes(product)
                if other is not source.tensor:
                    fault = Fault(FaultKind.GATE, product.number, (source.tensor.name, other.name))
                    product.wrong = Wrong(fault, ((_value_of(source.tensor), _value_of(other)),))
                product.operands, product.fused = [source], True
                sigmoid.removed = True
                break
            if program.traits.fusion is Fusion.CHAIN and _fuse_chain(program, product, k, sigmoid, uses, crashes):
                break


def _check_sizes(product: Node) -> None:
    """Raises Unmodelled if a factor's sizes differ from the product's."""
    if any(operand.sizes != product.output.sizes for operand in product.operands):
        raise Unmodelled("a product of tensors of different sizes with a sigmoid was not observed")


def _only_maker(program: Program, tensor: Tensor, type: int, uses: Uses) -> Node | None:
    """Returns the node that produces a tensor if the node has the DML_OPERATOR_TYPE `type` and is neither fused nor
    removed, and the tensor has one reader and is no graph output; else None. `uses` maps tensors to their readers."""
    node = tensor.producer
    if node is None or node.type != type or node.removed or node.fused:
        return None
    return node if len(uses[tensor]) == 1 and tensor not in program.first_ranks else None


def _fuse_chain(program: Program, product: Node, k: int, sigmoid: Node, uses: Uses, crashes: list[Fault]) -> bool:
    """Replaces (p * q) * sigmoid(r), in place, by (r * sigmoid(r)) * rest, in which rest keeps its output index but is
    taken from r's node, and returns True. If r's node has no such output, adds the fault to `crashes` instead.

    Returns False, and changes nothing, if the product has another form.
    """
    gate, other = product.operands[k], product.operands[1 - k]
    inner = _only_maker(program, other.tensor, MULTIPLY, uses)
    if inner is None:
        return False
    source = sigmoid.operands[0].tensor
    p, q = (operand.tensor for operand in inner.operands)
    if p is not source and q.origin is not source.origin:
        return False
    rest = q if p is source else p
    _check_sizes(product)
    _check_sizes(inner)
    place = rest.index if rest.producer is not None else 0
    found = [source] if source.producer is None else source.producer.outputs
    if place >= len(found):
        crashes.append(Fault(FaultKind.PRODUCT_CRASHES, product.number or 0, numbers=(place, len(found))))
        return True
    taken = found[place]
    if {p, q} != {source, taken} or (p is q) != (source is taken):
        product.wrong = Wrong(
            Fault(FaultKind.PRODUCT, product.number, (taken.name, source.name, p.name, q.name)),
            ((_value_of(taken), _value_of(rest)), (_value_of(source), _value_of(p if rest is q else q))),
        )
    sigmoid.fused = inner.removed = True
    product.operands[1 - k] = Operand(gate.tensor, gate.rank)
    product.operands[k] = Operand(taken, gate.rank)
    return True


def _fuse_products(program: Program) -> None:
    """Fuses, in place, each ((x * sigmoid(x)) * y) * z, whose first product is already fused, into one node that reads
    x, y and z."""
    uses = program.uses()
    for outer in program.nodes:
        for k in (0, 1) if outer.type == MULTIPLY and len(outer.operands) == 2 else ():
            inner = _only_maker(program, outer.operands[k].tensor, MULTIPLY, uses)
            if inner is None:
                continue
            swishes = [(i, _swish(program, inner.operands[i].tensor, uses)) for i in (0, 1)]
            i, swish = next((each for each in swishes if each[1] is not None), (0, None))
            if swish is None:
                continue
            outer.operands = [swish.operands[0], inner.operands[1 - i], outer.operands[1 - k]]
            outer.wrong = outer.wrong or inner.wrong or swish.wrong
            outer.fused = inner.removed = swish.removed = True
            break
    program.nodes = [node for node in program.nodes if not node.removed]


def _swish(program: Program, tensor: Tensor, uses: Uses) -> Node | None:
    """Returns the node that produces a tensor if the node is a fused x * sigmoid(x), and the tensor has one reader and
    is not a graph output; else None. `uses` maps tensors to their readers."""
    node = tensor.producer
    return node if node and node.fused and len(uses[tensor]) == 1 and tensor not in program.first_ranks else None


def _value_of(tensor: Tensor) -> Tensor:
    """Returns the tensor that a chain of identities copies to this one; the tensor itself if no identity produces
    it."""
    while tensor.producer is not None and tensor.producer.family is Family.IDENTITY:
        tensor = tensor.producer.operands[0].tensor
    return tensor
