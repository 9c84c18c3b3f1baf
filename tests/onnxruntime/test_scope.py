"""What dmlsplit.models.scope knows, whatever was asked before."""

from __future__ import annotations

import pytest
from onnx import TensorProto

from dmlsplit.formats.limits import Budget
from dmlsplit.formats.onnx.tensors import no_external_data
from dmlsplit.models.functions import Functions
from dmlsplit.models.scope import MAX_FOLDING, Origin, Scope
from dmlsplit.onnxruntime.onnx_session import OnnxSessions
from dmlsplit.system.errors import InputError
from dmlsplit.targets.runtime_versions import find_runtime
from dmlsplit.targets.session_options import SessionOptions
from tests.models import ints, model, node, text


def scope(nodes, initializers=()):
    made = model(nodes, [], [], initializers=initializers)
    budget = Budget(1000)
    return Scope(made.graph, made.graph, Origin.of(made, Functions((), budget), no_external_data, budget))


def chain(count):
    return [node("Identity", [f"c{i}"], [f"c{i + 1}"]) for i in range(count)]


@pytest.mark.parametrize("order", [(36, 60, 100), (100, 60, 36), (60, 100, 36), (65, 64, 36), (36, 65, 64)])
@pytest.mark.parametrize("as_node", [False, True])
def test_a_constant_is_followed_through_so_many_nodes_in_any_order(order, as_node):
    first = ints("c0", 3)
    made = scope(
        [*([node("Constant", [], ["c0"], value=first)] if as_node else []), *chain(100)], () if as_node else [first]
    )
    assert {i: made.integers(f"c{i}") for i in order} == {i: (3,) if i <= MAX_FOLDING else None for i in order}


def test_a_chain_of_joining_nodes_is_followed_once():
    nodes = [node("Add", [f"c{i}", f"c{i}"], [f"c{i + 1}"]) for i in range(90)]
    made = scope(nodes, [ints("c0", 0)])
    assert made.integers("c90") is None
    assert made.integers("c64") == (0,)


def test_what_depends_on_itself_is_not_known():
    assert scope([node("Identity", ["a"], ["b"]), node("Identity", ["b"], ["a"])]).constant("a") is None


def test_a_malformed_constant_is_malformed_each_time():
    made = scope(chain(2), [TensorProto(name="c0", data_type=TensorProto.INT64, dims=[2], raw_data=bytes(8))])
    for name in ("c2", "c1", "c0", "c0"):
        with pytest.raises(InputError):
            made.constant(name)
        assert made.integers(name) is None


def test_symbols_of_an_earlier_inference_are_those_of_the_file():
    """An inference now makes up symbols of the same names for other sizes."""
    made = text(
        "(float[N,6] x, int64[1] k) => (float[?,6] y, float[unk__0,6] z, float[unk__0,6] w) "
        "{ y = Slice(x, k, k) z = Slice(x, k, k) w = Slice(x, k, k) }"
    )
    graph = OnnxSessions(made, no_external_data).of(find_runtime("1.30.0"), SessionOptions()).graphs[-1]
    assert {name: graph.shape(name) for name in "yzw"} == {"y": (None, 6), "z": ("unk__0", 6), "w": ("unk__0", 6)}
