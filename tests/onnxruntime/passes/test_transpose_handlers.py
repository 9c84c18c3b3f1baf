"""How dmlsplit.onnxruntime.passes.transpose_handlers moves Transposes over operators, in graphs that nothing else has
changed."""

from __future__ import annotations

import tracemalloc

import pytest

from dmlsplit.onnxruntime.passes.transpose_optimizer import has_quantized, move_transposes
from dmlsplit.onnxruntime.passes.transposed_tensors import inverse
from tests.onnxruntime.passes import graph_of

T, BACK = "t = Transpose<perm=[0,2,1]>(x)", "Transpose<perm=[0,2,1]>(a)"
SPLIT = ["Split 2 [2,3,2;2,3,2]", "Add [2,3,2]"]
HEAD = "(float[2,3,4] x, float[4,3] z) => (float[] o) <float[3] v = {1,2,3}, float one = {1}, int64[1] i1 = {1}>"


def moved(body, opset=17, version="1.24.4", head=HEAD):
    """The nodes after one round: operator, numbers of its attributes, sizes of its outputs."""
    graph = graph_of(f"{head} {{ {body} }}", opset, version)
    move_transposes(graph)
    for node in graph.nodes:
        assert all(value.producer is node for value in node.outputs if value.name)
        assert all(node in value.readers for value in node.inputs if value.name)
    return [_in_words(graph, node) for node in graph.walk()]


def _in_words(graph, node):
    axes = [graph.facts.elements(value.name) for value in node.inputs[1:] if graph.facts.is_constant(value.name)]
    numbers = [list(each.ints) or [each.i] for each in node.proto.attribute if each.name in ("perm", "axis", "axes")]
    numbers += [each.tolist() for each in axes if each is not None and each.dtype.kind == "i"]
    sizes = ";".join(",".join(map(str, graph.facts.shape(value.name) or ())) for value in node.outputs)
    return " ".join([node.op_type, *(",".join(map(str, each)) for each in numbers), f"[{sizes}]"])


@pytest.mark.parametrize(
    ("body", "opset", "expected"),
    [
        (f"{T} a = Relu(t) o = {BACK}", 17, ["Relu [2,3,4]"]),
        (f"{T} a = Relu(t) o = Transpose<perm=[1,0,2]>(a)", 17, ["Relu [2,3,4]", "Transpose 2,0,1 [4,2,3]"]),
        (f"{T} o = Relu(t)", 17, ["Transpose 0,2,1 [2,4,3]", "Relu [2,4,3]"]),
        (f"{T} a = LpNormalization(t) o = {BACK}", 17, None),
        (f"{T} a = Add(t, t) o = {BACK}", 17, ["Add [2,3,4]"]),
        (f"{T} a = Add(t, v) o = {BACK}", 17, ["Add [2,3,4]"]),
        (f"{T} a = Add(t, one) o = {BACK}", 17, ["Add [2,3,4]"]),
        (f"{T} a = Add(t, z) o = {BACK}", 17, ["Unsqueeze 0 [1,4,3]", "Transpose 0,2,1 [1,3,4]", "Add [2,3,4]"]),
        (f"{T} a = Softmax<axis=1>(t) o = {BACK}", 13, ["Softmax 2 [2,3,4]"]),
        (f"{T} a = Softmax<axis=1>(t) o = {BACK}", 12, ["Softmax 1 [2,3,4]"]),
        (f"{T} a = Softmax<axis=2>(t) o = {BACK}", 12, None),
        (f"{T} a = Concat<axis=1>(t, t) o = {BACK}", 17, ["Concat 2 [2,3,8]"]),
        (f"{T} a, b = Split<axis=1>(t) c = Add(a, b) o = Transpose<perm=[0,2,1]>(c)", 17, SPLIT),
        (f"{T} a = Slice(t, i1, i1, i1) o = {BACK}", 17, ["Slice 1 1 2 [2,3,0]"]),
        (f"{T} o = ReduceMax<axes=[1], keepdims=0>(t)", 17, ["ReduceMax 2 [2,3]"]),
        (f"{T} o = ReduceSum<keepdims=0>(t, i1)", 17, ["ReduceSum 2 [2,3]"]),
        (f"{T} o = ReduceMax<keepdims=0>(t)", 17, ["ReduceMax [-]"]),
        (f"{T} o = ReduceL2<axes=[2,0]>(t)", 17, ["ReduceL2 0,1 [1,1,4]", "Transpose 0,2,1 [1,4,1]"]),
        (f"{T} o = ArgMax<axis=1, keepdims=0>(t)", 17, ["ArgMax 2 [2,3]"]),
        ("b = Transpose<perm=[1,2,0]>(x) o = Transpose<perm=[1,2,0]>(b)", 17, ["Transpose 2,0,1 [4,2,3]"]),
        ("b = Transpose<perm=[1,2,0]>(x) o = Transpose<perm=[2,0,1]>(b)", 17, ["Identity [2,3,4]"]),
        (
            f"{T} a = Exp(t) r = Unsqueeze(a, i1) o = Transpose<perm=[0,1,3,2]>(r)",
            17,
            ["Exp [2,3,4]", "Unsqueeze 1 [2,1,3,4]"],
        ),
    ],
)
def test_a_transpose_is_moved(body, opset, expected):
    head = HEAD.replace("float[] o", "int64[] o") if "ArgMax" in body else HEAD
    before = [_in_words(graph, node) for graph in [graph_of(f"{head} {{ {body} }}", opset)] for node in graph.walk()]
    assert moved(body, opset, head=head) == (before if expected is None else [e.replace("[-]", "[]") for e in expected])


SHARED = "(float[2,3,4] x) => (float[2,3,4] o, float[2,4,3] p) <float[1,4,3] w = {1,2,3,4,5,6,7,8,9,10,11,12}>"


def test_other_readers_of_a_constant_read_it_as_it_was():
    found = moved(f"{T} a = Mul(t, w) o = {BACK} p = Add(t, w)", head=SHARED)
    assert sorted(found) == ["Add [2,4,3]", "Mul [2,3,4]", "Transpose 0,2,1 [2,4,3]"]


@pytest.mark.parametrize(
    ("sizes", "after", "expected"),
    [
        ("1,3,1,4", "1,1,4,3", ["Transpose 0,2,3,1 [1,1,4,3]"]),
        ("1,3,1,4", "1,3,4,1", None),
        ("1,3,1,4", "1,12", None),
    ],
)
def test_a_reshape_that_acts_as_a_transpose(sizes, after, expected):
    rank = len(after.split(","))
    head = f"(float[{sizes}] x) => (float[{after}] o) <int64[{rank}] s = {{{after}}}>"
    body = "t = Transpose<perm=[0,3,2,1]>(x) o = Reshape(t, s)"
    found = moved(body, head=head)
    if expected is None:
        assert found[0] == "Transpose 0,3,2,1 [1,4,1,3]"
    else:
        assert found == expected


def test_the_sizes_of_a_shape_are_gathered():
    found = moved(f"{T} o = Shape(t)", head="(float[2,N,4] x) => (int64[3] o)")
    assert found == ["Shape [3]", "Gather 0 0,2,1 [3]"]


def test_a_transpose_without_its_attribute_stays():
    assert moved("t = Transpose(x) a = Relu(t) o = Transpose(a)") == [
        "Transpose [4,3,2]",
        "Relu [4,3,2]",
        "Transpose [2,3,4]",
    ]


@pytest.mark.parametrize(("version", "is_moved"), [("1.22.0", False), ("1.24.4", True)])
def test_gelus(version, is_moved):
    assert (moved(f"{T} a = Gelu(t) o = {BACK}", 20, version) == ["Gelu [2,3,4]"]) is is_moved


def test_quantized_elements_are_not_modelled():
    assert has_quantized(graph_of("(uint8[2] x) => (float[2] o) <float s = {1}> { o = DequantizeLinear(x, s) }"))


def test_the_inverse_of_a_permutation():
    assert inverse((2, 0, 1)) == (1, 2, 0)


def test_no_axis_is_counted_for_a_slice_with_more_starts_than_dimensions():
    """The number of starts is declared: no element of them is in the file."""
    head = HEAD.replace("float[2,3,4] x", "float[2,3,4] x, int64[1000000] s")
    graph = graph_of(f"{head} {{ {T} a = Slice(t, s, s) o = {BACK} }}", 17)
    tracemalloc.start()
    move_transposes(graph)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert [node.op_type for node in graph.walk()] == ["Transpose", "Slice", "Transpose"]
    assert peak < 1 << 20


@pytest.mark.parametrize(
    ("version", "index", "is_moved"),
    [("1.24.4", "i", False), ("1.30.0", "i", True), ("1.30.0", "i1", False), ("1.30.0", "n", False)],
)
def test_a_gather_of_one_constant_index(version, index, is_moved):
    """1.30.0 moves a Transpose over a Gather that takes a dimension away; not over one whose index is a vector, or
    computed. Observed."""
    head = "(float[2,3,4] x, int64 n) => (float[] o) <int64 i = {1}, int64[1] i1 = {1}>"
    graph = graph_of(f"{head} {{ {T} a = Gather<axis=1>(t, {index}) o = Relu(a) }}", 17, version)
    move_transposes(graph)
    (gather,) = (node for node in graph.nodes if node.op_type == "Gather")
    assert gather.proto.attribute[0].i == (2 if is_moved else 1)
    assert ("Transpose" in graph.operators) is not is_moved


@pytest.mark.parametrize(
    ("sizes", "back", "left"),
    [
        ("2,2,2,3", "", ["Reshape", "Transpose"]),
        ("2,2,2,3", "2,3,0,1", ["Reshape"]),
        ("4,-1,3", "1,2,0", ["Reshape"]),
        ("0,2,3", "1,2,0", ["Reshape"]),
        ("4,6,1", "", None),
        ("1,4,2,3", "2,3,0,1", ["Reshape"]),
        ("8,3", "", None),
        ("2,12", "", None),
        ("4,3,2,1", "", None),
        ("2,2,6", "2,1,0", ["Reshape", "Transpose"]),
    ],
)
def test_a_reshape_that_splits_dimensions(sizes, back, left):
    """1.30.0 moves a Transpose over it; earlier versions do not. Observed."""
    head = f"(float[6,4] x) => (float[] o) <int64[{len(sizes.split(','))}] s = {{{sizes}}}>"
    behind = f"o = Transpose<perm=[{back}]>(r)" if back else "o = Relu(r)"
    body = f"{head} {{ t = Transpose<perm=[1,0]>(x) r = Reshape(t, s) {behind} }}"
    before = ["Transpose", "Reshape", "Transpose" if back else "Relu"]
    for version, expected in (
        ("1.24.4", before),
        ("1.30.0", before if left is None else left + before[2:] * (not back)),
    ):
        graph = graph_of(body, 17, version)
        move_transposes(graph)
        assert [node.op_type for node in graph.walk()] == expected
