"""Building small ONNX models."""

from __future__ import annotations

import onnx
from onnx import TensorProto, helper

from dmlsplit.formats import onnx as front_end
from tests.formats.split_nodes import splits

INT64, FLOAT, BOOL = TensorProto.INT64, TensorProto.FLOAT, TensorProto.BOOL
node = helper.make_node

EQUAL = node("Split", ["x"], ["a", "b"], axis=1)


def value(name, shape, data_type=FLOAT):
    return helper.make_tensor_value_info(name, data_type, shape)


def graph(nodes, inputs, outputs=("a",), initializers=(), name="g", value_info=()):
    infos = [helper.make_empty_tensor_value_info(o) if isinstance(o, str) else o for o in outputs]
    return helper.make_graph(nodes, name, inputs, infos, list(initializers), value_info=list(value_info))


def model(nodes, inputs, outputs=("a",), opset=18, initializers=(), functions=(), domains=(), **fields):
    imports = [helper.make_opsetid("", opset)] if opset else []
    imports += [helper.make_opsetid(domain, 1) for domain in domains]
    given = {k: fields.pop(k) for k in ("value_info",) if k in fields}
    g = graph(nodes, inputs, outputs, initializers, **given)
    return helper.make_model(g, opset_imports=imports, functions=list(functions), **fields)


def ints(name, *values):
    return helper.make_tensor(name, INT64, [len(values)], values)


def with_reference(made, name, reference, data_type=onnx.AttributeProto.INT):
    """The node with an attribute that refers to one of the function around it."""
    made.attribute.append(onnx.AttributeProto(name=name, type=data_type, ref_attr_name=reference))
    return made


def read_one(*args, given=None, **fields):
    """The one Split of a model; `given` are arguments of read()."""
    [split] = splits(front_end.read_model(model(*args, **fields), **(given or {})))
    return split


def rules(split):
    """Ids of what was found, but for the runtimes that do otherwise."""
    return {d.rule for d in split.report.diagnostics} - {"node/runtime-differs"}


GLU = model(
    [
        node("Split", ["x"], ["p", "q"], axis=1, num_outputs=2, name="cut"),
        node("Sigmoid", ["q"], ["gate"], name="s"),
        node("Mul", ["p", "gate"], ["a"], name="m"),
        node("Split", ["y"], ["b", "c"], axis=1, num_outputs=2, name="alone"),
    ],
    [value("x", (1, 8, 4, 4)), value("y", (1, 8, 4, 4))],
    ["a", "b", "c"],
    ir_version=8,
)
"""A gated linear unit, whose graph DirectML 1.13.1 to 1.15.4 compute wrong, and beside it a Split that is right."""
