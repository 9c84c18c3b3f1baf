"""dmlsplit.onnxruntime.contributed_checks. Each model was asked of 1.18.0, 1.20.1, 1.24.4 and 1.30.0."""

from __future__ import annotations

import pytest

from dmlsplit.onnxruntime.contributed_schemas import column_of
from dmlsplit.onnxruntime.onnx_session import OnnxSessions
from dmlsplit.onnxruntime.operators import NOT_ASKED, Cell, recorded_versions, table
from dmlsplit.targets.runtime_versions import find_runtime
from tests import models
from tests.onnxruntime.operator_models import built, keys, of_onnx
from tests.onnxruntime.placements import placed, placed_model

INPUTS = "(float[2,3] x, float[3] b, float16[2,3] h, uint64[2] u) => (float[2,3] y)"


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("[n] y = com.microsoft.BiasGelu(x)", "BiasGelu n reads 1 tensor, not 2"),
        ("[n] y = com.microsoft.BiasGelu(x, b, b)", "BiasGelu n reads 3 tensors, not 2"),
        ("[n] y, z = com.microsoft.BiasGelu(x, b)", "BiasGelu n writes 2 tensors, not 1"),
        ("[n] y = com.microsoft.FastGelu(, b)", "FastGelu n lacks an input"),
        ("[n] y = com.microsoft.BiasGelu<axis = 1>(x, b)", "BiasGelu n has the attribute axis, which its operator"),
        ("[n] y = com.microsoft.QuickGelu<alpha = 1>(x)", "QuickGelu n has an attribute alpha of the type INT, not F"),
        ("[n] y = com.microsoft.NGramRepeatBlock(x, x)", "NGramRepeatBlock n lacks the attribute ngram_size"),
        ("[n] y = com.microsoft.BiasGelu(x, h)", "BiasGelu n reads tensors of the types FLOAT and FLOAT16, which must"),
        (
            "[n] z = com.microsoft.Trilu(u) [m] y = com.microsoft.BiasGelu(x, u)",
            "BiasGelu m reads u of the type UINT64",
        ),
        ("[n] y = com.microsoft.Trilu(h)", "Trilu n writes y of the type FLOAT16, but the model declares FLOAT"),
        ("[n] y = com.microsoft.SwiGLU(x)", "SwiGLU n has an operator that this version does not have"),
        ("[n] y = SimplifiedLayerNormalization(x, b, b)", "SimplifiedLayerNormalization n reads 3 tensors, not 2"),
        ("[n] y = com.microsoft.BiasGelu(x, b)", None),
        ("[n] y = com.microsoft.QuickGelu<alpha = 1.0>(x)", None),
        ("[n] y = com.microsoft.QuickGelu<__note = 1>(x)", None),
        ("[n] y = com.microsoft.FastGelu(x)", None),
        ("[n] y = SimplifiedLayerNormalization<note = 1>(x, b)", None),
    ],
)
@pytest.mark.parametrize("version", ["1.18.0", "1.24.4"])
def test_nodes_that_do_not_fit_their_operators_of_onnxruntime(body, why, version):
    answer = placed_model(models.text(f"{INPUTS} {{ {body} }}", 17, domains=["com.microsoft"]), version)
    assert answer.created is (why is None)
    if why is not None:
        assert answer.failure.message.startswith(why)
        assert answer.failure.node == body[body.index("] y") - 1]


def test_versions_that_do_not_have_an_operator():
    data = "(uint8[2,3] x, int32[2] i, float[2,1] s) => (float[2,3] y)"
    text = f"{data} {{ [n] y = com.microsoft.GatherBlockQuantized<block_size = 16>(x, i, s) }}"
    model = models.text(text, 17, domains=["com.microsoft"])
    assert "operator that this version does not have" in placed_model(model, "1.18.0").failure.message
    for version in ("1.20.1", "1.24.4"):
        answer = placed_model(model, version)
        assert answer.failure is None or "operator that" not in answer.failure.message


@pytest.mark.parametrize(("opset", "is_loaded"), [(9, True), (10, False), (17, False)])
def test_operators_that_are_deprecated(opset, is_loaded):
    model = models.text("(float[2,3] x) => (float[2,3] y) { [n] y = ScaledTanh<note = 1>(x) }", opset)
    assert placed_model(model).created is is_loaded


def test_an_experimental_operator_may_have_any_attributes_and_outputs():
    model = models.text("(float[2,3] x) => (float[2,3] y) { [n] y, z = Scale<note = 1>(x) }", 9)
    assert placed_model(model).created is True


def test_a_node_within_a_branch_that_is_never_taken_is_checked():
    branch = "() => (float[2,3] p) { [n] p = com.microsoft.BiasGelu(x, b%s) }"
    nodes = "c = Constant<value = bool {1}>() [i] y = If<then_branch = t %s, else_branch = e %s>(c)"
    for else_branch, created in (("", True), (", b", False)):
        text = f"{INPUTS} {{ {nodes % (branch % '', branch.replace('p', 'q') % else_branch)} }}"
        answer = placed(text)
        assert answer.created is created
    assert answer.failure.node == "i.else_branch/n"


def test_nodes_that_versions_were_recorded_to_take_are_taken():
    versions, compared = recorded_versions(), 0
    for key in keys(find_runtime(versions[-1]).newest_opset):
        row = table()["operators"].get(f"{key.domain}.{key.op}" if key.domain else key.op, {}).get(str(key.version), {})
        if key.variant or (not key.domain and key.op in of_onnx()):
            continue
        types = dict(key.types)
        cells = row.get("types", {}).get(",".join(types.get(name, "") for name in row.get("parameters", ())))
        if cells is None:
            continue
        refused = OnnxSessions(built(key), lambda *_: None).model(None).not_loaded_by
        for version, cell in zip(versions, cells, strict=True):
            if cell not in (NOT_ASKED, Cell.INVALID):
                column = column_of(find_runtime(version))
                assert [each.why for each in refused if column in each.columns] == [], (key, version)
                compared += 1
    assert compared > 500
