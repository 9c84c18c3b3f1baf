"""The table of placements: where versions place a node, and what is not known."""

from __future__ import annotations

import json
import lzma
import random

import pytest
from onnx import helper

from dmlsplit.onnxruntime.operators import Cell, asked, find_operator, is_on_dml, operators, recorded_versions
from dmlsplit.targets.runtime_versions import find_runtime, runtimes
from tests.onnxruntime.operator_models import Key, built, keys
from tests.onnxruntime.operator_table import PATH, SIZED, cell_of, combined, table
from tests.onnxruntime.record_operators import Asked, Recorder

NEW = find_runtime("1.24.4")
SAMPLE = 60


def where(op_type, opset, *types, runtime=NEW, outputs=("float",), count=1, of_second="float", **attributes):
    node = helper.make_node(op_type, [f"i{i}" for i in range(len(types))], list("abc"[:count]), **attributes)
    return asked(node, tuple(types), (*outputs, of_second, of_second)[:count], opset, find_runtime(runtime))


def test_the_table_has_all_versions_that_were_observed():
    observed = {runtime.version for runtime in runtimes() if runtime.observed and not runtime.like}
    assert set(recorded_versions()) <= observed
    assert {"1.18.0", "1.19.2", "1.20.1", "1.22.0", "1.23.2", "1.24.4", "1.30.0"} == set(recorded_versions())
    assert PATH.stat().st_size < 100_000
    assert len(operators()) > 250


@pytest.mark.parametrize(
    ("op_type", "opset", "on_dml"),
    [("Conv", 21, True), ("Conv", 22, False), ("Reshape", 22, True), ("Reshape", 23, False), ("Loop", 17, False)],
)
def test_a_kernel_of_an_older_opset_is_not_used(op_type, opset, on_dml):
    assert is_on_dml(where(op_type, opset, "float", "float")) is on_dml


@pytest.mark.parametrize(
    ("types", "found"),
    [
        (("float", "float"), Cell.FUSED_WITH_CPU),
        (("double", "double"), Cell.CPU),
        (("string", "string"), None),
        ((None, None), None),
        ((None, "float"), Cell.FUSED_WITH_CPU),
    ],
)
def test_types_decide(types, found):
    assert where("Add", 14, *types, outputs=(None,)) == found


def test_float16_that_was_not_asked_is_computed_where_float_is():
    """On the CPU it is, by a kernel of its own or between Casts; other types stay unknown."""
    row = find_operator("com.microsoft", "CDist", 1, NEW)
    assert row.ask(("float",)) is Cell.CPU
    assert ("float16",) not in row._cells
    assert row.ask(("float16",)) is Cell.CPU
    assert row.ask(("int64",)) is None


def test_types_that_were_not_asked_together_are_taken_by_themselves():
    row = find_operator("", "Cast", 13, NEW)
    assert ("int8", "uint16") not in row._cells
    assert is_on_dml(row.ask(("int8", "uint16")))
    assert row.ask(("string", "uint16")) is Cell.CPU
    assert row.ask(("int8", "complex64")) is None


def test_a_type_that_is_not_known_may_not_matter():
    loop = find_operator("", "Loop", 17, NEW)
    assert loop.ask((None,) * len(loop.usual)) is Cell.CPU
    assert find_operator("", "Add", 14, NEW).ask((None,)) is None


@pytest.mark.parametrize(
    ("op_type", "opset", "attributes", "count", "found"),
    [
        ("Resize", 19, {"mode": "cubic"}, 1, Cell.CPU),
        ("Resize", 19, {"mode": "linear"}, 1, Cell.FUSED_WITH_CPU),
        ("Resize", 13, {"mode": "cubic"}, 1, Cell.CPU),
        ("Resize", 19, {"mode": "linear", "coordinate_transformation_mode": "tf_crop_and_resize"}, 1, "F"),
        ("LayerNormalization", 17, {}, 1, Cell.FUSED_WITH_CPU),
        ("LayerNormalization", 17, {}, 2, Cell.CPU),
        ("MaxPool", 12, {"kernel_shape": [2, 2], "storage_order": 1}, 2, Cell.CPU),
        ("ScatterND", 16, {"reduction": "add"}, 1, Cell.CPU),
        ("ScatterND", 16, {"reduction": "none"}, 1, Cell.FUSED_WITH_CPU),
    ],
)
def test_attributes_send_nodes_to_the_cpu(op_type, opset, attributes, count, found):
    of_second = "int64" if op_type == "MaxPool" else "float"
    assert where(op_type, opset, "float", count=count, of_second=of_second, **attributes) == found


@pytest.mark.parametrize(
    ("op_type", "opset", "rank"),
    [("MatMul", 13, 4), ("MatMul", 9, 4), ("MaxPool", 8, 5), ("Conv", 11, 5), ("Relu", 14, 8), ("Abs", 13, None)],
)
def test_the_highest_rank_of_a_session(op_type, opset, rank):
    assert find_operator("", op_type, opset, NEW).most_rank == rank


@pytest.mark.parametrize(
    ("opset", "cell"),
    [(16, Cell.EXPANDED_ON_DML), (17, Cell.EXPANDED_ON_DML), (18, Cell.EXPANDED_ON_DML), (19, Cell.NO_KERNEL)],
)
def test_what_stands_for_a_function_depends_on_the_opset(opset, cell):
    """From 19 on, a node without a kernel is in what stands for a PRelu of integers."""
    assert where("PRelu", opset, "int64", "int64", outputs=("int64",)) is cell


@pytest.mark.parametrize("opset", range(22, 27))
def test_a_node_that_another_one_of_the_cpu_stands_for_is_on_the_cpu(opset):
    """1.30 makes a Conv of its own of a Conv from opset 22 on."""
    assert where("Conv", opset, "float", "float", runtime="1.30.0") is Cell.EXPANDED_ON_CPU


def test_a_version_without_any_kernel_has_none_for_types_that_were_not_asked():
    assert find_operator("", "RandomNormalLike", 22, NEW).ask(("complex64", None)) is Cell.NO_KERNEL
    assert find_operator("", "RandomNormalLike", 17, NEW).ask(("complex64", None)) is not Cell.NO_KERNEL


def test_all_outputs_of_an_if_decide():
    assert where("If", 17, "bool", outputs=("float", "int64"), count=2) is Cell.FUSED_WITH_CPU
    assert where("If", 17, "bool", outputs=("float", "string"), count=2) is Cell.CPU


@pytest.mark.parametrize(
    ("version", "opset", "types", "cell"),
    [
        ("1.24.4", 18, ("double", "bfloat16"), Cell.EXPANDED_ON_CPU),
        ("1.18.0", 21, ("double", "int32"), Cell.EXPANDED_ON_CPU),
        ("1.20.1", 21, ("double", "int32"), Cell.EXPANDED_ON_DML),
        ("1.24.4", 21, ("double", "int32"), Cell.FUSED_WITH_CPU),
    ],
)
def test_others_stand_for_types_that_were_not_recorded_together(version, opset, types, cell):
    assert find_operator("", "CastLike", opset, find_runtime(version)).ask(types, opset) is cell


def test_a_loss_of_types_that_were_not_recorded_together_is_not_known():
    """Others stand for one of DOUBLE with copies."""
    assert find_operator("", "NegativeLogLikelihoodLoss", 13, NEW).ask(("double", "int32"), 13) not in (
        Cell.EXPANDED_ON_DML,
        Cell.EXPANDED_ON_CPU,
    )


@pytest.mark.parametrize(
    ("op_type", "types"),
    [("HannWindow", ("int32", "float")), ("MelWeightMatrix", ("int64", "float", "double"))],
)
def test_what_was_folded_is_on_the_cpu_if_its_inputs_are_computed(op_type, types):
    assert find_operator("", op_type, 17, find_runtime("1.24.4")).ask(types) is Cell.CPU


def test_an_eye_is_of_its_own_type():
    assert where("EyeLike", 17, "bool", outputs=("int8",)) is Cell.FUSED
    assert where("EyeLike", 22, "float", outputs=("float",)) is Cell.CPU


def test_what_the_table_does_not_have_is_not_known():
    assert find_operator("", "Nonsense", 17, NEW) is None
    assert find_operator("com.example", "Relu", 17, NEW) is None
    assert find_operator("", "Relu", 17, find_runtime("1.16.3")) is None


def test_what_a_failing_node_says():
    row = find_operator("", "ReduceMean", 18, NEW)
    assert row.ask(("int32",)) in (Cell.FAILS, Cell.FAILS_WITH_CPU)
    assert row.message(["int32"]).endswith("80070057 Invalid parameter.")


def answers(version, cell):
    yield {"domain": "", "op": "Relu", "v": 14, "p": {"T": "float"}, "ort": version, **cell}


def test_a_version_is_added_beside_the_others():
    old = table(answers("1.24.4", {"at": "DML", "cpu": True, "graphs": 1}))
    new = table(answers("1.20.1", {"at": "CPU", "cpu": True, "graphs": 0}))
    assert combined(old, new)["operators"]["Relu"]["14"]["types"] == {"float": "CG"}
    assert combined(old, new) == combined(new, old)
    whole = json.loads(lzma.decompress(PATH.read_bytes()))
    assert combined(whole, whole) == whole


@pytest.mark.onnxruntime
def test_the_table_says_what_the_version_does(made, runtime):
    """A sample of the rows, each asked by itself: they were recorded many at a time."""
    rows = json.loads(lzma.decompress(PATH.read_bytes()))
    column, newest = rows["versions"].index(made.version), find_runtime(made.version).newest_opset
    wanted = [key for key in keys(newest) if not key.variant and key.op not in SIZED]
    recorder = Recorder(runtime, made.version)
    chosen = random.Random(made.version).sample(wanted, SAMPLE)
    found = [recorder.alone(Asked(key, built(key))) for key in chosen]
    assert len(found) == SAMPLE
    for row in found:
        key = Key.of_json(row)
        name = f"{key.domain}.{key.op}" if key.domain else key.op
        of_key = rows["operators"].get(name, {}).get(str(key.version))
        if of_key is None:
            assert cell_of(row) is Cell.INVALID
            continue
        place = ",".join(dict(key.types).get(parameter, "") for parameter in of_key["parameters"])
        assert of_key["types"].get(place, "?" * 9)[column] in (cell_of(row), "?"), key


def test_all_models_are_made():
    made = [
        key for key in keys(21) if key.domain == "com.microsoft" or key.op in ("Conv", "If", "Loop", "Scan", "Resize")
    ]
    assert all(built(key).graph.node[0].op_type == key.op for key in made)
