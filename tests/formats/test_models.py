"""Entries of models beside those of JSON."""

import pytest

from dmlsplit.checking.front_ends import Given, is_model, read_entries, without_nodes
from tests.models import model, node, value


@pytest.fixture
def path(tmp_path):
    def write(*nodes, shape=(2, 4), name="m.onnx"):
        (tmp_path / name).write_bytes(model(list(nodes), [value("x", shape)], opset=13).SerializeToString())
        return str(tmp_path / name)

    return write


def test_by_suffix():
    assert [is_model(name) for name in ("a.onnx", "A.ONNX", "b.xml", "c.json", "-", "onnx")] == [True] * 3 + [False] * 3


def test_nodes_are_entries(path):
    file = path(node("Split", ["x"], ["a", "b"], name="s"), node("SplitToSequence", ["x"], ["c"], name="q"))
    split, other = read_entries(file)
    assert (split.index, split.name, split.node.lengths) == (0, "s", (1, 1))
    assert split.descriptor == split.node.descriptor()
    assert (other.index, other.name, other.descriptor) == (1, "q", None)
    assert [note.rule for note in other.notes] == ["input/operator-not-judged"]


def test_a_model_without_a_split_says_so(path):
    [entry] = read_entries(path(node("Relu", ["x"], ["a"])))
    assert entry.index == -1
    assert [note.rule for note in entry.notes] == ["input/no-split"]


def test_what_cannot_be_read_is_one_entry(tmp_path):
    (tmp_path / "m.onnx").write_bytes(b"nothing")
    for name in ("m.onnx", "missing.onnx", "missing.xml", ""):
        [entry] = read_entries(str(tmp_path / name))
        assert entry.error is not None


def test_names_may_be_of_other_models(path):
    file = path(node("Split", ["x"], ["a", "b"]))
    [entry] = read_entries(file, Given({"other": (1,)}, {"n": 1}))
    assert "there is no" in str(entry.error)
    [entry] = read_entries(file, Given({"other": (1,)}, {"n": 1}, require_known_names=False))
    assert entry.node.lengths == (1, 1)


def test_descriptors_of_nodes(path):
    [entry] = map(without_nodes, read_entries(path(node("Split", ["x"], ["a", "b"]), shape=("n", 4))))
    assert entry.node is None
    assert entry.descriptor is None
    assert entry.operator == "Split"
    assert [note.rule for note in entry.notes] == ["node/shape-unknown"]
