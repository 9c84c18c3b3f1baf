"""External data of a model that is written back: found wherever it is named, copied beside the model and nowhere else,
and never replaced."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

from onnx import TensorProto, helper, numpy_helper  # noqa: E402

from dmlsplit.mending.writing import is_relative_everywhere  # noqa: E402
from tests.models import FLOAT, graph, ints, model, node, value  # noqa: E402

LEVEL = ("--feature-level", "2_0")
LARGE = 300_000
"""Elements of a tensor above the size from which tensors are left out."""


def external(location, name="w"):
    tensor = TensorProto(name=name, data_type=FLOAT, dims=[16], data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value=location)
    return tensor


def made():
    """A Split of five dimensions, which level 2_0 does not take."""
    return model(
        [node("Split", ["x", "l"], ["a", "b"], axis=1, name="split")],
        [value("x", [1, 4, 2, 2, 2])],
        [value("a", [1, 1, 2, 2, 2]), value("b", [1, 3, 2, 2, 2])],
        opset=13,
        initializers=[ints("l", 1, 3)],
        ir_version=8,
    )


def in_an_initializer(found, tensor):
    found.graph.initializer.append(tensor)


def in_a_sparse_initializer(found, tensor):
    found.graph.sparse_initializer.add(dims=[16]).values.CopyFrom(tensor)
    found.graph.sparse_initializer[0].indices.CopyFrom(helper.make_tensor("", TensorProto.INT64, [16], range(16)))


def in_the_indices_of_one(found, tensor):
    found.graph.sparse_initializer.add(dims=[16]).indices.CopyFrom(tensor)
    found.graph.sparse_initializer[0].values.CopyFrom(helper.make_tensor("v", FLOAT, [16], [1.0] * 16))


def in_an_attribute(found, tensor):
    found.graph.node.append(node("Constant", [], ["c"], value=tensor))


def in_a_list_of_tensors(found, tensor):
    attribute = onnx.AttributeProto(name="own", type=onnx.AttributeProto.TENSORS, tensors=[tensor])
    found.graph.node.append(node("Own", [], ["c"], domain="own"))
    found.graph.node[-1].attribute.append(attribute)
    found.opset_import.append(helper.make_opsetid("own", 1))


def in_a_sparse_attribute(found, tensor):
    sparse = onnx.SparseTensorProto(dims=[16], values=tensor)
    sparse.indices.CopyFrom(helper.make_tensor("", TensorProto.INT64, [16], range(16)))
    found.graph.node.append(node("Constant", [], ["c"], sparse_value=sparse))


def in_a_function(found, tensor):
    body = [node("Constant", [], ["c"], value=tensor)]
    found.functions.append(helper.make_function("own", "f", [], ["c"], body, [helper.make_opsetid("", 13)]))
    found.opset_import.append(helper.make_opsetid("own", 1))


def in_a_branch(found, tensor):
    inner = graph([node("Identity", ["w"], ["o"])], [], [value("o", [16])], [tensor])
    other = graph([node("Constant", [], ["p"], value=helper.make_tensor("", FLOAT, [16], [1.0] * 16))], [], ["p"])
    inside = node("If", ["k"], ["v"], then_branch=inner, else_branch=other)
    outer = graph([inside], [], ["v"])
    found.graph.node.append(node("If", ["k"], ["y"], then_branch=outer, else_branch=other))
    found.graph.input.append(value("k", [], TensorProto.BOOL))


def in_training(found, tensor):
    info = found.training_info.add()
    info.algorithm.CopyFrom(graph([node("Constant", [], ["c"], value=tensor)], [], ["c"]))


def in_what_training_begins_with(found, tensor):
    info = found.training_info.add()
    info.initialization.CopyFrom(graph([], [], [], [tensor]))


def in_a_large_tensor(found, tensor):
    """One that has elements as well, so many that it is left out."""
    tensor.raw_data = bytes(4 * LARGE)
    found.graph.initializer.append(tensor)


WHERE = [
    in_an_initializer,
    in_a_sparse_initializer,
    in_the_indices_of_one,
    in_an_attribute,
    in_a_list_of_tensors,
    in_a_sparse_attribute,
    in_a_function,
    in_a_branch,
    in_training,
    in_what_training_begins_with,
    in_a_large_tensor,
]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "in" / "sub").mkdir(parents=True)
    (tmp_path / "in" / "sub" / "w.bin").write_bytes(b"weights!" * 8)
    return tmp_path


def save(folder, put, location="sub/w.bin", large=False):
    found = made()
    put(found, external(location))
    if large:
        found.graph.initializer.append(numpy_helper.from_array(np.zeros(LARGE, np.float32), "large"))
    (folder / "in" / "m.onnx").write_bytes(found.SerializeToString())


def tree(folder):
    return {str(path.relative_to(folder)): path.is_file() and path.read_bytes() for path in folder.rglob("*")}


@pytest.mark.parametrize("large", [False, True], ids=["small", "large"])
@pytest.mark.parametrize("put", WHERE)
def test_it_is_copied_wherever_it_is_named(cli, folder, put, large):
    save(folder, put, large=large)
    refused = cli("legalize", "in/m.onnx", *LEVEL, "-o", "out/fixed.onnx")
    assert refused.status == 2
    assert "external data (sub/w.bin) is in the folder of in/m.onnx" in refused.err
    assert not (folder / "out").exists()
    assert cli("legalize", "in/m.onnx", *LEVEL, "-o", "out/fixed.onnx", "--copy-data").status == 0
    assert (folder / "out" / "sub" / "w.bin").read_bytes() == b"weights!" * 8


@pytest.mark.parametrize("large", [False, True], ids=["small", "large"])
@pytest.mark.parametrize("put", WHERE)
@pytest.mark.parametrize("link", [None, os.link, os.symlink], ids=["itself", "a hard link", "a link"])
def test_it_is_never_replaced(cli, folder, put, large, link):
    save(folder, put, location="sub/w.onnx", large=large)
    (folder / "in" / "sub" / "w.bin").rename(folder / "in" / "sub" / "w.onnx")
    out = "in/sub/w.onnx"
    if link is not None:
        out = "in/other.onnx"
        link(folder / "in" / "sub" / "w.onnx", folder / out)
    before = tree(folder)
    for more in ((), ("--copy-data",)):
        result = cli("legalize", "in/m.onnx", *LEVEL, "-o", out, *more)
        assert result.status == 2
        assert (
            "refers to" in result.err
            or "is in the folder of" in result.err
            or "the model that is written" in result.err
        )
        assert tree(folder) == before


@pytest.mark.parametrize("link", [os.link, os.symlink], ids=["a hard link", "a link"])
def test_the_model_is_never_replaced(cli, folder, link):
    save(folder, in_an_initializer)
    link(folder / "in" / "m.onnx", folder / "in" / "same.onnx")
    before = tree(folder)
    assert cli("legalize", "in/m.onnx", *LEVEL, "-o", "in/same.onnx").status == 2
    assert tree(folder) == before


def test_no_folders_are_made_for_data_that_is_not_there(cli, folder, monkeypatch):
    """Of 300 folders the first would be an output, and each one slower than the one before."""
    save(folder, in_an_initializer, location="/".join("a" * 300))
    makes, made_folders = os.mkdir, []
    monkeypatch.setattr(os, "mkdir", lambda path, *more: made_folders.append(path) or makes(path, *more))
    before = tree(folder)
    assert cli("legalize", "in/m.onnx", *LEVEL, "-o", "out/fixed.onnx", "--copy-data").status == 2
    assert (made_folders, tree(folder)) == ([], before)


OUTSIDE = {
    "above": "../key",
    "above, by a folder": "sub/../../key",
    "absolute": "{folder}/key",
    "by a folder that is a link": "linked/key",
    "a drive": "C:\\key",
    "a drive's current folder": "c:key",
    "a share": "\\\\server\\share\\key",
    "a root of Windows": "\\key",
    "a device": "nul",
    "a device with a suffix": "sub/Com1.txt",
}


@pytest.mark.skipif(os.name == "nt", reason="Windows takes most of these names for something else")
@pytest.mark.parametrize("location", OUTSIDE.values(), ids=OUTSIDE)
def test_nothing_is_copied_out_of_the_folder(cli, folder, location):
    """`key` is in the source's folder as these locations have it; in the folder of the output it would be outside."""
    location = location.format(folder=folder / "in")
    (folder / "in" / "linked").mkdir()
    source = Path(os.path.normpath(folder / "in" / "model" / location))
    for path in {source, folder / "in" / "model" / "linked" / "key"}:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"evil")
    (folder / "in" / "model" / "sub").mkdir(exist_ok=True)
    found = made()
    found.graph.initializer.append(external(location))
    (folder / "in" / "model" / "m.onnx").write_bytes(found.SerializeToString())
    (folder / "out" / "deep").mkdir(parents=True)
    (folder / "elsewhere").mkdir()
    os.symlink("../../elsewhere", folder / "out" / "deep" / "linked")
    before = tree(folder)
    for allowed in ((), ("--allow-path", str(folder / "in"))):
        arguments = ("-o", "out/deep/fixed.onnx", "--copy-data", *allowed)
        result = cli("legalize", "in/model/m.onnx", *LEVEL, *arguments)
        assert result.status == 2
        assert result.err.count("\n") == 1
        assert "outside" in result.err or "would not be copied into the folder" in result.err
        assert tree(folder) == before


@pytest.mark.parametrize("location", ["sub/w.bin", "./sub/w.bin", "sub/../sub/w.bin", "sub//w.bin"])
def test_other_ways_to_a_file_in_the_folder(cli, folder, location):
    save(folder, in_an_initializer, location)
    assert cli("legalize", "in/m.onnx", *LEVEL, "-o", "out/fixed.onnx", "--copy-data").status == 0
    assert (folder / "out" / "sub" / "w.bin").read_bytes() == b"weights!" * 8


def test_one_file_of_several_names_is_copied_once(cli, folder):
    found = made()
    found.graph.initializer.extend([external("sub/w.bin", "v"), external("./sub/../sub/w.bin", "w")])
    (folder / "in" / "m.onnx").write_bytes(found.SerializeToString())
    assert cli("legalize", "in/m.onnx", *LEVEL, "-o", "out/fixed.onnx", "--copy-data").status == 0
    assert sorted(tree(folder / "out")) == ["fixed.onnx", "sub", "sub/w.bin"]


@pytest.mark.parametrize("location", ["fixed.onnx", "./fixed.onnx"])
def test_data_that_is_called_as_the_model_that_is_written(cli, folder, location):
    save(folder, in_an_initializer, location)
    (folder / "in" / "fixed.onnx").write_bytes(b"weights!" * 8)
    before = tree(folder)
    result = cli("legalize", "in/m.onnx", *LEVEL, "-o", "out/fixed.onnx", "--copy-data")
    assert result.status == 2
    assert "the model that is written" in result.err
    assert tree(folder) == before


@pytest.mark.parametrize("missing", [True, False])
def test_all_is_written_or_nothing(cli, folder, missing):
    """Of two files the second is not there, or is not a regular file."""
    found = made()
    found.graph.initializer.extend([external("sub/w.bin", "v"), external("sub/other", "w")])
    (folder / "in" / "m.onnx").write_bytes(found.SerializeToString())
    if not missing:
        (folder / "in" / "sub" / "other").mkdir()
    before = tree(folder)
    result = cli("legalize", "in/m.onnx", *LEVEL, "-o", "out/fixed.onnx", "--copy-data")
    assert result.status == 2
    assert "sub/other" in result.err.replace(os.sep, "/")
    assert tree(folder) == before


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        *(
            (name, True)
            for name in ("w.bin", "a/b", "onnx::MatMul_1", "constant", "null", "com", "com10", "a.nul", "..")
        ),
        *((name, False) for name in ("/a", "\\a", "c:a", "C:\\a", "//s/t/a", "\\\\s\\t\\a", "\\\\?\\C:\\a")),
        *((name, False) for name in ("nul", "NUL", "con.txt", "a/aux/b", "a\\prn", "com1", "LPT\xb9.x", "nul .x")),
    ],
)
def test_locations_that_some_system_takes_for_something_else(location, expected):
    assert is_relative_everywhere(location) == expected
