"""Random nodes whose sizes are open, and the same with sizes."""

from __future__ import annotations

from dataclasses import replace

from dmlsplit.descriptors.conditions import symbols_of, value_of
from dmlsplit.descriptors.diagnostics import Report
from dmlsplit.descriptors.dims import interval
from dmlsplit.formats.joins import JoinNode
from dmlsplit.formats.nodes import SplitNode
from dmlsplit.formats.onnx.tensors import element_type as onnx_type
from dmlsplit.formats.openvino.types import element_type as openvino_type
from dmlsplit.rules import judge_node
from dmlsplit.rules.onnx import OnnxConcat, OnnxSplit
from dmlsplit.rules.onnx.concat_facts import VERSIONS as CONCATS
from dmlsplit.rules.onnx.split_facts import VERSIONS as SPLITS
from dmlsplit.rules.openvino import OpenVinoConcat, OpenVinoSplit

TYPES = ("FLOAT", "FLOAT16", "INT64", "UINT8", "BOOL", "DOUBLE", "INT32", "COMPLEX64", "COMPLEX128", "STRING")
OPENVINO_TYPES = ("f32", "f16", "i64", "u8", "boolean", "f64", "i32", "bf16", "i4")
NAMES = ("batch", "height", "width")


def node_of(facts):
    """The node of facts, as the front ends make it."""
    report = Report(judge_node(facts, "n"), facts.specification, None, "n")
    is_onnx = isinstance(facts, OnnxSplit | OnnxConcat)
    element = (onnx_type if is_onnx else openvino_type)(facts.data_type)
    common = {"name": "n", "version": 1, "data_type": facts.data_type, "lengths": facts.lengths, "report": report}
    common |= {"element": element, "facts": facts}
    if isinstance(facts, OnnxSplit | OpenVinoSplit):
        shape = facts.input_shape if is_onnx else facts.data_shape
        op = "Split" if is_onnx else facts.op
        axis = facts.axis_index if facts.axis_index is not None else facts.axis
        return SplitNode(op=op, axis=axis, input_shape=shape, output_shapes=facts.output_shapes, **common)
    shapes = {"input_shapes": facts.shapes, "output_shape": facts.output_shape}
    return JoinNode(op="Concat", axis=facts.axis_index, **shapes, **common)


def open_dim(rng, size, openvino=False):
    """The size, or an open one that may be it; a name mostly means one size, if the model is to have a chance."""
    if rng.random() < 0.5:
        return size
    if openvino:
        return rng.choice([None, None, interval(rng.randint(0, size), size + rng.randint(0, 9)), interval(size, None)])
    return rng.choice([None, f"size{size}", f"size{size}", rng.choice(NAMES)])


def open_facts(rng):
    """Facts of a node that is right for some sizes, most of them with open ones."""
    kind = rng.choice(["onnx split", "onnx split", "onnx concat", "openvino split", "openvino concat"])
    openvino = kind.startswith("openvino")
    rank = rng.choice([1, 2, 3, 4, 4, 4, 5, 8, 9])
    sizes = [rng.choice([1, 2, 3, 4, 6, 12]) for _ in range(rank)]
    axis, count = rng.randrange(rank), rng.choice([1, 2, 2, 3, 4])
    data_type = rng.choice(OPENVINO_TYPES if openvino else TYPES)
    given = axis - rank if rng.random() < 0.3 else axis
    if kind.endswith("concat"):
        lengths = [rng.randint(0, 5) for _ in range(count)]
        shapes = [
            tuple([open_dim(rng, length if d == axis else size, openvino) for d, size in enumerate(sizes)])
            for length in lengths
        ]
        whole = [sum(lengths) if d == axis else size for d, size in enumerate(sizes)]
        declared = tuple([open_dim(rng, size, openvino) for size in whole]) if rng.random() < 0.3 else None
        types = (data_type,) * count
        if openvino:
            return OpenVinoConcat(tuple(shapes), types, given, declared_shape=declared)
        return OnnxConcat(rng.choice(CONCATS), tuple(shapes), types, given, declared_shape=declared)
    lengths = [rng.randint(0, 5) for _ in range(count)]
    equal = rng.random() < 0.5
    version = rng.choice(SPLITS)
    if equal and version == 18 and not openvino:
        chunk = rng.randint(1, 4)
        lengths = [*[chunk] * (count - 1), rng.randint(0, chunk)]
    elif equal:
        lengths = [rng.randint(0, 4)] * count
    sizes[axis] = sum(lengths)
    shape = tuple([open_dim(rng, size, openvino) for size in sizes])
    declared = ()
    if rng.random() < 0.3:
        declared = tuple(
            [
                tuple([open_dim(rng, length if d == axis else size, openvino) for d, size in enumerate(sizes)])
                for length in lengths
            ]
        )
    if openvino:
        facts = OpenVinoSplit(
            "Split", count, shape, data_type, given, "i64", (), num_splits=count, declared_shapes=declared
        )
        if equal:
            return facts
        values = list(lengths)
        if rng.random() < 0.4:
            values[rng.randrange(count)] = -1
        return replace(
            facts, op="VariadicSplit", num_splits=None, split_lengths=tuple(values), split_lengths_type="i64",
            split_lengths_shape=(count,),
        )  # fmt: skip
    facts = OnnxSplit(version, count, data_type=data_type, input_shape=shape, axis=given, declared_shapes=declared)
    if equal:
        return replace(facts, num_outputs=count if version == 18 else None)
    if version < 13:
        return replace(facts, split=tuple(lengths))
    fed = replace(facts, inputs=2, split_input=True, split_type="INT64", split_shape=(count,))
    how = rng.random()
    if how < 0.5:
        return replace(fed, split_values=tuple(lengths))
    return fed if how < 0.7 else replace(fed, split_dims=tuple([open_dim(rng, length) for length in lengths]))


def assignment(rng, facts):
    """A size for each symbol: small ones, large ones, and often what the conditions ask for."""
    symbols = {symbol.name: symbol for size in (*facts.whole, *facts.parts) for symbol in symbols_of(size)}
    for sizes in getattr(facts, "inputs", ()) if isinstance(facts, OnnxConcat | OpenVinoConcat) else ():
        symbols |= {symbol.name: symbol for size in sizes for symbol in symbols_of(size)}
    largest = rng.choice([4, 4, 12, 12, 70000, 2**31, 2**33])
    same = rng.randint(0, largest) if rng.random() < 0.3 else None
    values = {}
    for name, symbol in symbols.items():
        low, high = symbol.limits
        size = rng.randint(0, largest) if same is None else same
        size = max(size, low) if high is None else min(max(size, low), high)
        values[name] = size
    return values


def closed_sizes(expressions, values):
    return tuple([value_of(size, values) for size in expressions])
