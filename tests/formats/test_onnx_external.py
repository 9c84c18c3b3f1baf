"""External data of ONNX models: from the model's folder and by one reader, whatever member names the file."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import AttributeProto, TensorProto, helper

from dmlsplit.formats import onnx as front_end
from tests.formats.split_nodes import rules
from tests.models import FLOAT, INT64, graph, ints, model, node, value, with_reference

ROOT = Path(__file__).parents[2]
LENGTHS = node("Split", ["x", "len"], ["a", "b"], name="s")
INPUTS = [value("x", [4, 6])]


def external(name="t", dims=(1,), location="w.bin"):
    """A tensor of int64 whose data are in a file."""
    tensor = TensorProto(name=name, data_type=INT64, dims=dims, data_location=TensorProto.EXTERNAL)
    entries = {"location": location, "offset": 0, "length": 8 * int(np.prod(dims))}
    for key, entry in entries.items():
        tensor.external_data.add(key=key, value=str(entry))
    return tensor


def sparse(**fields):
    return onnx.SparseTensorProto(values=external("v", (2,)), indices=ints("i", 0, 1), dims=[2], **fields)


def with_attribute(made, name, tensor):
    made.attribute.append(AttributeProto(name=name, type=AttributeProto.TENSOR, t=tensor))
    return made


def called(nodes, attributes=(), **given):
    function = helper.make_function("d", "f", ["x"], ["a"], nodes, [helper.make_opsetid("", 18)], list(attributes))
    call = node("f", ["x"], ["o"], domain="d", name="c", **given)
    return model([call], INPUTS, functions=[function], domains=["d"])


FILLED = node("ConstantOfShape", ["two"], ["len"], value=external())
TWO = node("Constant", [], ["two"], value_ints=[2])
PAIR = ints("pair", 1, 3)

READ = {
    "initializer": lambda: model([LENGTHS], INPUTS, initializers=[external("len", (2,))]),
    "Constant": lambda: model([node("Constant", [], ["len"], value=external("t", (2,))), LENGTHS], INPUTS),
    "ConstantOfShape": lambda: model([TWO, FILLED, LENGTHS], INPUTS),
    "in a subgraph": lambda: model(
        [node("If", ["c"], ["o"], then_branch=graph([TWO, FILLED, LENGTHS], []), else_branch=graph([], []))],
        [*INPUTS, value("c", [], TensorProto.BOOL)],
    ),
    "in a function": lambda: called([TWO, FILLED, LENGTHS]),
    "given to a function": lambda: called(
        [TWO, with_reference(node("ConstantOfShape", ["two"], ["len"]), "value", "v", AttributeProto.TENSOR), LENGTHS],
        ["v"],
        v=external(),
    ),
    "before a node that is folded": lambda: model(
        [node("Neg", ["k"], ["n"]), node("Abs", ["n"], ["len"]), LENGTHS], INPUTS, initializers=[external("k", (2,))]
    ),
}
"""Members by which lengths are read from w.bin beside the model."""

NOT_READ = {
    "an attribute of another name": lambda: model(
        [with_attribute(node("Abs", ["pair"], ["len"]), "zzz", external()), LENGTHS], INPUTS, initializers=[PAIR]
    ),
    "an attribute of another type": lambda: model(
        [with_attribute(node("Concat", ["pair"], ["len"]), "axis", external()), LENGTHS], INPUTS, initializers=[PAIR]
    ),
    "an attribute of Split": lambda: model(
        [with_attribute(node("Split", ["x", "len"], ["a", "b"]), "zzz", external())],
        INPUTS,
        initializers=[ints("len", 1, 3)],
    ),
    "an attribute of Shape": lambda: model(
        [with_attribute(node("Shape", ["x"], ["len"]), "zzz", external()), LENGTHS], INPUTS
    ),
    "a graph of a folded node": lambda: model(
        [node("Abs", ["pair"], ["len"], body=graph([], [], [], [external()])), LENGTHS], INPUTS, initializers=[PAIR]
    ),
    "a sparse attribute": lambda: model([node("Constant", [], ["len"], sparse_value=sparse()), LENGTHS], INPUTS),
    "a sparse initializer": lambda: _with_sparse_initializer(),
    "a list of tensors": lambda: model(
        [node("Abs", ["pair"], ["len"], ts=[external()]), LENGTHS], INPUTS, initializers=[PAIR]
    ),
    "weights": lambda: model(
        [node("MatMul", ["x", "w"], ["y"]), node("Split", ["y"], ["a", "b"], num_outputs=2)],
        INPUTS,
        initializers=[external("w", (6, 4))],
    ),
}
"""Members that have no bearing on lengths."""


def _with_sparse_initializer():
    made = model([LENGTHS], INPUTS)
    made.graph.sparse_initializer.append(sparse())
    made.graph.sparse_initializer[0].values.name = "len"
    return made


OPENED = """
import json, os, sys
from dmlsplit.formats import onnx
folders, paths = map(json.loads, sys.argv[1:])
for path in paths:
    onnx.read(path)  # what is imported on the way is no concern here
opened = []
active = []
def hook(event, arguments):
    if active and event == "open" and isinstance(arguments[0], (str, bytes)):
        opened.append(os.fsdecode(arguments[0]))
sys.addaudithook(hook)
found = {}
for folder in folders:
    os.chdir(folder)
    for path in paths:
        opened.clear()
        active.append(True)
        nodes = onnx.read(path)
        active.clear()
        found.setdefault(path, []).append(
            [[str(n.lengths), [str(d) for d in n.report.diagnostics]] for n in nodes] + [sorted(set(opened))]
        )
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """For each member, what is read in several current folders: the nodes, and the files that were opened."""
    base = tmp_path_factory.mktemp("external")
    folders = [base / name for name in ("model", "here", "there")]
    for number, folder in enumerate(folders, 2):
        folder.mkdir()
        (folder / "w.bin").write_bytes(np.full(24, number, "<i8").tobytes())
    paths = {}
    for member, made in (READ | NOT_READ).items():
        paths[member] = folders[0] / f"{len(paths)}.onnx"
        paths[member].write_bytes(made().SerializeToString())
    asked = ([*map(str, folders), folders[0].anchor], list(map(str, paths.values())))
    command = [sys.executable, "-c", OPENED, *map(json.dumps, asked)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    answers = json.loads(done.stdout)
    return {member: (str(path), answers[str(path)]) for member, path in paths.items()}


@pytest.mark.parametrize("member", READ | NOT_READ)
def test_the_current_folder_makes_no_difference(found, member):
    _, answers = found[member]
    assert len(answers) == 4
    assert all(answer == answers[0] for answer in answers)


@pytest.mark.parametrize("member", READ)
def test_what_lengths_are_made_of_is_read_beside_the_model(found, member):
    path, (answer, *_) = found[member]
    *nodes, opened = answer
    assert nodes[0] == ["(2, 2)", nodes[0][1]]
    assert opened == sorted([path, str(Path(path).with_name("w.bin"))])


@pytest.mark.parametrize("member", NOT_READ)
def test_nothing_else_is_opened(found, member):
    path, (answer, *_) = found[member]
    assert answer[-1] == [path]


@pytest.mark.skipif(sys.platform == "win32", reason="links take a privilege on Windows")
@pytest.mark.parametrize("member", READ)
@pytest.mark.parametrize("location", ["../w.bin", "link.bin", "/etc/hostname"])
def test_outside_of_the_folder_is_nothing_read(tmp_path, member, location):
    folder = tmp_path / "model"
    folder.mkdir()
    (tmp_path / "w.bin").write_bytes(np.full(24, 2, "<i8").tobytes())
    (folder / "link.bin").symlink_to(tmp_path / "w.bin")
    data = READ[member]().SerializeToString()
    made = onnx.ModelProto.FromString(data)
    _relocate(made, location)
    (folder / "m.onnx").write_bytes(made.SerializeToString())
    for split in front_end.read(folder / "m.onnx"):
        assert rules(split) & {"onnx/split-malformed", "node/shape-unknown"}
        assert split.lengths is None or None in split.lengths


def _relocate(message, location):
    for field, child in message.ListFields():
        if field.name == "external_data":
            for entry in child:
                if entry.key == "location":
                    entry.value = location
        elif field.type == field.TYPE_MESSAGE:
            for part in child if not hasattr(child, "ListFields") else [child]:
                _relocate(part, location)


def test_an_attribute_that_came_later_is_not_the_operators():
    nodes = [node("Shape", ["x"], ["len"], start=1), LENGTHS]
    [split] = front_end.read(model(nodes, [value("x", [2, 1, 1])], opset=13))
    assert "onnx/split-count" in rules(split)
    [split] = front_end.read(model(nodes, [value("x", [2, 1, 1])], opset=18))
    assert split.lengths == (1, 1)


def test_an_attribute_of_another_type_makes_the_node_unknown():
    nodes = [node("Concat", ["pair"], ["len"], axis=0.0), LENGTHS]
    concat, split = front_end.read(model(nodes, [value("x", [4], FLOAT)], initializers=[PAIR]))
    assert not concat.report.ok
    assert "node/shape-unknown" in rules(split)


def test_an_attribute_that_cannot_be_read_is_said_to_be():
    nodes = [TWO, node("ConstantOfShape", ["two"], ["len"], value=external(location="")), LENGTHS]
    [split] = front_end.read(model(nodes, INPUTS))
    assert "onnx/split-malformed" in rules(split)
