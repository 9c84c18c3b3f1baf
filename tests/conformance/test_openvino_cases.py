"""OpenVINO's own tests and documents, and what OpenVINO was observed to do, against our reading of the IR.

Every case is built as an IR. A case is left out, or agrees in part, only as exceptions.json says.
"""

import math

import numpy as np
import pytest

pytest.importorskip("defusedxml")

from dmlsplit.formats import openvino
from tests.conformance.corpus import EXCEPTIONS, expected_arrays, input_array, rows
from tests.formats.ir import Graph

FLAVOURS = ("ov_split", "ov_variadic_split")

TYPES = {f"{long}{bits}": f"{short}{bits}" for long, short in (("int", "i"), ("uint", "u")) for bits in range(1, 65)}
TYPES |= {"float16": "f16", "float32": "f32", "float64": "f64", "bfloat16": "bf16", "bool": "boolean"}
TYPES |= {"float8e4m3fn": "f8e4m3", "float8e5m2": "f8e5m2", "float4e2m1": "f4e2m1", "string": "string", "nf4": "nf4"}


CASES, OBSERVED = rows("cases", flavour=FLAVOURS), rows("observed", flavour=FLAVOURS)


def tuples(value):
    return tuple(map(tuples, value)) if isinstance(value, list) else value


def given(graph, values, type, shape, const):
    """An input that is a constant, or is fed at run time."""
    if const:
        return graph.const(values, type, shape)
    shape = (len(values),) if shape is None and isinstance(values, list) else shape
    return graph.parameter(shape, type, name=f"fed{len(graph.layers)}")


def build(folder, *, flavour, dtype, shape, axis, axis_type, axis_shape, axis_const, case, lengths_const=True):
    graph = Graph()
    type = TYPES[dtype]
    x = graph.parameter(tuples(shape), type)
    a = given(graph, axis, axis_type, axis_shape, axis_const)
    if flavour == "ov_split":
        n = case["num_splits"]
        graph.split(x, a, n, [None] * max(n, 0), type)
    else:
        split = case["split"]
        lengths_type = TYPES[case.get("split_input", {}).get("dtype") or case.get("split_dtype", "int64")]
        lengths = given(graph, split, lengths_type, case.get("split_shape"), lengths_const)
        graph.split(x, a, lengths, [None] * len(split), type)
    return graph.write(folder)


def text(dim):
    """A size of a case, as SplitNode has it."""
    return f"{dim[0] or ''}..{'' if dim[1] is None else dim[1]}" if isinstance(dim, list) else dim


def from_case(folder, case, shape, constant=False):
    fed = case["axis_input"]
    return build(
        folder,
        flavour=case["flavour"],
        dtype=case["dtype"],
        shape=shape,
        axis=0 if case["axis"] is None else case["axis"],
        axis_type=TYPES.get(fed["dtype"], fed["dtype"]),
        axis_shape=fed["shape"],
        axis_const=fed["const"] or constant,
        case=case,
        lengths_const=case.get("split_input", {}).get("const", True) or constant,
    )


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_cases(case, tmp_path):
    shape = None if case.get("model_shape") == "unknown rank" else case["shape"]
    (node,) = openvino.read(from_case(tmp_path, case, shape))
    expected = case["expect"]
    assert node.report.ok is expected["ok"], node.report
    if not expected["ok"]:
        return
    if case.get("model_shape") == "unknown rank":
        # What is fed at run time is not in the model: the same model with constants and a shape computes the values.
        assert node.input_shape is None
        (node,) = openvino.read(from_case(tmp_path, case, None, constant=True), shapes={"x": case["shape"]})
    if "lengths" in expected:
        assert list(node.lengths) == expected["lengths"]
    if "shapes" in expected:
        assert [s and tuple(s) for s in node.output_shapes] == [s and tuple(map(text, s)) for s in expected["shapes"]]
    if "values" in expected:
        parts = node.execute(input_array(case))
        for part, values in zip(parts, expected_arrays(case), strict=True):
            assert np.array_equal(part, values)


def from_observed(folder, case):
    return build(
        folder,
        flavour=case["flavour"],
        dtype=case["dtype"],
        shape=case.get("model_shape", case["shape"]),
        axis=case["axis"],
        axis_type=TYPES[case.get("axis_dtype", "int64")],
        axis_shape=case.get("axis_shape"),
        axis_const=case.get("axis_const", True),
        case=case,
        lengths_const=case.get("split_const", True),
    )


def openvino_text(shape):
    if shape is None:
        return "[...]"
    return f"[{','.join('?' if dim is None else str(dim) for dim in shape)}]"


@pytest.mark.parametrize("case", OBSERVED, ids=lambda case: case["id"])
def test_observed(case, tmp_path):
    """The verdict is OpenVINO's, and so are the shapes that it infers for the model as it is."""
    (node,) = openvino.read(from_observed(tmp_path, case))
    seen = case["observed"]["ov"]
    exception = EXCEPTIONS.get(case["id"], {})
    assert node.report.ok is exception.get("ok", seen["ok"]), node.report
    if "ok" in exception:
        assert node.report.ok != seen["ok"], "the exception is not one"
        assert exception.get("rule") in {None, *rules(node)}
    elif seen["ok"]:
        inferred = seen.get("model_shapes") or seen["shapes"]
        assert [openvino_text(shape) for shape in node.output_shapes] == inferred


def rules(node):
    return {diagnostic.rule for diagnostic in node.report.diagnostics}


@pytest.mark.parametrize(
    "case",
    [case for case in OBSERVED if case["observed"]["ov"].get("values_ok") and "infer_only" not in case],
    ids=lambda case: case["id"],
)
def test_observed_execution(case, tmp_path):
    """Where OpenVINO ran the model and its values were right, ours are the same: slices of the input."""
    path = from_observed(tmp_path, case | {"axis_const": True, "split_const": True})
    (node,) = openvino.read(path, shapes={"x": case["shape"]})
    shape, shapes = case["shape"], case["observed"]["ov"]["shapes"]
    exception = EXCEPTIONS.get(case["id"], {})
    fed = not case.get("split_const", True) or not case.get("axis_const", True)
    if fed and not node.report.ok:
        # What is fed at run time is not checked by OpenVINO, which then makes empty outputs.
        assert all(0 in s for s in shapes)
        return
    assert node.report.ok is exception.get("run_ok", True), node.report
    if not node.report.ok:
        assert exception["rule"] in rules(node)
        return
    dtype = node.element.dtype()
    data = (np.arange(math.prod(shape)) % 120).astype(dtype).reshape(shape)
    parts = node.execute(data)
    assert [list(part.shape) for part in parts] == shapes
    assert np.array_equal(np.concatenate(parts, node.axis), data)
    assert all(part.dtype == dtype for part in parts)
