"""ONNX's Concat: read, judged, run and lowered; generated ones against onnx's reference evaluator, ONNX Runtime and
numpy."""

import random

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

import dmlsplit
from dmlsplit.formats import onnx as front_end
from dmlsplit.system.errors import BindingError, InputError
from tests.formats.split_nodes import joins, splits
from tests.models import BOOL, FLOAT, graph, model, node, value

INTEGERS = tuple(f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64))
TYPES = ("float32", "float16", "float64", "bool", "complex64", "complex128", *INTEGERS)
PAIR = node("Concat", ["x", "z"], ["y"], axis=1, name="c")


def read_one(nodes, inputs, given=None, **fields):
    [join] = joins(front_end.read_model(model(nodes, inputs, ["y"], **fields), **(given or {})))
    return join


def rules(join):
    return {d.rule for d in join.report.diagnostics} - {"node/runtime-differs"}


def filled(rng, shape, dtype):
    """Random bytes: a join moves them all, NaNs and signalling ones as well."""
    dtype = np.dtype(dtype)
    count = int(np.prod(shape)) * dtype.itemsize
    raw = np.random.default_rng(rng.randrange(2**32)).integers(0, 2 if dtype.kind == "b" else 256, count, np.uint8)
    return raw.view(dtype).reshape(shape)


def made(rng):
    """A Concat that the operator's text allows, and its inputs."""
    rank, opset = rng.randint(1, 6), rng.choice([4, 7, 11, 13, 18, 21])
    axis = rng.randrange(rank)
    off = [rng.randint(1, 4) for _ in range(rank)]
    dtype = rng.choice(TYPES)
    shapes = [[*off[:axis], rng.choice([0, 1, 1, 2, 3, 5]), *off[axis + 1 :]] for _ in range(rng.randint(1, 5))]
    arrays = [filled(rng, shape, dtype) for shape in shapes]
    names = [f"x{i}" for i in range(len(arrays))]
    data_type = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    infos = [value(n, [rng.choice([s, s, s, f"{n}{i}", None]) for i, s in enumerate(shape)], data_type)
             for n, shape in zip(names, shapes, strict=True)]  # fmt: skip
    concat = node("Concat", names, ["y"], name="c", axis=axis - rank * rng.randint(0, opset >= 11))
    return model([concat], infos, [value("y", None, data_type)], opset, ir_version=8), names, arrays


def same(ours, theirs):
    assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
    assert ours.tobytes() == theirs.tobytes()


@pytest.mark.parametrize("seed", range(200))
def test_a_generated_one_is_what_the_reference_makes_of_it(seed):
    proto, names, arrays = made(random.Random(seed))
    expected = np.concatenate(arrays, proto.graph.node[0].attribute[0].i)
    same(expected, ReferenceEvaluator(proto).run(None, dict(zip(names, arrays, strict=True)))[0])
    [join] = front_end.read(proto, {n: a.shape for n, a in zip(names, arrays, strict=True)})
    assert join.report.ok, join.report
    assert join.output_shape == expected.shape
    same(join.execute(arrays), expected)
    same(join.execute([np.asfortranarray(array) for array in arrays]), expected)
    # Without the shapes, the arrays tell them.
    [unknown] = front_end.read(proto)
    same(unknown.execute(arrays), expected)
    if expected.size == 0:
        return
    for level in ("1_0", "2_1", "6_4"):
        done = join.legalize(level)
        assert done.ok or level == "1_0", done.report
        if done.ok:
            same(done.execute(arrays), expected)
            out = np.zeros_like(expected)
            done.dispatch(arrays, out)
            same(out, expected)


@pytest.mark.parametrize("seed", range(40))
def test_a_generated_one_is_what_onnx_runtime_makes_of_it(seed):
    onnxruntime = pytest.importorskip("onnxruntime")
    onnxruntime.set_default_logger_severity(4)
    proto, names, arrays = made(random.Random(1000 + seed))
    if arrays[0].dtype.kind == "c":
        return  # which ONNX Runtime has not
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    [join] = front_end.read(proto)
    same(join.execute(arrays), session.run(None, dict(zip(names, arrays, strict=True)))[0])


@pytest.mark.parametrize("seed", range(60))
def test_a_faulty_one_is_refused_as_onnx_refuses_it(seed):
    """Whatever onnx's checker and strict shape inference refuse, an error says; and the other way round.

    Negative axes of Concat 4 are none of onnx's concern: its inference leaves them alone.
    """
    rng = random.Random(2000 + seed)
    opset = rng.choice([4, 11, 13, 18])
    shapes = [[2, 3], [2, rng.choice([3, 1])]]
    types = [FLOAT, rng.choice([FLOAT, FLOAT, TensorProto.INT64])]
    if rng.random() < 0.3:
        shapes[1][0] = 4
    if rng.random() < 0.2:
        shapes[1].append(1)
    attributes = {} if rng.random() < 0.2 else {"axis": rng.choice([1, 1, 0, 2, *([-1, -3] if opset >= 11 else [])])}
    if rng.random() < 0.1:
        attributes["to"] = 1
    inputs = [value(n, shape, kind) for n, shape, kind in zip("xz", shapes, types, strict=True)]
    proto = model([node("Concat", ["x", "z"], ["y"], **attributes)], inputs, [value("y", [None, None])], opset)
    try:
        onnx.checker.check_model(proto)
        onnx.shape_inference.infer_shapes(proto, check_type=True, strict_mode=True)
        refusal = None
    except Exception as error:  # of several kinds
        refusal = str(error)
    [join] = front_end.read(proto)
    assert join.report.ok == (refusal is None), (refusal, join.report)
    if refusal is not None:
        with pytest.raises(InputError):
            join.descriptor()
        assert not join.legalize().ok


@pytest.mark.parametrize(
    ("opset", "version", "axis"), [(1, 1, 1), (3, 1, 1), (4, 4, None), (10, 4, None), (11, 11, None), (13, 13, None)]
)
def test_the_opset_says_the_version_and_whether_there_is_a_default(opset, version, axis):
    inputs = [value("x", [2, 3]), value("z", [2, 1])]
    join = read_one([node("Concat", ["x", "z"], ["y"])], inputs, opset=opset)
    assert (join.version, join.report.ok) == (version, axis is not None)
    if axis is not None:
        assert (join.axis, join.lengths, join.output_shape) == (1, (3, 1), (2, 4))


def test_the_descriptor():
    join = read_one([PAIR], [value("x", [2, 3]), value("z", [2, 1])])
    tensors = [
        [t._buffer.sizes for t in ts] for ts in (join.descriptor().input_tensors, [join.descriptor().output_tensor])
    ]
    assert tensors == [[(2, 3), (2, 1)], [(2, 4)]]
    assert (join.descriptor().axis, join.path, join.input_names, join.output_name) == (1, "c", ("x", "z"), "y")
    assert dmlsplit.validate(join.descriptor(), feature_level="5_0").ok


def test_elements_that_directml_has_not_go_as_integers():
    kind = TensorProto.COMPLEX128
    join = read_one([node("Concat", ["x", "z"], ["y"], axis=-1)], [value("x", [2, 3], kind), value("z", [2, 1], kind)])
    done = join.legalize()
    assert done.steps[:2] == ("COMPLEX128 is copied as 4 of UINT32, the same bits", "axis -1 becomes 1")
    with pytest.raises(BindingError, match="has type float32"):
        done.execute([np.zeros((2, 3), np.float32), np.zeros((2, 1), np.float32)])


def test_strings_are_run_and_not_lowered():
    kind = TensorProto.STRING
    join = read_one([PAIR], [value("x", [2, 2], kind), value("z", [2, 1], kind)])
    x, z = np.array([["a", "b"], ["c", "d"]], object), np.array([["e"], ["f"]], object)
    assert join.execute([x, z]).tolist() == [["a", "b", "e"], ["c", "d", "f"]]
    assert [d.rule for d in join.legalize().report.diagnostics] == ["node/type-not-lowered"]


def test_sizes_that_are_not_known_are_named_and_can_be_given():
    proto = model([PAIR], [value("x", ["batch", 3]), value("z", ["batch", None])], ["y"])
    [join] = front_end.read(proto)
    assert rules(join) == {"node/shape-unknown"}
    assert join.output_shape == ("batch", None)
    assert "--dim batch=NUMBER" in str(join.report)
    [join] = front_end.read(proto, {"z": (None, 5)}, {"batch": 2})
    assert rules(join) == {"node/shape-unknown"} or join.output_shape == (2, 8)
    [join] = front_end.read(proto, {"z": (2, 5)}, {"batch": 2})
    assert (rules(join), join.output_shape, join.lengths) == (set(), (2, 8), (3, 5))


def test_arrays_that_do_not_fit():
    [join] = front_end.read(model([PAIR], [value("x", ["n", 3]), value("z", ["n", None])], ["y"]))
    x, z = np.zeros((2, 3), np.float32), np.zeros((2, 1), np.float32)
    for arrays, message in (
        ([x], "2 arrays are expected, not 1 arrays"),
        (x, "not one array"),
        ([x, z.astype(np.float64)], "input 1 is float32, not float64"),
        ([z, z], "input 0 has the shape"),
        ([x, z[:1]], "c.inputs"),
        ([x, z.tolist()], "not a plain numpy array"),
    ):
        with pytest.raises(InputError, match=message):
            join.execute(arrays)


def test_in_branches_and_functions_and_behind_other_operators():
    relu = node("Relu", ["x"], ["r"])
    then = graph([node("Concat", ["x", "x"], ["t"], axis=0, name="c")], [], ["t"], name="then")
    other = graph([node("Concat", ["r", "r"], ["e"], axis=1, name="c")], [], ["e"], name="else")
    chosen = node("If", ["b"], ["i"], then_branch=then, else_branch=other, name="i")
    function = helper.make_function(
        "local", "F", ["a"], ["o"], [node("Concat", ["a", "a", "a"], ["o"], axis=-1, name="c")],
        [helper.make_opsetid("", 18)],
    )  # fmt: skip
    called = node("F", ["r"], ["y"], domain="local", name="f")
    proto = model(
        [relu, chosen, called], [value("x", [2, 3]), value("b", [], BOOL)], ["y"], functions=[function],
        domains=["local"],
    )  # fmt: skip
    found = [(join.path, join.output_shape) for join in front_end.read(proto)]
    assert found == [("i.else_branch/c", (2, 6)), ("i.then_branch/c", (4, 3)), ("f/c", (2, 9))]


def test_behind_a_split_of_version_1():
    nodes = [node("Split", ["x"], ["a", "b"], axis=0), node("Concat", ["a", "b", "b"], ["y"], axis=0)]
    assert read_one(nodes, [value("x", [4, 3])], opset=1).output_shape == (6, 3)


def test_splits_beside_them_are_read_as_ever():
    nodes = [node("Split", ["x"], ["a", "b"], axis=1, num_outputs=2), node("Concat", ["a", "b"], ["y"], axis=0)]
    proto = model(nodes, [value("x", [4, 6])], ["y"])
    split, join = front_end.read(proto)
    assert (split.op, split.lengths, join.op, join.output_shape) == ("Split", (3, 3), "Concat", (8, 3))
    found = front_end.read_model(proto)
    assert ([n.op for n in splits(found)], [n.op for n in joins(found)]) == (["Split"], ["Concat"])


def test_an_input_in_another_domain_is_not_judged():
    nodes = [node("Concat", ["x"], ["y"], domain="my")]
    assert front_end.read(model(nodes, [value("x", [4])], ["y"], domains=["my"])) == []


def test_many_inputs_are_bounded_by_the_file():
    names = ["x"] * 5000
    join = read_one([node("Concat", names, ["y"], axis=0)], [value("x", [2])])
    assert join.output_shape == (10000,)
    array = np.arange(2, dtype=np.float32)
    assert join.execute([array] * 5000).shape == (10000,)


@pytest.mark.parametrize("length", [0, 1])
def test_empty_inputs_are_left_out_without_a_warning(length):
    """ONNX Runtime does the same: unlike a Split's, the other tensors are not lost."""
    found = read_one([PAIR], [value("x", [2, 3]), value("z", [2, length])]).legalize("3_0")
    assert found.ok
    assert ("InputTensors[1] without elements: omitted" in found.steps) == (length == 0)
    assert [d.rule for d in found.report.diagnostics] == []
