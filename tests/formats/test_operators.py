"""What `check` reads: files of every kind, and faults as entries."""

import io
import json
import subprocess
import sys

import pytest

import dmlsplit as dml
from dmlsplit.descriptors.location import Location
from dmlsplit.formats.json import dumps
from dmlsplit.formats.limits import Limit
from dmlsplit.formats.operator_files import read_operators
from tests.formats.models import chain

X = dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, (6,))
SPLIT = dml.SplitOperatorDesc.from_lengths(X, 0, (2, 4))
JOIN = dml.JoinOperatorDesc.from_lengths(X, 0, (2, 4))
ZERO_TOTAL = {"DataType": "FLOAT32", "Sizes": [4], "TotalTensorSizeInBytes": 0}
TENSOR = {"DataType": "FLOAT32", "Sizes": [4]}
MODEL = {
    "resources": {},
    "dispatchables": {
        "first": json.loads(dumps(SPLIT)),
        "relu": {"type": "DML_OPERATOR_ACTIVATION_RELU", "desc": {"InputTensor": TENSOR, "OutputTensor": TENSOR}},
        "future": {"type": "DML_OPERATOR_FUTURE", "desc": {}},
        "shader": {"type": "hlsl", "sourcePath": "a.hlsl"},
        "broken": {"type": "SPLIT", "Axis": 1},
        "zero": {"type": 62, "InputTensor": ZERO_TOTAL, "OutputTensors": [ZERO_TOTAL], "OutputCount": 1, "Axis": 0},
    },
    "commands": [],
}


def read(data, **arguments):
    return list(read_operators(data.encode() if isinstance(data, str) else data, **arguments))


def test_one_operator(tmp_path):
    path = tmp_path / "op.json"
    path.write_text(dumps(SPLIT, 2))
    (entry,) = read_operators(path)
    assert (entry.file, entry.index, entry.name, entry.descriptor) == (str(path), 0, None, SPLIT)
    assert (entry.error, entry.notes) == (None, ())
    assert entry.locate(Location.of("InputTensor")) == (4, 20)


def test_a_graph_of_a_model_names_its_operators():
    relu, graph = read(json.dumps(chain()))
    assert (graph.name, graph.error, graph.notes) == ("graph", None, ())
    assert graph.graph.nodes == (relu.other, relu.other)
    assert (graph.graph.inputs, graph.graph.outputs) == ((None,), (None,))
    assert dml.validate(graph.graph, directml="1.15.4").hresult == dml.HResult.S_OK


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"Nodes": [{"type": "DML_GRAPH_NODE_TYPE_OPERATOR", "Operator": "tanh"}]}, "there is no dispatchable 'tanh'"),
        ({"Nodes": [{"type": "DML_GRAPH_NODE_TYPE_OPERATOR", "Operator": "graph"}]}, "DML_GRAPH_DESC"),
        ({"Nodes": [{"type": "DML_GRAPH_NODE_TYPE_OPERATOR"}]}, "Field 'Operator' is required"),
        ({"Nodes": [{"type": "DML_GRAPH_NODE_TYPE_CONSTANT"}]}, "expected 'DML_GRAPH_NODE_TYPE_OPERATOR'"),
        ({"InputCount": 2**32 - 1}, "InputCount: 4294967295 is more than 1048576"),
        ({"OutputCount": -1}, "OutputCount: expected an unsigned integer"),
    ],
)
def test_a_graph_of_a_model_that_cannot_be_read(changed, message):
    _, graph = read(json.dumps(chain(**changed)))
    assert graph.graph is None
    assert message in graph.error.message


def test_one_operator_of_many_nodes_is_read_once():
    nodes = [{"type": "DML_GRAPH_NODE_TYPE_OPERATOR", "Operator": "relu"}] * 1000
    _, graph = read(json.dumps(chain(Nodes=nodes)))
    assert len({id(node) for node in graph.graph.nodes}) == 1


def test_a_graph_of_c_is_read_in_models_only():
    (entry,) = read(json.dumps(chain()["dispatchables"]["graph"]))
    assert entry.graph is None
    assert [note.rule for note in entry.notes] == ["input/operator-not-judged"]


def test_model():
    first, relu, future, shader, broken, zero = read(json.dumps(MODEL, indent=1), name="m.json")
    assert (first.name, first.index, first.descriptor) == ("first", 0, SPLIT)
    assert relu.other == dml.AnyOperatorDesc(
        "ACTIVATION_RELU", dict.fromkeys(("InputTensor", "OutputTensor"), dml.BufferTensorDesc(1, (4,)))
    )
    assert (relu.descriptor, relu.error, relu.notes) == (None, None, ())
    for entry, operator in ((future, "DML_OPERATOR_FUTURE"), (shader, "hlsl")):
        (note,) = entry.notes
        assert (entry.descriptor, entry.error) == (None, None)
        assert (note.rule, note.actual) == ("input/operator-not-judged", operator)
        assert (note.line, note.column) == entry.locate(Location())
    assert broken.name == "broken"
    assert broken.error.message == "Field 'InputTensor' is required."
    assert zero.descriptor.input_tensor.total_tensor_size_in_bytes == 16
    assert [note.path for note in zero.notes] == [
        "InputTensor.TotalTensorSizeInBytes",
        "OutputTensors[0].TotalTensorSizeInBytes",
    ]
    assert [entry.index for entry in (first, relu, future, shader, broken, zero)] == [0, 1, 2, 3, 4, 5]


def test_jsonl_goes_on_after_a_bad_line():
    lines = [dumps(SPLIT).encode(), b"", b"{", b"\xff", b'{"Type": "CAST"}', b"7", dumps(JOIN).encode()]
    entries = read(b"\r\n".join(lines), name="ops.jsonl")
    assert [entry.index for entry in entries] == list(range(6))
    assert [entry.descriptor for entry in entries] == [SPLIT, None, None, None, None, JOIN]
    assert [entry.error and (entry.file, entry.error.line) for entry in entries] == [
        None,
        ("ops.jsonl", 3),
        ("ops.jsonl", 4),
        ("ops.jsonl", 5),
        ("ops.jsonl", 6),
        None,
    ]
    assert entries[5].locate(Location.of("Axis"))[0] == 7


def test_jsonl_ends_after_many_bad_lines(monkeypatch):
    monkeypatch.setattr(Limit.JSON_FAULTS, "most", 3)
    lines = [b"{", dumps(SPLIT).encode(), b"7", b"", b"[", dumps(JOIN).encode()]
    *entries, last = read(b"\n".join(lines), name="ops.jsonl")
    assert [entry.descriptor for entry in entries] == [None, SPLIT, None, None]
    assert (last.index, last.error.line) == (4, 5)
    assert last.error.message == "3 lines cannot be read, the limit for a file: the rest is not read"


def test_jsonl_is_lazy(tmp_path):
    path = tmp_path / "ops.jsonl"
    path.write_text(dumps(SPLIT) + "\n" + "{" * 100_000 + "\n")
    entries = read_operators(path)
    assert next(entries).descriptor == SPLIT


@pytest.mark.parametrize(
    ("data", "descriptors"),
    [
        pytest.param(dumps(SPLIT, 2), [SPLIT], id="one-document"),
        pytest.param(dumps(SPLIT) + "\n" + dumps(JOIN) + "\n", [SPLIT, JOIN], id="lines"),
        pytest.param("{bad\n" + dumps(JOIN), [None, JOIN], id="bad-first-line"),
        pytest.param(dumps(SPLIT, 2)[:-1], [None], id="truncated-document-is-one-error"),
        pytest.param("", [None], id="empty"),
    ],
)
def test_standard_input(monkeypatch, data, descriptors):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data.encode())))
    entries = list(read_operators("-"))
    assert [entry.descriptor for entry in entries] == descriptors
    assert all(entry.file == "<stdin>" for entry in entries)
    assert all((entry.error is None) == (entry.descriptor is not None) for entry in entries)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"[]", "expected an object"),
        (b'{"dispatchables": []}', "dispatchables: expected an object"),
        (b'{"Type": "SPLIT", "Type": "JOIN"}', "duplicate key"),
        ('{"Type": "SPLIT"}'.encode("utf-16"), "UTF-16"),
    ],
    ids=["array", "dispatchables", "duplicate", "utf-16"],
)
@pytest.mark.parametrize("name", ["f.json", "f.jsonl"])
def test_malformed(data, message, name):
    if name == "f.jsonl" and b"dispatchables" in data:
        message = "Field 'Type' is required."
    (entry,) = read(data, name=name)
    assert entry.descriptor is None
    assert message in str(entry.error)
    assert entry.locate(Location.of("Axis")) == (entry.error.line, entry.error.column)


def test_missing_file_and_folder(tmp_path):
    (entry,) = read_operators(tmp_path / "none.json")
    assert str(entry.error.in_file(entry.file)) == f"{tmp_path / 'none.json'}: No such file or directory"
    (entry,) = read_operators(tmp_path)
    assert "irectory" in entry.error.message


def test_reading_operators_does_not_load_numpy():
    code = "import sys, dmlsplit.formats.operator_files; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
