"""Split nodes of no framework, and the nodes of one kind in a model that was read."""

from dmlsplit.descriptors.diagnostics import Report
from dmlsplit.formats import onnx as front_end
from dmlsplit.formats.element_types import ELEMENT_TYPES
from dmlsplit.formats.joins import JoinNode
from dmlsplit.formats.nodes import SplitNode


def split_node(shape=(2, 6), axis=1, lengths=(1, 2, 3), element="float32", diagnostics=()):
    outputs = tuple((*shape[:axis], n, *shape[axis + 1 :]) for n in lengths or ()) if shape else ()
    return SplitNode(
        name="n",
        op="Split",
        version=13,
        input_shape=shape,
        data_type=element,
        axis=axis,
        lengths=lengths,
        output_shapes=outputs,
        report=Report(tuple(diagnostics), "test", None, "Split"),
        element=ELEMENT_TYPES.get(element),
    )


def splits(model):
    return [node for node in model.items if isinstance(node, SplitNode)]


def joins(model):
    return [node for node in model.items if isinstance(node, JoinNode)]


def read_one(*args, given=None, **fields):
    """The one Split of a model; `given` are arguments of read()."""
    from tests.models import model

    [split] = splits(front_end.read_model(model(*args, **fields), **(given or {})))
    return split


def rules(split):
    """Ids of what was found, but for the runtimes that do otherwise."""
    return {d.rule for d in split.report.diagnostics} - {"node/runtime-differs"}
