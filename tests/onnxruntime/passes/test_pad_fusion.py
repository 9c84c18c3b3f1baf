"""The pass dmlsplit.onnxruntime.passes.pad_fusion. Each model was asked of the versions that it names."""

from __future__ import annotations

import re

import pytest
from onnx import helper

from dmlsplit.onnxruntime.passes.pad_fusion import later_pad_fusion, pad_fusion
from dmlsplit.targets.runtime_versions import find_runtime
from tests.models import text
from tests.onnxruntime.passes import after, graph_of
from tests.onnxruntime.whole_models import predicted

HEAD = (
    "(float[1,2,4,4] x, int64[8] given) => (float[?,?,?,?] o, float[?,?,?,?] q) <float[2,2,3,3] w, float16[2,2,3,3] v, "
    "int64[8] p = {0,0,1,2,0,0,3,4}, int64[8] less = {0,0,-1,0,0,0,0,0}, int64[8] far = {0,1,0,0,0,0,0,0}, "
    "float zero = {0}, float one = {1}, float minus = {-0.0}, int64[4] axes = {0,1,2,3}>"
)
CONV = "o = Conv<pads=[0,0,0,0]>(a, w)"
FUSED = ["o = Conv(x,w)"]
BEHIND_A_CAST = "a = Pad(x, p) c = Cast<to=10>(a) h = Conv<pads=[0,0,0,0]>(c, v) o = Cast<to=1>(h)"
VERSIONS = ["1.18.0", "1.19.2", "1.20.1", "1.24.4", "1.30.0"]


def of_weights(body: str) -> str:
    """The model with weights of zeros."""
    return re.sub(r"(float\d*\[2,2,3,3\] \w)", r"\1 = {" + ",".join("0" * 36) + "}", body)


@pytest.mark.parametrize(
    ("body", "is_fused"),
    [
        (f"a = Pad(x, p) {CONV}", True),
        (f'a = Pad<mode="constant">(x, p, zero) {CONV}', True),
        (f"b = Pad(x, p) a = Pad(b, p) {CONV}", True),
        (f"a = Pad(x, p, one) {CONV}", False),
        (f"a = Pad(x, p, minus) {CONV}", False),
        (f"a = Pad(x, given) {CONV}", False),
        (f"a = Pad(x, less) {CONV}", False),
        (f"a = Pad(x, far) {CONV}", False),
        (f'a = Pad<mode="edge">(x, p) {CONV}', False),
        (f"a = Pad(x, p) {CONV} q = Relu(a)", False),
        (f"q = Pad(x, p) {CONV.replace('(a', '(q')}", False),
        ('a = Pad(x, p) o = Conv<auto_pad="SAME_UPPER">(a, w)', False),
        ('a = Pad(x, p) o = Conv<auto_pad="VALID">(a, w)', False),
        ("a = Pad(x, p) o, i = MaxPool<kernel_shape=[3,3], pads=[0,0,0,0]>(a)", False),
        ("a = Pad(x, p) o = LpPool<kernel_shape=[3,3], pads=[0,0,0,0]>(a)", False),
        ("a = Pad(x, p) o = Conv<pads=[0,0,0,0]>(x, a)", False),
    ],
    ids=[
        "no value",
        "zero",
        "two in a row",
        "one",
        "zero of negative sign",
        "pads that are given",
        "less than nothing",
        "other channels",
        "an edge",
        "another reader",
        "an output",
        "automatic pads",
        "valid pads",
        "indices",
        "another window",
        "weights",
    ],
)
def test_which_pads_a_window_takes(body, is_fused):
    left = after(pad_fusion, of_weights(f"{HEAD} {{ {body} }}"), opset=13)
    assert any("Pad(" in node for node in left) != is_fused
    assert not is_fused or left == FUSED


@pytest.mark.parametrize(
    ("body", "first"),
    [
        (f"a = Pad(x, p) {CONV}", "1.18.0"),
        ("a = Pad(x, p) o = MaxPool<kernel_shape=[3,3], pads=[0,0,0,0]>(a)", "1.18.0"),
        ("a = Pad(x, p) o = AveragePool<kernel_shape=[3,3], pads=[0,0,0,0]>(a)", "1.19.2"),
        (BEHIND_A_CAST, "1.19.2"),
        ("a = Pad(x, p) o = Conv(a, w)", "1.20.1"),
        ('a = Pad(x, p) o = MaxPool<auto_pad="NOTSET", kernel_shape=[3,3]>(a)', "1.20.1"),
    ],
    ids=["Conv", "MaxPool", "AveragePool", "behind a Cast", "no pads", "no automatic pads"],
)
@pytest.mark.parametrize("version", VERSIONS)
def test_the_first_version_that_fuses(body, first, version):
    left = after(pad_fusion, of_weights(f"{HEAD} {{ {body} }}"), opset=13, version=version)
    assert any("Pad(" in node for node in left) == (VERSIONS.index(version) < VERSIONS.index(first))


@pytest.mark.parametrize(
    ("opset", "body"),
    [(21, f"a = Pad(x, p) {CONV}"), (19, BEHIND_A_CAST)],
    ids=["Pad 21", "Cast 19"],
)
def test_old_versions_do_not_fuse_new_operators(opset, body):
    before, later = (after(pad_fusion, of_weights(f"{HEAD} {{ {body} }}"), opset, v) for v in ("1.24.4", "1.30.0"))
    assert before[0] == "a = Pad(x,p)"
    assert len(later) == len(before) - 1


def test_a_pad_with_axes_stays():
    left = after(pad_fusion, of_weights(f"{HEAD} {{ a = Pad(x, p, zero, axes) {CONV} }}"), opset=18)
    assert left == ["a = Pad(x,p,zero,axes)", "o = Conv(a,w)"]


def test_pads_of_old_versions_are_attributes():
    head = of_weights("(float[1,2,4,4] x) => (float[?,?,?,?] o) <float[2,2,3,3] w>")
    for value, count in (("", 1), (", value = 0.0", 1), (", value = -0.0", 1), (", value = 1.0", 2)):
        body = f"{head} {{ a = Pad<pads = [0,0,1,1,0,0,1,1]{value}>(x) {CONV} }}"
        assert len(after(pad_fusion, body, opset=10)) == count


def test_the_pads_of_both_are_added():
    graph = graph_of(of_weights(f"{HEAD} {{ a = Pad(x, p) o = Conv<pads=[10,20,30,40]>(a, w) }}"), opset=13)
    pad_fusion(graph)
    (node,) = graph.nodes
    pads = {each.name: helper.get_attribute_value(each) for each in node.proto.attribute}["pads"]
    assert list(pads) == [11, 22, 33, 44]
    assert node.origins == (1, 0)


def test_a_cast_then_writes_what_it_reads():
    graph = graph_of(of_weights(f"{HEAD} {{ {BEHIND_A_CAST} }}"), opset=13)
    pad_fusion(graph)
    cast = graph.nodes[0].outputs[0]
    assert (cast.known, cast.known_type) == ("x", "c")


def test_pads_that_are_folded_are_fused_later():
    body = of_weights(f"{HEAD} {{ f = Add(p, p) a = Pad(x, f) {CONV} }}")
    graph = graph_of(body, opset=13)
    pad_fusion(graph)
    assert len(graph.nodes) == 3
    graph.fold(graph.nodes[0])
    later_pad_fusion(graph)
    assert [node.op_type for node in graph.nodes] == ["Conv"]


def test_a_fused_pad_is_where_its_window_is():
    body = of_weights(f"{HEAD} {{ a = Pad(x, p) {CONV} q = Relu(x) }}")
    for opset in (13, 18):  # of opset 18, 1.18.0 has no kernel of Pad on DirectML
        answer = predicted(text(body, opset), find_runtime("1.18.0"))
        assert {str(node.provider) for node in answer.nodes.values()} == {"DML"}
